"""English: initials, fractions and decades, and a street for a saint.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import BEFORE_INITIALS, in_hundreds, is_name, read_years
from myxtts.text.numbers import cardinal, form_of, ordinal, year


def _read_hours_of_half_days(text: str, language: Language) -> str:
    """7pm, 7 p.m. and their like."""
    return re.sub(r"(?<=\d)\s?([ap])\.?m\b\.?", lambda m: f" {m[1]}.m.", text, flags=re.IGNORECASE)


def _read_no(text: str, language: Language) -> str:
    """No. 7, but not "He said no."."""
    return re.sub(r"\bNo\.(?=\s*\d)", "number", text)


_AFTER_A_NAME = {"st.": "street", "dr.": "drive", "ft.": "fort"}


def _read_street(name: str, before: str, after: str) -> str | None:
    """Main St. and Smith Dr., but St. Mary."""
    if name in _AFTER_A_NAME and re.search(r"(?:[A-Z]\w*|\d(?:st|nd|rd|th)) $", before):
        return _AFTER_A_NAME[name] + ("." if not after.strip() else "")
    return None


def _before_capital(before: str, after: str) -> bool:
    return re.match(r"\s[A-Z]", after) is not None


def _read_ordinals(text: str, language: Language) -> str:
    """The 21st, May 5, the 1990s."""
    text = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", lambda m: ordinal(m[1], language), text)
    text = re.sub(
        rf"\b({'|'.join(language.months)}) (\d{{1,2}})(?![\d:.]\d|\d|%)",
        lambda m: f"{m[1]} {ordinal(m[2], language)}",
        text,
    )
    decades = r"(?<!\d)((?:1[1-9]|20)\d0|[1-9]0)'?s\b"
    return re.sub(decades, lambda m: re.sub("y$", "ie", year(m[1], language)) + "s", text)


def _say_fraction(above: str, below: str, language: Language) -> str:
    if below in ("2", "4"):
        part = {"2": ("half", "halves"), "4": ("quarter", "quarters")}[below]
        return f"{cardinal(above, language)} {form_of(above, part, language)}"
    if int(above) >= int(below) or int(below) not in (3, *range(5, 11), 12, 16, 20):
        return f"{cardinal(above, language)} {cardinal(below, language)}"  # 24/7, 9/11
    return f"{cardinal(above, language)} {ordinal(below, language)}{'' if above == '1' else 's'}"


_NUMBERED = ("War", "Part", "Chapter", "Act", "Volume", "Type", "Phase", "Section", "Book", "Class", "Level", "Bowl")


def _read_roman(number: str, word: str, after: str, language: Language) -> str | None:
    """Louis the fourteenth and World War two, but an IV drip."""
    if word in _NUMBERED or (re.match(r"\s*(?:century|and|$)", after) and not is_name(word)):
        return cardinal(number, language)
    return f"the {ordinal(number, language)}" if is_name(word) else None


LANGUAGE = Language(
    code="en",
    point="point",
    minus="minus",
    percent=("percent",),
    signs={**signs("plus", "equals", "and", "at", "degrees"), "#": "number"},
    espeak="en-us",
    decimal=".",
    groups=",",
    decimals="digits",
    year=in_hundreds(range(1100, 2000), range(2010, 2100)),
    over="over",
    say_fraction=_say_fraction,
    to=" to ",
    roman=_read_roman,
    months=months(
        "January February March April May June July August September October November December"
    ),
    order="mdy",
    date="{month} {day}, {year}",
    day=ordinal,
    zero_minute="oh ",
    money={"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros"), "¥": ("yen",)},
    cents={"$": ("cent", "cents"), "€": ("cent", "cents"), "£": ("penny", "pence")},
    scales="million|billion|trillion|thousand",
    short_scales={"m": "million", "M": "million", "bn": "billion", "k": "thousand", "K": "thousand"},
    units={
        **units(
            "kilometer kilometers", "meter meters", "centimeter centimeters", "kilogram kilograms", "gram grams",
            "liter liters", "degree_Celsius degrees_Celsius",
        ),
        "mph": ("mile per hour", "miles per hour"),
        "km/h": ("kilometer per hour", "kilometers per hour"), "ft": ("foot", "feet"), "ft.": ("foot", "feet"),
        "lb": ("pound", "pounds"), "ml": ("milliliter", "milliliters"),
    },
    abbreviations={
        "mr.": "mister", "mrs.": "missus", "ms.": "miz", "dr.": "doctor", "st.": "saint", "co.": "company",
        "jr.": "junior", "sr.": "senior", "maj.": "major", "gen.": "general", "rev.": "reverend",
        "lt.": "lieutenant", "hon.": "honorable", "sgt.": "sergeant", "capt.": "captain", "esq.": "esquire",
        "ltd.": "limited", "col.": "colonel", "ft.": "fort", "vs.": "versus", "etc.": "et cetera",
        "mt.": "mount",
        "jan.": "January", "feb.": "February", "aug.": "August", "sept.": "September", "oct.": "October",
        "nov.": "November", "dec.": "December", "prof.": "professor", "e.g.": "for example",
        "i.e.": "that is", "a.m.": "A.M", "p.m.": "P.M",
        "approx.": "approximately", "ave.": "avenue", "dept.": "department", "inc.": "incorporated",
    },
    abbreviation_fits={"ft.": _before_capital},
    read_abbreviation=_read_street,
    ending_abbreviations=("a.m.", "p.m.", "etc."),
    counting_abbreviations=("no.", "nos.", "fig.", "vol.", "ch.", "p.", "pp.", "sec."),
    before_initials=BEFORE_INITIALS,
    before_abbreviations=_read_hours_of_half_days,
    before_numbers=_read_no,
    ordinals=_read_ordinals,
    counted=read_years,
)  # fmt: skip
