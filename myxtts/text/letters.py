"""One spelling for each letter: compatibility forms, digits of all scripts, Arabic and Persian variants.

In: text as the user typed or copied it.
Out: text in NFC in which the same word is always the same characters.
"""

import re
import unicodedata

ZWNJ = "\u200c"  # the half-space of Persian

_PLAIN = str.maketrans(
    {
        "“": '"', "”": '"', "„": '"', "‟": '"', "«": '"', "»": '"', "‹": "'", "›": "'", "’": "'", "‘": "'", "‚": "'",
        "ʼ": "'", "`": "'", "´": "'", "–": "-", "‐": "-", "‑": "-", "−": "-", "—": " - ", "―": " - ", "…": "...",
        "⁄": "/", "٪": "%", "٫": ".", "٬": ",", "\u00ad": "", "\ufeff": "", "\u200b": "", "\u200d": "",
        "\u2060": "", "\u200e": "", "\u200f": "", "\u061c": "",
        **{chr(c): "" for c in range(0x202A, 0x202F)}, **{chr(c): "" for c in range(0x2066, 0x206A)},
    }
)  # fmt: skip
# Letters that are the same letter typed on another keyboard.
_PERSIAN = str.maketrans(
    {"ي": "ی", "ى": "ی", "ې": "ی", "ك": "ک", "ڪ": "ک", "ہ": "ه", "ھ": "ه", "ە": "ه", "ۃ": "ة", "ٱ": "ا", "ـ": "",
     "¬": ZWNJ}
)  # fmt: skip
_ARABIC = str.maketrans({"ی": "ي", "ک": "ك", "ہ": "ه", "ھ": "ه", "ٱ": "ا", "ـ": "", ZWNJ: ""})
_SHADDA = "\u0651"
_VOWEL_THEN_SHADDA = re.compile(f"([\u064b-\u0650\u0652])({_SHADDA})")
_PERSIAN_LETTER = "[\u0621-\u06d3\u064b-\u0655]"


def fold(text: str, language: str) -> str:
    """The spelling that the rest of the front end expects."""
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅛])", " ", text)
    text = "".join(unicodedata.normalize("NFKC", c) if _is_compatible(c) else c for c in text)
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text).translate(_PLAIN)
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Zs", "Zl", "Zp") else c for c in text)
    if language == "fa":
        return _fold_persian(text)
    if language == "ar":
        return text.translate(_ARABIC)
    if language in ("zh", "ja"):
        text = text.replace("〇", "零")
    if language == "ru":
        text = re.sub("[\u0300\u0301]", "", text)  # stress marks, which espeak-ng does not read
    return text.replace(ZWNJ, "") if language != "hi" else text  # Devanagari joins and parts letters with it


def _is_compatible(character: str) -> bool:
    """Full and half width forms, Arabic presentation forms, Latin ligatures, written fractions."""
    code = ord(character)
    return 0xFB00 <= code <= 0xFDFB or 0xFE70 <= code <= 0xFEFC or 0xFF01 <= code <= 0xFFEE or character in "½⅓⅔¼¾⅕⅛"


def _fold_persian(text: str) -> str:
    text = text.translate(_PERSIAN)
    text = re.sub(f"ۀ|ه[ {ZWNJ}]ی(?= )", "هٔ", text)  # one spelling of the ezafe after a silent he
    text = re.sub(r"(?<=\d)،(?=\d{3}(?!\d))", ",", text)
    text = re.sub("ة(?=[ \u200c]?ال)", "ت", text).replace("ة", "ه")
    text = re.sub("(?<![\u0621-\u06d3])[أإ]", "ا", text)  # a carrier of hamza begins no Persian word
    text = re.sub(f"{ZWNJ}+", ZWNJ, text)
    text = re.sub(f"(?<!{_PERSIAN_LETTER}){ZWNJ}|{ZWNJ}(?!{_PERSIAN_LETTER})", "", text)  # only between letters
    # The prefix and the endings that are written apart, joined by a half-space as the academy asks.
    text = re.sub(r"(?<!\S)(ن?می) (?=[\u0621-\u06d3]{2,})", rf"\1{ZWNJ}", text)
    return re.sub(r"(?<=[\u0621-\u06d3]) (ها|های|هایی|هایم|هایت|هایش|هایمان|هایتان|هایشان|تر|ترین)(?![^\s.,،؛؟!:\"»])",
                  rf"{ZWNJ}\1", text)  # fmt: skip


def order_for_espeak(text: str) -> str:
    """Shadda before its vowel, as espeak-ng reads it; Unicode's order is the other way round."""
    return _VOWEL_THEN_SHADDA.sub(r"\2\1", text)
