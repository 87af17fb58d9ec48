"""Chinese: read by pinyin, numbers of our own, no blanks between words.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.errors import UsageError
from myxtts.text.languages.language import Language, signs, units
from myxtts.text.languages.shared import fold_ideographic_zero
from myxtts.text.numbers import cardinal, year
from myxtts.text.phonemes import ask_espeak

_DIGITS = "零一二三四五六七八九"


def _say_number(number: int, language: Language) -> str:
    if number == 0:
        return "零"
    groups: list[str] = []
    rest, scale = number, 0
    gap = False  # the group to the left ends where a zero has to be said
    while rest:
        rest, group = divmod(rest, 10_000)
        if group:
            words = _say_group(group) + ["", "万", "亿", "万亿", "兆", "京", "垓", "秭"][scale]
            groups.insert(0, words + ("零" if gap and groups else ""))
        gap = group < 1000 and bool(rest)
        scale += 1
    words = "".join(groups)
    return words[1:] if words.startswith("一十") else words


def _say_group(number: int) -> str:
    words, zero = "", False
    for power, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // power % 10
        if digit:
            words += ("零" if zero and words else "") + _DIGITS[digit] + name
        zero = digit == 0
    return words


def _say_ordinal(number: int, language: Language) -> str:
    return "第" + cardinal(str(number), language)


def _say_year(digits: str, language: Language) -> str:
    """Digit by digit."""
    return "".join(_DIGITS[int(digit)] for digit in digits) if len(digits) == 4 else cardinal(digits, language)


def _read_counted(text: str, language: Language) -> str:
    """Years before their sign, and two of what is counted."""
    text = re.sub(r"(?<!\d)(\d{4})(?=\s?年)", lambda m: year(m[1], language), text)
    return re.sub(r"(?<![\d.第])2(?=[个位名只本张件条天周岁斤次小千万亿])", "两", text)


_INITIAL = re.compile("^(zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw])?(.+)$")


def _read(clause: str) -> list[str]:
    """Chinese characters by pinyin, Latin letters as English."""
    runs = re.findall(r"[a-zA-Z][a-zA-Z' -]*|[^\W\d_a-zA-Z]+", clause)
    return [unit for run in runs for unit in (ask_espeak(run, "en-us") if run[0].isascii() else _read_pinyin(run))]


def _read_pinyin(text: str) -> list[str]:
    """Pinyin of each character as initial and final with its tone: ["n", "i3", "h", "ao3"]."""
    from pypinyin import Style, lazy_pinyin

    def refuse(unknown: str) -> str:
        raise UsageError(f"cannot speak {' '.join(sorted(set(unknown)))} in language 'zh': {text[:60]!r}")

    syllables = lazy_pinyin(
        text, style=Style.TONE3, errors=refuse, neutral_tone_with_five=True, tone_sandhi=True, v_to_u=True
    )
    parts = (match for match in map(_INITIAL.match, syllables) if match)
    return [part for match in parts for part in match.groups() if part]


LANGUAGE = Language(
    code="zh",
    point="点",
    minus="负",
    percent=("百分之",),
    signs=signs("加", "等于", "和", "艾特", "度"),
    scripts=("CJK", "IDEOGRAPHIC"),
    fold=fold_ideographic_zero,
    word_blanks=False,
    number_blanks=False,
    read=_read,
    packages=("pypinyin",),
    decimal=".",
    groups=",",
    decimals="digits",
    number=_say_number,
    ordinal=_say_ordinal,
    year=_say_year,
    fraction="{below}分之{above}",
    to="到",
    order="ymd",
    date="{year}年{month}月{day}日",
    time="{hour}点{minute}分",
    full_hour="{hour}点",
    percent_first=True,
    money={"¥": ("元",), "￥": ("元",), "$": ("美元",), "€": ("欧元",), "£": ("英镑",)},
    money_as_decimal=True,
    scales="[百千]?[万亿]",
    units={
        **units("公里", "米", "厘米", "公斤", "克", "升", "摄氏度"), "℃": ("摄氏度",),
    },
    counted=_read_counted,
)  # fmt: skip
