"""Italian.

In: nothing.
Out: `LANGUAGE`.
"""

from myxtts.text.abbreviations import before_number
from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import BEFORE_INITIALS, read_romance_ordinals, roman_ordinal

LANGUAGE = Language(
    code="it",
    point="virgola",
    minus="meno",
    percent=("per cento",),
    signs=signs("più", "uguale a", "e", "chiocciola", "gradi"),
    over="su",
    to=" a ",
    roman=roman_ordinal,
    months=months(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
    ),
    time="{hour} e {minute}",
    clock_words=("[aA]lle|[dD]alle|ore", ""),
    money={"€": ("euro",), "$": ("dollaro", "dollari"), "£": ("sterlina", "sterline"), "¥": ("yen",)},
    scales="mila|milion[ei]|miliard[io]",
    of="di ",
    of_behind=("milione", "milioni", "miliardo", "miliardi"),
    units=units(
        "chilometro chilometri", "metro metri", "centimetro centimetri", "chilogrammo chilogrammi", "grammo grammi",
        "litro litri", "grado_Celsius gradi_Celsius",
    ),
    abbreviations={
        "sig.": "signor", "sig.ra": "signora", "sigg.": "signori", "dott.": "dottor", "dott.ssa": "dottoressa",
        "prof.": "professor", "prof.ssa": "professoressa", "ing.": "ingegner", "avv.": "avvocato",
        "ad es.": "ad esempio", "ecc.": "eccetera", "p.zza": "piazza", "n.": "numero",
        "pag.": "pagina", "a.c.": "avanti Cristo", "d.c.": "dopo Cristo", "c.so": "corso",
    },
    abbreviation_fits={"n.": before_number},
    before_initials=BEFORE_INITIALS,
    ordinals=read_romance_ordinals,
)  # fmt: skip
