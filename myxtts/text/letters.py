"""One spelling for each letter: compatibility forms, digits of all scripts, and what the language itself folds.

In: text as the user typed or copied it.
Out: text in NFC in which the same word is always the same characters.
"""

import re
import unicodedata

from myxtts.text.languages.language import Language

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
_SHADDA = "\u0651"
_VOWEL_THEN_SHADDA = re.compile(f"([\u064b-\u0650\u0652])({_SHADDA})")


def fold(text: str, language: Language) -> str:
    """The spelling that the rest of the front end expects."""
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅛])", " ", text)
    text = "".join(unicodedata.normalize("NFKC", c) if _is_compatible(c) else c for c in text)
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text).translate(_PLAIN)
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Zs", "Zl", "Zp") else c for c in text)
    text = language.fold(text)
    return text if language.half_spaces else text.replace(ZWNJ, "")


def _is_compatible(character: str) -> bool:
    """Full and half width forms, Arabic presentation forms, Latin ligatures, written fractions."""
    code = ord(character)
    return 0xFB00 <= code <= 0xFDFB or 0xFE70 <= code <= 0xFEFC or 0xFF01 <= code <= 0xFFEE or character in "½⅓⅔¼¾⅕⅛"


def order_for_espeak(text: str) -> str:
    """Shadda before its vowel, as espeak-ng reads it; Unicode's order is the other way round."""
    return _VOWEL_THEN_SHADDA.sub(r"\2\1", text)
