"""Russian: words in three forms, ordinals with any ending, days and years in the genitive.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.abbreviations import before_number, behind_number
from myxtts.text.languages.language import Language, months, signs, units
from myxtts.text.languages.shared import east_slavic, read_days, read_days_and_months, roman_ordinal
from myxtts.text.numbers import ordinal


def _fold(text: str) -> str:
    """Without stress marks, which espeak-ng does not read."""
    return re.sub("[\u0300\u0301]", "", text)


def _read_cities(text: str, language: Language) -> str:
    """г. Москва; behind a number the same letter is a year."""
    return re.sub(r"(?<!\w)г\.(?=\s[А-ЯЁ])", "городе", text)


_ENDINGS = {"й": "ый", "м": "ом", "е": "ое", "я": "ая", "го": "ого", "му": "ому", "х": "ых", "ю": "ую"}


def _inflect(words: str, ending: str) -> str:
    """An ordinal with another ending."""
    if words.endswith("третий"):
        return words[:-2] + {"й": "ий", "м": "ьем", "е": "ье", "я": "ья", "го": "ьего", "му": "ьему"}.get(ending, "ий")
    if ending == "й":
        return words
    return re.sub("(ый|ой|ий)$", _ENDINGS[ending], words)


def _say_day(day: str, language: Language) -> str:
    """In the genitive."""
    return " ".join(_inflect(word, "го") for word in ordinal(day, language).split())


def _read_days_and_years(text: str, language: Language) -> str:
    """9 мая 1945 года."""
    text = read_days(text, language)
    cases = {"год": "й", "года": "го", "году": "м"}
    return re.sub(
        r"(?<!\d)(\d{3,4})(?= (года?|году)\b)", lambda m: _inflect(ordinal(m[1], language), cases[m[2]]), text
    )


def _read_ordinals(text: str, language: Language) -> str:
    """5-м, 3-го."""
    endings = "|".join(sorted(_ENDINGS, key=len, reverse=True))
    return re.sub(rf"\b(\d+)-({endings})\b", lambda m: _inflect(ordinal(m[1], language), m[2]), text)


LANGUAGE = Language(
    code="ru",
    point="запятая",
    minus="минус",
    percent=("процент", "процента", "процентов"),
    signs=signs("плюс", "равно", "и", "собака", "градусов"),
    scripts=("CYRILLIC",),
    fold=_fold,
    groups=" ",
    decimals="num2words",
    plural=east_slavic,
    over="на",
    to=" до ",
    roman=roman_ordinal,
    months=months(
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
    ),
    day=_say_day,
    clock_words=("в", ""),
    money={
        "₽": ("рубль", "рубля", "рублей"), "$": ("доллар", "доллара", "долларов"), "€": ("евро",),
        "£": ("фунт", "фунта", "фунтов"), "руб.": ("рубль", "рубля", "рублей"),
    },
    scales="тыс\\.|млн|млрд",
    units={
        **units(
            "километр километра километров", "метр метра метров", "сантиметр сантиметра сантиметров",
            "килограмм килограмма килограммов", "грамм грамма граммов", "литр литра литров",
            "градус_Цельсия градуса_Цельсия градусов_Цельсия", signs="км м см кг г л °C",
        ),
        "тыс.": ("тысяча", "тысячи", "тысяч"), "млн": ("миллион", "миллиона", "миллионов"),
        "млрд": ("миллиард", "миллиарда", "миллиардов"),
        "ч.": ("час", "часа", "часов"), "мин.": ("минута", "минуты", "минут"), "г.": ("грамм", "грамма", "граммов"),
        "мл": ("миллилитр", "миллилитра", "миллилитров"), "мм": ("миллиметр", "миллиметра", "миллиметров"),
    },
    abbreviations={
        "т.е.": "то есть", "и т.д.": "и так далее", "и т.п.": "и тому подобное", "т.к.": "так как",
        "напр.": "например", "др.": "другие", "г.": "года", "гг.": "годов", "в.": "века", "ул.": "улице",
        "д.": "дом", "им.": "имени", "руб.": "рублей",
        "см.": "смотри", "стр.": "страница", "проф.": "профессор", "акад.": "академик",
        "до н.э.": "до нашей эры", "н.э.": "нашей эры", "т.н.": "так называемый", "№": "номер",
    },
    abbreviation_fits={"д.": before_number, "г.": behind_number, "в.": behind_number},
    before_numbers=_read_cities,
    before_dates=read_days_and_months,
    after_dates=_read_days_and_years,
    ordinals=_read_ordinals,
)  # fmt: skip
