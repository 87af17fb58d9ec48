"""Numbers to words in every language: num2words where it is good, the language's own rules where it is not.

In: digits.
Out: words.
"""

import threading

import num2words as _library

from myxtts.errors import UsageError
from myxtts.text.languages.language import Forms, Language

MOST_DIGITS = 30
NUMBER = r"\d+(?:\.\d+)?"  # after separators were unified

_lock = threading.Lock()  # num2words keeps state in shared objects


def ask_num2words(number: str | int, language: Language, to: str = "cardinal") -> str:
    """The library's words, safe to call from several threads."""
    try:
        with _lock:
            return _library.num2words(number, lang=language.num2words or language.code, to=to)
    except Exception as error:  # the library raises half a dozen kinds for numbers beyond its reach
        reason = f"num2words, language {language.num2words or language.code}: {error or type(error).__name__}"
        raise UsageError(f"the number {number} cannot be spoken ({reason}); write it in words") from None


def cardinal(digits: str, language: Language) -> str:
    """Words of "12" or "3.14": digits with at most one dot, no sign."""
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"the number {digits[:12]}… has {len(digits)} digits and cannot be spoken; write it in words")
    whole, _, fraction = digits.partition(".")
    if not fraction:
        return _whole(whole, language)
    if language.decimals == "num2words":  # "thirty-seven whole, five tenths"
        return ask_num2words(digits, language)
    as_one = language.decimals == "number" and len(fraction) <= 2 and fraction[0] != "0"
    spoken = _whole(fraction, language) if as_one else " ".join(_whole(digit, language) for digit in fraction)
    if not language.word_blanks:
        return _whole(whole, language) + language.point + spoken.replace(" ", "")
    return f"{_whole(whole, language)} {language.point} {spoken}"


def _whole(digits: str, language: Language) -> str:
    if language.number:
        return language.number(int(digits), language)
    return " ".join(ask_num2words(int(digits), language).replace(",", "").split())


def year(digits: str, language: Language) -> str:
    """A year as it is said, which may be in hundreds or digit by digit."""
    return language.year(digits, language) if language.year else cardinal(digits, language)


def ordinal(digits: str, language: Language) -> str:
    """First, second, third; masculine where a language has genders."""
    number = int(digits)
    return language.ordinal(number, language) if language.ordinal else plain_ordinal(number, language)


def plain_ordinal(number: int, language: Language) -> str:
    """An ordinal by num2words."""
    return " ".join(ask_num2words(number, language, "ordinal").split())


def form_of(digits: str, forms: Forms, language: Language) -> str:
    """The form of a word that goes with a number; a word may have fewer forms than the language."""
    return forms[0] if len(forms) == 1 else forms[min(language.plural(digits), len(forms) - 1)]
