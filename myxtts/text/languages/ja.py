"""Japanese: read by a dictionary's pronunciation of each word, no blanks between words.

In: nothing.
Out: `LANGUAGE`.
"""

import functools
import threading

from myxtts.errors import UsageError
from myxtts.text.languages.language import Language, signs, units
from myxtts.text.languages.shared import fold_ideographic_zero
from myxtts.text.phonemes import without_silent_signs

_lock = threading.Lock()  # the analyser keeps state


@functools.cache
def _analyser():
    try:
        from janome.tokenizer import Tokenizer
    except ImportError:
        raise UsageError("Japanese needs the package janome; type: pip install 'myxtts[ja]'") from None
    return Tokenizer()


def _rows() -> dict[str, tuple[str, str]]:
    """Each katakana as (consonant, vowel)."""
    rows = {
        "": "アイウエオ", "k": "カキクケコ", "ɡ": "ガギグゲゴ", "s": "サ スセソ", "z": "ザ ズゼゾ", "t": "タ  テト",
        "d": "ダ  デド", "n": "ナニヌネノ", "h": "ハヒ ヘホ", "b": "バビブベボ", "p": "パピプペポ", "m": "マミムメモ",
        "j": "ヤ ユ ヨ", "ɾ": "ラリルレロ", "w": "ワ   ", "v": "  ヴ",
    }  # fmt: skip
    table = {kana: (c, v) for c, row in rows.items() for kana, v in zip(row, "aiɯeo", strict=False) if kana != " "}
    single = {"シ": "ɕ i", "チ": "tɕ i", "ツ": "ts ɯ", "ジ": "dʑ i", "ヂ": "dʑ i", "ヅ": "z ɯ", "フ": "ɸ ɯ"}
    table |= {kana: (sounds.split()[0], sounds.split()[1]) for kana, sounds in single.items()}
    return table | {"ヲ": ("", "o"), "ヰ": ("", "i"), "ヱ": ("", "e")}


_KANA = _rows()
_SMALL_Y = {"ャ": "a", "ュ": "ɯ", "ョ": "o"}
_SMALL_VOWEL = {"ァ": "a", "ィ": "i", "ゥ": "ɯ", "ェ": "e", "ォ": "o"}
_LETTERS = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "エー ビー シー ディー イー エフ ジー エイチ アイ ジェー ケー エル エム エヌ オー ピー キュー アール エス "
        "ティー ユー ブイ ダブリュー エックス ワイ ゼット".split(),
        strict=True,
    )
)


def _read(clause: str) -> list[str]:
    """Sounds of a clause by a dictionary's pronunciation of each word; Latin letters by their names."""
    text = without_silent_signs(clause)
    with _lock:
        words = [(token.surface, token.phonetic) for token in _analyser().tokenize(text)]
    units: list[str] = []
    for surface, phonetic in _join_numbers(words):
        kana = surface if phonetic == "*" else phonetic
        kana = "".join(_LETTERS.get(c.upper(), c) if c.isascii() else c for c in kana)
        kana = "".join(chr(ord(c) + 0x60) if "ぁ" <= c <= "ゖ" else c for c in kana)
        units += _read_kana("".join(c for c in kana if c.isalpha()), text)
    return units


_NUMERALS = frozenset("零一二三四五六七八九十百千万億")
_COUNTED = frozenset("人時本分匹回個階杯")
_CHANGED = {
    "サンヒャク": "サンビャク", "ロクヒャク": "ロッピャク", "ハチヒャク": "ハッピャク", "サンセン": "サンゼン",
    "ハチセン": "ハッセン", "ヨンジ": "ヨジ", "キュージ": "クジ", "ヨンニン": "ヨニン", "イチホン": "イッポン",
    "サンホン": "サンボン", "ロクホン": "ロッポン", "ハチホン": "ハッポン", "イチフン": "イップン",
    "サンフン": "サンプン", "ヨンフン": "ヨンプン", "ロクフン": "ロップン", "ハチフン": "ハップン",
    "ジューフン": "ジュップン", "イチヒキ": "イッピキ", "サンヒキ": "サンビキ",
    "ロクヒキ": "ロッピキ", "イチカイ": "イッカイ", "イチコ": "イッコ", "ロクコ": "ロッコ",
    "イチハイ": "イッパイ", "サンハイ": "サンバイ",
}  # fmt: skip


def _join_numbers(words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Numbers with what they count as one word each, in which sounds have changed: 三百 is san-byaku."""
    joined: list[tuple[str, str]] = []
    for surface, phonetic in words:
        counts = bool(joined) and set(joined[-1][0]) <= _NUMERALS
        if counts and (set(surface) <= _NUMERALS or surface in _COUNTED):
            before, reading = joined.pop()
            joined.append((before + surface, reading + phonetic))
        else:
            joined.append((surface, phonetic))
    people = {"一人": "ヒトリ", "二人": "フタリ"}
    result = []
    for surface, phonetic in joined:
        if set(surface) & _NUMERALS:
            for before, after in _CHANGED.items():
                phonetic = phonetic.replace(before, after)
        result.append((surface, people.get(surface, phonetic)))
    return result


def _read_kana(kana: str, text: str) -> list[str]:
    units: list[str] = []
    for c in kana:
        if c in _KANA:
            units += [part for part in _KANA[c] if part]
        elif c in _SMALL_Y and len(units) > 1:
            base = units[-2]
            units[-2:] = [base if base in ("ɕ", "tɕ", "dʑ", "j") else base + "ʲ", _SMALL_Y[c]]
        elif c in _SMALL_VOWEL:
            if units[-1:] == ["ɯ"] and (len(units) < 2 or units[-2] in "aiɯeo"):  # ウィ
                units[-1:] = ["w"]
            elif units and units[-1] in "aiɯeo":  # ファ, ティ
                units.pop()
            units.append(_SMALL_VOWEL[c])
        elif c == "ー" and units:
            units[-1] += "ː"
        elif c == "ッ":
            units.append("q")
        elif c == "ン":
            units.append("ɴ")
        elif c != "ー":
            raise UsageError(f"cannot speak {c} in language 'ja': {text[:60]!r}")
    return units


LANGUAGE = Language(
    code="ja",
    point="点",
    minus="マイナス",
    percent=("パーセント",),
    signs=signs("プラス", "イコール", "アンド", "アット", "度"),
    scripts=("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC"),
    fold=fold_ideographic_zero,
    word_blanks=False,
    number_blanks=False,
    read=_read,
    packages=("janome",),
    decimal=".",
    groups=",",
    decimals="digits",
    fraction="{below}分の{above}",
    to="から",
    order="ymd",
    date="{year}年{month}月{day}日",
    time="{hour}時{minute}分",
    full_hour="{hour}時",
    money={"¥": ("円",), "￥": ("円",), "$": ("ドル",), "€": ("ユーロ",), "£": ("ポンド",)},
    money_as_decimal=True,
    scales="[百千]?[万億]",
    units={
        **units("キロメートル", "メートル", "センチメートル", "キログラム", "グラム", "リットル", "度"),
        "℃": ("度",),
    },
)  # fmt: skip
