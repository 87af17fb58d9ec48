"""Turkish: numbers and ordinals of our own, a dotted and a dotless i, endings behind an apostrophe.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import read_dotted_years, read_short_dotted_ordinals, roman_ordinal
from myxtts.text.numbers import ordinal


def _lower(text: str) -> str:
    """With both letters i in their own small form."""
    return text.replace("İ", "i").replace("I", "ı").lower()


# num2words writes Turkish numbers without blanks.
_ONES = ["", *"bir iki üç dört beş altı yedi sekiz dokuz".split()]
_TENS = ["", *"on yirmi otuz kırk elli altmış yetmiş seksen doksan".split()]
_SCALES = ["", *"bin milyon milyar trilyon katrilyon kentilyon sekstilyon septilyon oktilyon".split()]


def _say_number(number: int, language: Language) -> str:
    if number == 0:
        return "sıfır"
    words: list[str] = []
    scale = 0
    while number:
        number, group = divmod(number, 1000)
        hundreds, rest = divmod(group, 100)
        said = [_ONES[hundreds] if hundreds > 1 else "", "yüz" if hundreds else "",
                _TENS[rest // 10], _ONES[rest % 10]]  # fmt: skip
        if scale == 1 and group == 1:
            said = []  # a thousand is "bin", not "bir bin"
        if group:
            words = [*said, _SCALES[scale], *words]
        scale += 1
    return " ".join(filter(None, words))


def _say_ordinal(number: int, language: Language) -> str:
    words = _say_number(number, language)
    if words.endswith("dört"):
        return words[:-1] + "düncü"
    last = [c for c in words if c in "aıeioöuü"][-1]
    vowel = {"a": "ı", "ı": "ı", "e": "i", "i": "i", "o": "u", "u": "u", "ö": "ü", "ü": "ü"}[last]
    return words + (f"nc{vowel}" if words[-1] in "aıeioöuü" else f"{vowel}nc{vowel}")


def _read_ordinals(text: str, language: Language) -> str:
    """3. and 3'üncü."""
    text = read_short_dotted_ordinals(text, language)
    text = re.sub(r"\b(\d{1,3})'?(?:[iuüı]nc[iuüı])\b", lambda m: ordinal(m[1], language), text)
    return read_dotted_years(text, language)


def _join_endings(text: str, language: Language) -> str:
    """An ending joins its number: 1937'de."""
    return re.sub(r"(?<=\w) (?='\w)", "", text)


LANGUAGE = Language(
    code="tr",
    point="virgül",
    minus="eksi",
    percent=("yüzde",),
    signs=signs("artı", "eşittir", "ve", "et işareti", "derece"),
    lower=_lower,
    number=_say_number,
    ordinal=_say_ordinal,
    over="bölü",
    to=" ila ",
    roman=roman_ordinal,
    months=months("Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık"),
    clock_words=("[sS]aat", ""),
    percent_first=True,
    percent_sign="before",
    money={"₺": ("lira",), "TL": ("lira",), "$": ("dolar",), "€": ("avro",), "£": ("sterlin",)},
    scales="bin|milyon|milyar",
    units=units("kilometre", "metre", "santimetre", "kilogram", "gram", "litre", "santigrat_derece"),
    abbreviations={
        "dr.": "doktor", "prof.": "profesör", "doç.": "doçent", "vb.": "ve benzeri", "vs.": "vesaire",
        "örn.": "örneğin", "cad.": "caddesi", "sok.": "sokak", "mah.": "mahallesi", "no.": "numara",
        "yy.": "yüzyıl", "bkz.": "bakınız", "m.ö.": "milattan önce", "m.s.": "milattan sonra",
    },
    ordinals=_read_ordinals,
    after_numbers=_join_endings,
)  # fmt: skip
