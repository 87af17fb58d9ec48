"""Hindi: numbers of our own, in lakhs and crores.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.numbers import cardinal, ordinal

_UP_TO_99 = (
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस बीस इक्कीस बाईस तेईस चौबीस "
    "पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस चालीस इकतालीस "
    "बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन "
    "उनसठ साठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर "
    "सतहत्तर अठहत्तर उनासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी नब्बे इक्यानवे बानवे तिरानवे "
    "चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
).split()


def _say_number(number: int, language: Language) -> str:
    if number < 100:
        return _UP_TO_99[number]
    for power, name in ((10**9, "अरब"), (10**7, "करोड़"), (10**5, "लाख"), (10**3, "हज़ार"), (100, "सौ")):
        if number >= power:
            above, rest = divmod(number, power)
            return f"{_say_number(above, language)} {name}" + (f" {_say_number(rest, language)}" if rest else "")
    raise AssertionError


_FIRST = ("पहला", "दूसरा", "तीसरा", "चौथा", "पाँचवाँ", "छठा")


def _say_ordinal(number: int, language: Language) -> str:
    return _FIRST[number - 1] if 1 <= number <= 6 else cardinal(str(number), language) + "वाँ"


def _drop_commas(text: str, language: Language) -> str:
    """Thousands, lakhs and crores stand in groups of two and three digits: 3,75,00,000."""
    return re.sub(r"(?<=\d),(?=\d)", "", text)


def _read_ordinals(text: str, language: Language) -> str:
    """Masculine, feminine and inflected ones."""

    def plain(match: re.Match[str]) -> str:
        return ordinal(match[1], language)

    text = re.sub(r"(\d+)(?:वाँ|वां)", plain, text)
    text = re.sub(r"(\d+)वीं", lambda m: re.sub("वाँ$", "वीं", re.sub("ा$", "ी", plain(m))), text)
    return re.sub(r"(\d+)वें", lambda m: re.sub("वाँ$", "वें", re.sub("ा$", "े", plain(m))), text)


LANGUAGE = Language(
    code="hi",
    point="दशमलव",
    minus="माइनस",
    percent=("प्रतिशत",),
    signs=signs("प्लस", "बराबर", "और", "ऐट", "डिग्री"),
    scripts=("DEVANAGARI",),
    vowel_marks="\u0900-\u097f",
    half_spaces=True,  # they join and part the letters of Devanagari
    decimal=".",
    groups=",",
    decimals="digits",
    number=_say_number,
    ordinal=_say_ordinal,
    over="बटा",
    to=" से ",
    months=months("जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर"),
    money={"₹": ("रुपया", "रुपये"), "$": ("डॉलर",), "€": ("यूरो",), "£": ("पाउंड",)},
    money_as_decimal=True,
    scales="हज़ार|लाख|करोड़",
    units={**units("किलोमीटर", "मीटर", "सेंटीमीटर", "किलोग्राम", "ग्राम", "लीटर", "डिग्री_सेल्सियस"),
           "किमी": ("किलोमीटर",)},
    abbreviations={
        "डॉ.": "डॉक्टर", "प्रो.": "प्रोफ़ेसर", "श्री.": "श्री", "रु.": "रुपये", "कि.मी.": "किलोमीटर", "पं.": "पंडित",
    },
    before_numbers=_drop_commas,
    ordinals=_read_ordinals,
)  # fmt: skip
