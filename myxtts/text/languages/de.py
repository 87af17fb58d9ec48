"""German: ordinals and their cases, one before a noun, kings with an article.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.abbreviations import before_number
from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import (
    BEFORE_INITIALS,
    in_hundreds,
    is_name,
    read_days,
    read_days_and_months,
    read_years,
)
from myxtts.text.numbers import ordinal


def _read_streets(text: str, language: Language) -> str:
    """Hauptstr. 5."""
    return re.sub(r"(?<=\w)str\.", "straße", text)


def _say_day(day: str, language: Language) -> str:
    return ordinal(day, language) + "n"


def _read_ordinals(text: str, language: Language) -> str:
    """One as an article, and a number with a dot in the case that the word before tells."""
    text = re.sub(r"(?<![\d.,])1 (?=(?:Sekunde|Minute|Stunde|Woche|Million|Milliarde)\b)", "eine ", text)
    text = re.sub(r"(?<![\d.,])1 (?=[A-ZÄÖÜ])", "ein ", text)
    inflected = r"am|im|vom|zum|zur|dem|den|des|(?:sein|ihr|mein|dein|unser|jed)e[nmr]"
    dotted = r"(\d{1,3})\.(?= [A-ZÄÖÜ])"
    text = re.sub(rf"\b((?i:{inflected})) {dotted}", lambda m: f"{m[1]} {ordinal(m[2], language)}n", text)
    return re.sub(rf"\b((?i:der|die|das)) {dotted}", lambda m: f"{m[1]} {ordinal(m[2], language)}", text)


def _shorten_one(text: str, language: Language) -> str:
    """Before a noun it is "ein"."""
    return re.sub(r"\beins\s+(?=[A-ZÄÖÜ])", "ein ", text)


def _read_roman(number: str, word: str, after: str, language: Language) -> str:
    return f"der {ordinal(number, language)}" if is_name(word) else ordinal(number, language)


LANGUAGE = Language(
    code="de",
    point="Komma",
    minus="minus",
    percent=("Prozent",),
    signs=signs("plus", "gleich", "und", "at", "Grad"),
    year=in_hundreds(range(1100, 2000)),
    over="durch",
    to=" bis ",
    roman=_read_roman,
    months=months("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
    day=_say_day,
    time="{hour} Uhr {minute}",
    full_hour="{hour} Uhr",
    hour_word="Uhr",
    clock_words=("", "Uhr"),
    money={"€": ("Euro",), "$": ("Dollar",), "£": ("Pfund",), "¥": ("Yen",), "CHF": ("Franken",)},
    scales="Tausend|Millionen?|Milliarden?|Mio\\.|Mrd\\.",
    units=units("Kilometer", "Meter", "Zentimeter", "Kilogramm", "Gramm", "Liter", "Grad_Celsius"),
    abbreviations={
        "z.b.": "zum Beispiel", "d.h.": "das heißt", "u.a.": "unter anderem", "usw.": "und so weiter",
        "bzw.": "beziehungsweise", "ca.": "circa", "dr.": "Doktor", "prof.": "Professor", "hr.": "Herr",
        "fr.": "Frau", "nr.": "Nummer", "str.": "Straße", "evtl.": "eventuell", "ggf.": "gegebenenfalls",
        "inkl.": "inklusive", "mio.": "Millionen", "mrd.": "Milliarden", "st.": "Sankt", "vgl.": "vergleiche",
        "s.": "Seite", "v.chr.": "vor Christus", "n.chr.": "nach Christus",
    },
    abbreviation_fits={"s.": before_number},
    before_initials=BEFORE_INITIALS,
    before_numbers=_read_streets,
    before_dates=read_days_and_months,
    after_dates=read_days,
    ordinals=_read_ordinals,
    counted=read_years,
    after_numbers=_shorten_one,
)  # fmt: skip
