"""Czech: words in three forms, ordinals of our own, days in the genitive.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import (
    read_days,
    read_days_and_months,
    read_dotted_ordinals,
    roman_ordinal,
    west_slavic,
)
from myxtts.text.numbers import cardinal, ordinal

_ORDINALS = (
    "nultý první druhý třetí čtvrtý pátý šestý sedmý osmý devátý desátý jedenáctý dvanáctý třináctý čtrnáctý patnáctý "
    "šestnáctý sedmnáctý osmnáctý devatenáctý"
).split()
_TENS = "dvacátý třicátý čtyřicátý padesátý šedesátý sedmdesátý osmdesátý devadesátý".split()


def _say_ordinal(number: int, language: Language) -> str:
    """Up to a hundred; num2words has none for Czech."""
    if number >= 100:
        return cardinal(str(number), language)
    tens, ones = divmod(number, 10)
    last = _ORDINALS[ones] if ones else ""
    return _ORDINALS[number] if number < 20 else f"{_TENS[tens - 2]} {last}".strip()


def _say_day(day: str, language: Language) -> str:
    """In the genitive."""
    return re.sub(r"í\b", "ího", re.sub(r"ý\b", "ého", ordinal(day, language)))


LANGUAGE = Language(
    code="cs",
    point="celá",
    minus="minus",
    percent=("procento", "procenta", "procent"),
    signs=signs("plus", "rovná se", "a", "zavináč", "stupňů"),
    groups=" ",
    ordinal=_say_ordinal,
    plural=west_slavic,
    over="lomeno",
    to=" až ",
    roman=roman_ordinal,
    months=months("ledna února března dubna května června července srpna září října listopadu prosince"),
    day=_say_day,
    clock_words=("v|ve|od|do", ""),
    money={
        "Kč": ("koruna", "koruny", "korun"), "$": ("dolar", "dolary", "dolarů"), "€": ("euro", "eura", "eur"),
        "£": ("libra", "libry", "liber"),
    },
    scales="tis\\.|mil\\.|mld\\.",
    units={
        **units(
            "kilometr kilometry kilometrů", "metr metry metrů", "centimetr centimetry centimetrů",
            "kilogram kilogramy kilogramů", "gram gramy gramů", "litr litry litrů",
            "stupeň_Celsia stupně_Celsia stupňů_Celsia",
        ),
        "tis.": ("tisíc", "tisíce", "tisíc"), "mil.": ("milion", "miliony", "milionů"),
        "mld.": ("miliarda", "miliardy", "miliard"),
    },
    abbreviations={
        "např.": "například", "atd.": "a tak dále", "apod.": "a podobně", "tj.": "to jest", "tzv.": "takzvaný",
        "dr.": "doktor", "prof.": "profesor", "ing.": "inženýr", "mudr.": "doktor",
        "ul.": "ulice", "č.": "číslo", "str.": "strana", "cca": "cirka",
        "sv.": "svatý", "př.n.l.": "před naším letopočtem", "n.l.": "našeho letopočtu",
    },
    before_dates=read_days_and_months,
    after_dates=read_days,
    ordinals=read_dotted_ordinals,
)  # fmt: skip
