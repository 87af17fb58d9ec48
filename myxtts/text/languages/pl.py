"""Polish: words in three forms, days in the genitive.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.abbreviations import before_number, behind_number
from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import (
    read_days,
    read_days_and_months,
    read_dotted_ordinals,
    roman_ordinal,
    west_slavic,
)
from myxtts.text.numbers import ordinal


def _say_day(day: str, language: Language) -> str:
    """In the genitive."""
    return re.sub(r"i\b", "iego", re.sub(r"y\b", "ego", ordinal(day, language)))


LANGUAGE = Language(
    code="pl",
    point="przecinek",
    minus="minus",
    percent=("procent", "procent", "procent"),
    signs=signs("plus", "równa się", "i", "małpa", "stopni"),
    groups=" ",
    plural=west_slavic,
    over="przez",
    to=" do ",
    roman=roman_ordinal,
    months=months(
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"
    ),
    day=_say_day,
    clock_words=("o|godzinie|od godziny|do godziny", ""),
    money={
        "zł": ("złoty", "złote", "złotych"), "$": ("dolar", "dolary", "dolarów"), "€": ("euro",),
        "£": ("funt", "funty", "funtów"),
    },
    scales="tys\\.|mln|mld",
    units={
        **units(
            "kilometr kilometry kilometrów", "metr metry metrów", "centymetr centymetry centymetrów",
            "kilogram kilogramy kilogramów", "gram gramy gramów", "litr litry litrów",
            "stopień_Celsjusza stopnie_Celsjusza stopni_Celsjusza",
        ),
        "tys.": ("tysiąc", "tysiące", "tysięcy"), "mln": ("milion", "miliony", "milionów"),
        "mld": ("miliard", "miliardy", "miliardów"),
    },
    abbreviations={
        "np.": "na przykład", "itd.": "i tak dalej", "itp.": "i tym podobne", "tzn.": "to znaczy", "tj.": "to jest",
        "m.in.": "między innymi", "dr": "doktor", "prof.": "profesor", "ul.": "ulicy", "godz.": "godzinie",
        "r.": "roku", "wg": "według", "tzw.":
        "tak zwany", "ok.": "około", "nr": "numer", "św.": "święty", "inż.": "inżynier", "m.": "mieszkania",
    },
    abbreviation_fits={"m.": before_number, "r.": behind_number},
    before_dates=read_days_and_months,
    after_dates=read_days,
    ordinals=read_dotted_ordinals,
)  # fmt: skip
