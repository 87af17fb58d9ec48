"""Hungarian: endings behind a hyphen join their number.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.abbreviations import behind_number
from myxtts.text.languages.language import JOINT, Language, months, signs, units
from myxtts.text.languages.shared import read_dotted_ordinals, roman_ordinal


def _join_endings(text: str, language: Language) -> str:
    """65%-a, 31-én."""
    return re.sub(r"(?<=[\d%€$£])-(?=[^\W\d])", JOINT, text)


LANGUAGE = Language(
    code="hu",
    point="egész",
    minus="mínusz",
    percent=("százalék",),
    signs=signs("plusz", "egyenlő", "és", "kukac", "fok"),
    groups=" ",
    decimals="num2words",
    over="per",
    roman=roman_ordinal,
    months=months(
        "január február március április május június július augusztus szeptember október november december"
    ),
    order="ymd",
    date="{year} {month} {day}",
    time="{hour} óra {minute}",
    full_hour="{hour} óra",
    clock_words=("", f"{JOINT}?kor|-kor|óra"),
    money={"Ft": ("forint",), "€": ("euró",), "$": ("dollár",), "£": ("font",)},
    scales="ezer|millió|milliárd",
    units={**units("kilométer", "méter", "centiméter", "kilogramm", "gramm", "liter", "Celsius-fok"),
           "dkg": ("dekagramm",), "dl": ("deciliter",)},
    abbreviations={
        "pl.": "például", "stb.": "és a többi", "kb.": "körülbelül", "dr.": "doktor", "prof.": "professzor",
        "ill.": "illetve", "ún.": "úgynevezett", "u.": "utca", "sz.": "szám", "old.": "oldal",
        "i.e.": "időszámításunk előtt", "kft.": "káefté", "ti.": "tudniillik",
    },
    abbreviation_fits={"u.": behind_number},
    after_separators=_join_endings,
    ordinals=read_dotted_ordinals,
)  # fmt: skip
