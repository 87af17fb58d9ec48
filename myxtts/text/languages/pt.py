"""Portuguese, as it is spoken in Brazil.

In: nothing.
Out: `LANGUAGE`.
"""

from myxtts.text.abbreviations import behind_number
from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import BEFORE_INITIALS, before_don, read_romance_ordinals, roman_to_ten

LANGUAGE = Language(
    code="pt",
    point="vírgula",
    minus="menos",
    percent=("por cento",),
    signs=signs("mais", "igual a", "e", "arroba", "graus"),
    espeak="pt-br",
    num2words="pt_BR",
    over="sobre",
    to=" a ",
    roman=roman_to_ten,
    months=months("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
    date="{day} de {month} de {year}",
    time="{hour} e {minute}",
    clock_letter="h",
    clock_words=("às", ""),
    money={
        "US$": ("dólar", "dólares"), "R$": ("real", "reais"), "$": ("dólar", "dólares"), "€": ("euro", "euros"),
        "£": ("libra", "libras"),
    },
    scales="mil|milh(?:ão|ões)|bilh(?:ão|ões)",
    of="de ",
    of_behind=("milhão", "milhões"),
    units=units(
        "quilômetro quilômetros", "metro metros", "centímetro centímetros", "quilograma quilogramas",
        "grama gramas", "litro litros", "grau_Celsius graus_Celsius",
    ),
    abbreviations={
        "sr.": "senhor", "sra.": "senhora", "srta.": "senhorita", "dr.": "doutor", "dra.": "doutora",
        "d.": "dom", "prof.": "professor", "profa.": "professora", "p.ex.": "por exemplo", "etc.": "et cetera",
        "av.": "avenida", "r.": "rua", "nº": "número", "n.º": "número", "pág.": "página", "a.c.":
        "antes de Cristo", "d.c.": "depois de Cristo", "exmo.": "excelentíssimo",
    },
    abbreviation_fits={"d.": before_don, "r.": behind_number},
    ending_abbreviations=("etc.",),
    before_initials=BEFORE_INITIALS,
    ordinals=read_romance_ordinals,
)  # fmt: skip
