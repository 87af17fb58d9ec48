"""Rules that several languages share; their files name those that they follow.

In: what a field of `Language` is given.
Out: what it asks for.
"""

import re

from myxtts.text.dates import say_day
from myxtts.text.languages.language import InWords, Language
from myxtts.text.numbers import ask_num2words, cardinal, ordinal, year

ARABIC_VOWELS = "\u064b-\u0655\u0670"  # for `vowel_marks`
BEFORE_INITIALS = ("by", "of", "and", "to", "with", "von", "de")


def fold_ideographic_zero(text: str) -> str:
    """Both signs for zero that stand among Chinese characters as one."""
    return text.replace("〇", "零")


def before_don(before: str, after: str) -> bool:
    """Where a Spanish or Portuguese "D." is don: at a beginning or behind a preposition, and before a word."""
    words = before.split()
    word = words[-1].lower() if words else ""
    behind = ("", "a", "o", "de", "do", "con", "com", "el", "y", "e", "para", "por")
    return word in behind and re.match(r"\s*\w", after) is not None


# Forms behind numbers.


def west_slavic(digits: str) -> int:
    """Polish and Czech: one, few, many; the first form with 1 alone, the last with fractions."""
    if "." in digits:
        return 2
    number = int(digits)
    return 0 if number == 1 else _few_or_many(number)


def east_slavic(digits: str) -> int:
    """Russian: one, few, many; the first form with 21 and 31 too, few with fractions."""
    if "." in digits:
        return 1
    number = int(digits)
    return 0 if number % 10 == 1 and number % 100 != 11 else _few_or_many(number)


def _few_or_many(number: int) -> int:
    return 1 if 2 <= number % 10 <= 4 and not 12 <= number % 100 <= 14 else 2


# Years.


def in_hundreds(*spans: range) -> InWords:
    """Years of these spans as nineteen hundred, the others as any number; for languages whose years num2words knows."""

    def say(digits: str, language: Language) -> str:
        if any(int(digits) in span for span in spans):
            return ask_num2words(int(digits), language, "year")
        return cardinal(digits, language)

    return say


def read_years(text: str, language: Language) -> str:
    """Four digits that are most likely a year."""
    return re.sub(r"(?<![\d,.])(1[1-9]\d\d|20[1-9]\d)(?!\d|[,.]\d)", lambda m: year(m[1], language), text)


# Dates.


def read_days_and_months(text: str, language: Language) -> str:
    """24.12. without a year."""
    return re.sub(
        r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.(?!\s?\d)",
        lambda m: f"{say_day(m[1], language)} {language.months[int(m[2]) - 1]}" if 1 <= int(m[2]) <= 12 else m[0],
        text,
    )


def read_days(text: str, language: Language) -> str:
    """A number before the name of a month, with or without a dot."""
    names = "|".join(language.months)
    written = rf"(?<![\d.,])(\d{{1,2}})\.?\s(?=(?:{names})\b)"
    return re.sub(written, lambda m: say_day(m[1], language) + " ", text)


# Ordinals.


def read_romance_ordinals(text: str, language: Language) -> str:
    """1º, 2ª, 3er."""
    text = re.sub(r"\b(\d+)\.?er\b", lambda m: ordinal(m[1], language).removesuffix("o"), text)
    text = re.sub(r"\b(\d+)\.?[º°](?!C)", lambda m: ordinal(m[1], language), text)
    return re.sub(r"\b(\d+)\.?ª", lambda m: re.sub(r"o\b", "a", ordinal(m[1], language)), text)


def read_dotted_ordinals(text: str, language: Language) -> str:
    """A number with a dot inside of a sentence; of four digits it is a year and plain."""
    return read_dotted_years(read_short_dotted_ordinals(text, language), language)


def read_short_dotted_ordinals(text: str, language: Language) -> str:
    """A number of up to three digits with a dot inside of a sentence."""
    return re.sub(r"\b(\d{1,3})\.(?= [a-zà-ž])", lambda m: ordinal(m[1], language), text)


def read_dotted_years(text: str, language: Language) -> str:
    """A number of four digits with a dot inside of a sentence."""
    return re.sub(r"\b(\d{4})\.(?= [a-zà-ž])", lambda m: cardinal(m[1], language), text)


# Roman numbers.


def is_name(word: str) -> bool:
    """Whether a word may be the name of a king."""
    return word[:1].isupper() and word.isalpha() and len(word) > 1


def roman_cardinal(number: str, word: str, after: str, language: Language) -> str:
    """Always a cardinal."""
    return cardinal(number, language)


def roman_ordinal(number: str, word: str, after: str, language: Language) -> str:
    """Always an ordinal."""
    return ordinal(number, language)


def roman_to_ten(number: str, word: str, after: str, language: Language) -> str:
    """Kings up to the tenth have ordinals, all others cardinals."""
    return ordinal(number, language) if is_name(word) and int(number) <= 10 else cardinal(number, language)
