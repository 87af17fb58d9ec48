"""Persian: one spelling for each word, half-spaces, Jalali dates, and a slash in decimal numbers.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.abbreviations import before_number
from myxtts.text.dates import say_date
from myxtts.text.languages.language import Forms, Language, months, signs, units
from myxtts.text.languages.shared import ARABIC_VOWELS
from myxtts.text.letters import ZWNJ
from myxtts.text.numbers import ask_num2words, cardinal, ordinal, plain_ordinal

# Letters that are the same letter typed on another keyboard.
_SAME = str.maketrans(
    {"ي": "ی", "ى": "ی", "ې": "ی", "ك": "ک", "ڪ": "ک", "ہ": "ه", "ھ": "ه", "ە": "ه", "ۃ": "ة", "ٱ": "ا", "ـ": "",
     "¬": ZWNJ}
)  # fmt: skip
_LETTER = "[\u0621-\u06d3\u064b-\u0655]"


def _fold(text: str) -> str:
    text = text.translate(_SAME)
    text = re.sub(f"ۀ|ه[ {ZWNJ}]ی(?= )", "هٔ", text)  # one spelling of the ezafe after a silent he
    text = re.sub(r"(?<=\d)،(?=\d{3}(?!\d))", ",", text)
    text = re.sub("ة(?=[ \u200c]?ال)", "ت", text).replace("ة", "ه")
    text = re.sub("(?<![\u0621-\u06d3])[أإ]", "ا", text)  # a carrier of hamza begins no Persian word
    text = re.sub(f"{ZWNJ}+", ZWNJ, text)
    text = re.sub(f"(?<!{_LETTER}){ZWNJ}|{ZWNJ}(?!{_LETTER})", "", text)  # only between letters
    # The prefix and the endings that are written apart, joined by a half-space as the academy asks.
    text = re.sub(r"(?<!\S)(ن?می) (?=[\u0621-\u06d3]{2,})", rf"\1{ZWNJ}", text)
    return re.sub(r"(?<=[\u0621-\u06d3]) (ها|های|هایی|هایم|هایت|هایش|هایمان|هایتان|هایشان|تر|ترین)(?![^\s.,،؛؟!:\"»])",
                  rf"{ZWNJ}\1", text)  # fmt: skip


def _say_number(number: int, language: Language) -> str:
    """With a vowel sign in nine, which without it would be read as "no"."""
    return re.sub(r"(?<!\S)نه(?!\S)", "نُه", " ".join(ask_num2words(number, language).split()))


def _say_ordinal(number: int, language: Language) -> str:
    if number % 100 == 30:
        return cardinal(str(number), language) + f"{ZWNJ}اُم"
    return plain_ordinal(number, language)


def _say_fraction(above: str, below: str, language: Language) -> str:
    return f"{cardinal(above, language)} {ordinal(below, language)}"


_JALALI = months("فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند")
_GREGORIAN = months("ژانویهٔ فوریهٔ مارس آوریل مه ژوئن ژوئیهٔ اوت سپتامبر اکتبر نوامبر دسامبر")


def _months_of(year: int) -> Forms:
    return _JALALI if 1200 <= year < 1500 else _GREGORIAN


def _read_decimal_slashes(text: str, language: Language) -> str:
    """A slash divides a decimal number (3/5 is three and five tenths), but a few are fractions."""
    return re.sub(r"(?<![\d/])(?!(?:1/[234]|2/3|3/4)(?!\d))(\d{1,3})/(\d{1,3})(?![\d/])", r"\1.\2", text)


def _read_short_dates(text: str, language: Language) -> str:
    """A year of two digits is one of the fourteenth century."""
    return re.sub(
        r"(?<![\d/])([0-9]{2})/(\d{1,2})/(\d{1,2})(?![\d/])",
        lambda m: say_date((f"13{m[1]}", m[2], m[3]), m[0], language),
        text,
    )


def _read_ordinals(text: str, language: Language) -> str:
    text = re.sub(r"(\d+)\s?\u200c?(?:اُ?مین|مین)(?!\w)", lambda m: ordinal(m[1], language) + "ین", text)
    return re.sub(r"(\d+)\s?\u200c?(?:اُ?م|م)(?!\w)", lambda m: ordinal(m[1], language), text)


LANGUAGE = Language(
    code="fa",
    point="ممیز",
    minus="منفی",
    percent=("درصد",),
    signs={**signs("به علاوهٔ", "مساوی", "و", "اَت", "درجه"), "#": "شمارهٔ"},
    scripts=("ARABIC",),
    vowel_marks=ARABIC_VOWELS,
    short_vowels_written=False,
    fold=_fold,
    half_spaces=True,
    decimal=".",
    groups=",",
    number=_say_number,
    ordinal=_say_ordinal,
    over="تقسیم بر",
    say_fraction=_say_fraction,
    to=" تا ",
    months=_GREGORIAN,
    calendar=_months_of,
    order="ymd",
    date="{day}ِ {month} {year}",
    time="{hour} و {minute} دقیقه",
    percent_sign="either",
    money={"$": ("دلار",), "€": ("یورو",), "£": ("پوند",), "﷼": ("ریال",), "¥": ("یِن",)},
    money_as_decimal=True,
    scales="هزار|میلیون|میلیارد|تریلیون",
    units=units("کیلومتر", "متر", "سانتی‌متر", "کیلوگرم", "گرم", "لیتر", "درجهٔ_سانتی‌گراد"),
    abbreviations={
        "ق.م.": "قبل از میلاد", "ب.م.": "بعد از میلاد", "ه.ق.": "هجری قمری", "ه.ش.": "هجری شمسی", "ص.": "صفحهٔ",
        "ج.": "جلد", "ر.ک.": "رجوع کنید به", "ق.م": "قبل از میلاد", "ه.ق": "هجری قمری", "ه.ش": "هجری شمسی",
    },
    abbreviation_fits={"ص.": before_number, "ج.": before_number},
    after_separators=_read_decimal_slashes,
    before_dates=_read_short_dates,
    ordinals=_read_ordinals,
)  # fmt: skip
