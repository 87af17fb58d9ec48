"""What the reading of a text has to know of its language, with the answers that fit most languages.

In: nothing.
Out: `Language`, of which every file named after a language's code holds one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Forms = tuple[str, ...]  # one word in the forms that go with different numbers
Rule = Callable[[str, "Language"], str]  # a text rewritten; languages that share a rule are told apart by the second
InWords = Callable[[str, "Language"], str]  # digits as words
Fits = Callable[[str, str], bool]  # whether an abbreviation is one between these two pieces of text

JOINT = "\x01"  # between a number and its ending, until the number is in words


def unchanged(text: str, language: "Language | None" = None) -> str:
    """The rule of languages that need none."""
    return text


def one_or_other(digits: str) -> int:
    """The form of a word behind a number in languages that tell only one from many."""
    return int("." in digits or int(digits) != 1)


@dataclass(frozen=True, eq=False)
class Language:
    """One language. `{}` in a pattern is filled with numbers already in words."""

    code: str  # the name of the file
    point: str  # between the whole and the fraction of a number
    minus: str
    percent: Forms
    signs: dict[str, str]  # single characters as words

    # Letters and sounds.
    espeak: str = ""  # the voice of espeak-ng; empty: the code
    scripts: tuple[str, ...] = ()  # how the Unicode names of its letters begin; Latin letters may stand in any text
    vowel_marks: str = ""  # marks on letters that are read, as a regular expression's [...] lists them
    short_vowels_written: bool = True  # or else marks on letters count for nothing where texts are compared
    pauses: dict[str, str] = field(default_factory=dict)  # its own signs that are read as one of , . ! ?
    fold: Callable[[str], str] = unchanged  # one spelling for each word
    lower: Callable[[str], str] = str.lower
    half_spaces: bool = False  # zero-width non-joiners mean something
    word_blanks: bool = True  # blanks part words
    number_blanks: bool = True  # blanks part a number and the word behind it
    read: Callable[[str], list[str]] | None = None  # sounds of a clause, where espeak-ng does not read well
    packages: tuple[str, ...] = ()  # that `read` asks: with another version of them clips are prepared anew

    # Numbers.
    decimal: str = ","  # written separators
    groups: str = "."
    num2words: str = ""  # the name num2words has for it; empty: the code
    decimals: Literal["number", "digits", "num2words"] = "number"  # a short fraction as one number, digit by digit, ...
    number: Callable[[int, "Language"], str] | None = None  # instead of num2words
    ordinal: Callable[[int, "Language"], str] | None = None  # masculine; instead of num2words
    year: InWords | None = None  # where it is not said as other numbers are
    plural: Callable[[str], int] = one_or_other  # which of a word's forms goes with a number
    fraction: str = "{above} {over} {below}"
    over: str = ""
    say_fraction: Callable[[str, str, "Language"], str] | None = None  # above, below; where a pattern is not enough
    to: str = " "  # between the ends of a range
    # A Roman number by its digits, the word before and the text behind; None is no number. Without it: none are read.
    roman: Callable[[str, str, str, "Language"], str | None] | None = None

    # Dates and times.
    months: Forms = ()  # as they stand behind a day; none where the language counts its months
    calendar: Callable[[int], Forms] | None = None  # months of a year, where they depend on it
    order: Literal["dmy", "mdy", "ymd"] = "dmy"  # of a date in digits
    date: str = "{day} {month} {year}"
    day: InWords | None = None  # before its month, where that is no cardinal
    time: str = "{hour} {minute}"
    full_hour: str = "{hour}"
    hour_word: str = ""  # stands behind a time and is already said by `time`
    hour: InWords | None = None
    zero_minute: str = ""  # what minutes below ten begin with
    clock_letter: str = ""  # between hours and minutes, besides the colon
    clock_words: tuple[str, str] = ("", "")  # patterns before and behind a time that is written as 14.30

    # Amounts.
    percent_first: bool = False  # in speech
    percent_sign: Literal["behind", "before", "either"] = "behind"  # in writing
    money: dict[str, Forms] = field(default_factory=dict)
    cents: dict[str, Forms] = field(default_factory=dict)  # of a sign, where they are said with a word of their own
    money_as_decimal: bool = False  # 3.50 is three point five of it, not three and fifty
    scales: str = ""  # pattern of the words that stand between a number and its money or unit
    short_scales: dict[str, str] = field(default_factory=dict)  # between a number and money only
    of: str = ""  # between a scale and money
    of_behind: tuple[str, ...] = ()  # the scales that have it
    units: dict[str, Forms] = field(default_factory=dict)  # behind a number only

    # Abbreviations.
    abbreviations: dict[str, str] = field(default_factory=dict)
    abbreviation_fits: dict[str, Fits] = field(default_factory=dict)  # those that are words or endings elsewhere
    read_abbreviation: Callable[[str, str, str], str | None] | None = None  # name, before, after; None: by the table
    ending_abbreviations: tuple[str, ...] = ()  # which also end a sentence if a capital follows
    counting_abbreviations: tuple[str, ...] = ()  # which end none if a number follows, and else do
    before_initials: tuple[str, ...] = ()  # words before J. Smith; none: initials are not looked for

    # What a table cannot tell, in the order in which it is asked.
    before_abbreviations: Rule = unchanged
    before_numbers: Rule = unchanged
    after_separators: Rule = unchanged  # from here on a rule is asked only if there is a digit
    before_dates: Rule = unchanged
    after_dates: Rule = unchanged
    before_times: Rule = unchanged
    ordinals: Rule = unchanged
    counted: Rule = unchanged  # numbers that are said otherwise before some words
    after_numbers: Rule = unchanged


def signs(plus: str, equals: str, both: str, at: str, degrees: str) -> dict[str, str]:
    """The words of the signs that every language needs."""
    return {"+": plus, "=": equals, "&": both, "@": at, "°": degrees}


def units(*words: str, signs: str = "km m cm kg g l °C") -> dict[str, Forms]:
    """Each sign's word in its forms, "kilometre kilometres"; an underscore stands for a blank."""
    forms = (tuple(form.replace("_", " ") for form in word.split()) for word in words)
    return dict(zip(signs.split(), forms, strict=True))


def months(names: str) -> Forms:
    """Twelve names, divided by blanks."""
    return tuple(names.split())
