"""Arabic: letters as Arabic keyboards write them, signs for the halves of the day.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, months, signs
from myxtts.text.languages.shared import ARABIC_VOWELS
from myxtts.text.letters import ZWNJ
from myxtts.text.numbers import ask_num2words

# Letters that are the same letter typed on another keyboard.
_SAME = str.maketrans({"ی": "ي", "ک": "ك", "ہ": "ه", "ھ": "ه", "ٱ": "ا", "ـ": "", ZWNJ: ""})


def _fold(text: str) -> str:
    return text.translate(_SAME)


def _say_number(number: int, language: Language) -> str:
    return "صفر" if number == 0 else " ".join(ask_num2words(number, language).split())


def _read_halves_of_the_day(text: str, language: Language) -> str:
    text = re.sub(r"(\d:\d\d) ص(?!\w)", r"\1 صباحًا", text)
    text = re.sub(r"(\d:\d\d) م(?!\w)", r"\1 مساءً", text)
    return re.sub(r"(?<!\d)(\d{4}) م(?!\w)", r"\1 ميلادية", text)


LANGUAGE = Language(
    code="ar",
    point="فاصلة",
    minus="ناقص",
    percent=("بالمئة",),
    signs=signs("زائد", "يساوي", "و", "آت", "درجة"),
    scripts=("ARABIC",),
    vowel_marks=ARABIC_VOWELS,
    short_vowels_written=False,
    fold=_fold,
    decimal=".",
    groups=",",
    number=_say_number,
    over="على",
    to=" إلى ",
    months=months("يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر"),
    time="{hour} و {minute} دقيقة",
    percent_sign="either",
    money={"$": ("دولار",), "€": ("يورو",), "£": ("جنيه",), "ر.س": ("ريال سعودي",), "﷼": ("ريال",)},
    money_as_decimal=True,
    scales="ألف|مليون|مليار",
    units={
        "كم": ("كيلومتر",), "م": ("متر",), "سم": ("سنتيمتر",), "كغ": ("كيلوغرام",), "غ": ("غرام",),
        "ل": ("لتر",), "°C": ("درجة مئوية",), "°م": ("درجة مئوية",),
    },
    abbreviations={
        "د.": "الدكتور", "أ.د.": "الأستاذ الدكتور", "ص.": "صفحة", "ق.م": "قبل الميلاد", "إلخ.": "إلى آخره",
    },
    before_times=_read_halves_of_the_day,
)  # fmt: skip
