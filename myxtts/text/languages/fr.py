"""French: the first of a month, times with an h, ordinals with their endings.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import BEFORE_INITIALS, roman_cardinal
from myxtts.text.numbers import cardinal, ordinal, plain_ordinal


def _say_ordinal(number: int, language: Language) -> str:
    return "premier" if number == 1 else plain_ordinal(number, language)


def _say_day(day: str, language: Language) -> str:
    return ordinal(day, language) if int(day) == 1 else cardinal(day, language)


def _read_ordinals(text: str, language: Language) -> str:
    text = re.sub(r"\b1re\b", "première", text)
    return re.sub(r"\b(\d+)(?:er|ère|e|ème|ième)\b", lambda m: ordinal(m[1], language), text)


LANGUAGE = Language(
    code="fr",
    point="virgule",
    minus="moins",
    percent=("pour cent",),
    signs=signs("plus", "égale", "et", "arobase", "degrés"),
    groups=" ",
    ordinal=_say_ordinal,
    over="sur",
    to=" à ",
    roman=roman_cardinal,
    months=months("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    day=_say_day,
    time="{hour} heures {minute}",
    full_hour="{hour} heures",
    clock_letter="h",
    money={"€": ("euro", "euros"), "$": ("dollar", "dollars"), "£": ("livre", "livres"), "¥": ("yen", "yens")},
    scales="mille|millions?|milliards?",
    of="de ",
    of_behind=("million", "millions", "milliard", "milliards"),
    units=units(
        "kilomètre kilomètres", "mètre mètres", "centimètre centimètres", "kilogramme kilogrammes",
        "gramme grammes", "litre litres", "degré_Celsius degrés_Celsius",
    ),
    abbreviations={
        "m.": "monsieur", "mm.": "messieurs", "mme": "madame", "mlle": "mademoiselle", "dr": "docteur",
        "p.ex.": "par exemple", "etc.": "et cetera", "bd": "boulevard", "av.": "avenue",
        "c.-à-d.": "c'est-à-dire", "env.": "environ", "n°": "numéro", "st": "saint", "ste": "sainte",
        "av.j.-c.": "avant Jésus-Christ",
    },
    ending_abbreviations=("etc.",),
    before_initials=BEFORE_INITIALS,
    ordinals=_read_ordinals,
)  # fmt: skip
