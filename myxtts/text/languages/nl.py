"""Dutch: years in hundreds, kings with an article.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import BEFORE_INITIALS, in_hundreds, is_name, read_years
from myxtts.text.numbers import cardinal, ordinal


def _read_ordinals(text: str, language: Language) -> str:
    return re.sub(r"\b(\d+)(?:e|ste|de)\b", lambda m: ordinal(m[1], language), text)


def _read_roman(number: str, word: str, after: str, language: Language) -> str:
    return f"de {ordinal(number, language)}" if is_name(word) else cardinal(number, language)


LANGUAGE = Language(
    code="nl",
    point="komma",
    minus="min",
    percent=("procent",),
    signs=signs("plus", "is", "en", "apenstaartje", "graden"),
    year=in_hundreds(range(1100, 2000)),
    over="gedeeld door",
    to=" tot ",
    roman=_read_roman,
    months=months("januari februari maart april mei juni juli augustus september oktober november december"),
    time="{hour} uur {minute}",
    full_hour="{hour} uur",
    hour_word="uur",
    clock_words=("", "uur"),
    money={"€": ("euro",), "$": ("dollar",), "£": ("pond",), "¥": ("yen",)},
    scales="duizend|miljoen|miljard",
    units=units("kilometer", "meter", "centimeter", "kilogram", "gram", "liter", "graden_Celsius"),
    abbreviations={
        "bijv.": "bijvoorbeeld", "bv.": "bijvoorbeeld", "enz.": "enzovoort", "d.w.z.": "dat wil zeggen",
        "m.a.w.": "met andere woorden", "o.a.": "onder andere", "dr.": "dokter", "prof.": "professor",
        "dhr.": "de heer", "mevr.": "mevrouw", "mr.": "meester", "nr.": "nummer", "ca.": "circa", "blz.":
        "bladzijde", "i.p.v.": "in plaats van", "t.o.v.": "ten opzichte van", "v.chr.": "voor Christus",
        "n.chr.": "na Christus", "st.": "sint",
    },
    before_initials=BEFORE_INITIALS,
    ordinals=_read_ordinals,
    counted=read_years,
)  # fmt: skip
