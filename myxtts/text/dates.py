"""Dates and times of the clock in digits as words.

In: text with numbers whose separators were unified.
Out: the same without dates and times in digits.
"""

import re

from myxtts.text.languages.language import Language
from myxtts.text.numbers import cardinal, year


def read_dates(text: str, language: Language) -> str:
    """2024-05-31 and 31.5.2024, and what the language writes besides."""
    text = language.before_dates(text, language)
    sep = r"\s?[-/.]\s?"
    text = re.sub(
        rf"(?<![\d.])(\d{{4}}){sep}(\d{{1,2}}){sep}(\d{{1,2}})(?!\d)\.?(?=\s|[^\w.]|[^\x00-\x7f]|$)",
        lambda m: say_date((m[1], m[2], m[3]), m[0], language),
        text,
    )
    day, month = (2, 1) if language.order == "mdy" else (1, 2)
    text = re.sub(
        rf"(?<![\d.])(\d{{1,2}}){sep}(\d{{1,2}}){sep}(\d{{4}})(?!\d)",
        lambda m: say_date((m[3], m[month], m[day]), m[0], language),
        text,
    )
    return language.after_dates(text, language)


def say_date(date: tuple[str, str, str], written: str, language: Language) -> str:
    """Year, month and day as words; what was written if there is no such day."""
    year_, month, day = date
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return written
    names = language.calendar(int(year_)) if language.calendar else language.months
    name = names[int(month) - 1] if names else cardinal(month, language)
    return language.date.format(year=year(year_, language), month=name, day=say_day(day, language))


def say_day(day: str, language: Language) -> str:
    """A day of the month as it stands before the month's name."""
    return language.day(day, language) if language.day else cardinal(day, language)


def read_times(text: str, language: Language) -> str:
    """14:30, and 14 h 30 where that is written."""

    def say(match: re.Match[str]) -> str:
        hour, minute = match[1], match[2]
        if int(hour) > 24 or int(minute) > 59:
            return f"{hour} {minute}"
        words = language.hour(hour, language) if language.hour else cardinal(hour, language)
        if int(minute) == 0:
            return language.full_hour.format(hour=words)
        zero = language.zero_minute if int(minute) < 10 else ""
        return language.time.format(hour=words, minute=zero + cardinal(minute, language))

    text = language.before_times(text, language)
    behind = rf"(?:\s*{language.hour_word}\b)?" if language.hour_word else ""
    text = re.sub(rf"(?<![\d.:])(\d{{1,2}}):(\d\d)(?![\d:]){behind}", say, text)
    if language.clock_letter:
        text = re.sub(rf"(?<!\d)(\d{{1,2}})\s?{language.clock_letter}\s?(\d\d)(?!\w)", say, text)
    return text
