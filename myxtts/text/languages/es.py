"""Spanish: don before a name, a century before its Roman number.

In: nothing.
Out: `LANGUAGE`.
"""

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import BEFORE_INITIALS, before_don, read_romance_ordinals, roman_to_ten


def _before_roman(before: str, after: str) -> bool:
    return after.lstrip()[:1] in ("I", "V", "X")


LANGUAGE = Language(
    code="es",
    point="coma",
    minus="menos",
    percent=("por ciento",),
    signs=signs("más", "igual a", "y", "arroba", "grados"),
    over="sobre",
    to=" a ",
    roman=roman_to_ten,
    months=months(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    ),
    date="{day} de {month} de {year}",
    time="{hour} y {minute}",
    clock_words=("a las", ""),
    money={"$": ("dólar", "dólares"), "€": ("euro", "euros"), "£": ("libra", "libras"), "¥": ("yen", "yenes")},
    scales="mil|mill[oó]n(?:es)?",
    of="de ",
    of_behind=("millón", "millon", "millones", "millónes"),
    units=units(
        "kilómetro kilómetros", "metro metros", "centímetro centímetros", "kilogramo kilogramos", "gramo gramos",
        "litro litros", "grado_Celsius grados_Celsius",
    ),
    abbreviations={
        "sr.": "señor", "sra.": "señora", "srta.": "señorita", "dr.": "doctor", "dra.": "doctora", "d.": "don",
        "ud.": "usted", "uds.": "ustedes", "p.ej.": "por ejemplo", "etc.": "etcétera", "avda.": "avenida",
        "av.": "avenida", "n.º": "número", "núm.": "número", "pág.": "página", "prof.": "profesor", "s.": "siglo",
        "ee.uu.": "Estados Unidos", "a.c.": "antes de Cristo", "d.c.": "después de Cristo", "aprox.":
        "aproximadamente",
    },
    abbreviation_fits={"d.": before_don, "s.": _before_roman},
    ending_abbreviations=("etc.",),
    before_initials=BEFORE_INITIALS,
    ordinals=read_romance_ordinals,
)  # fmt: skip
