"""Written text to speakable text: one spelling, numbers, money, dates, times, units and abbreviations as words.

In: text as the user wrote it.
Out: text without digits, in which only signs that `phonemes` knows or refuses are left.
"""

import re

from myxtts.errors import UsageError
from myxtts.text.abbreviations import expand_abbreviations
from myxtts.text.amounts import read_money, read_percent, read_units
from myxtts.text.dates import read_dates, read_times
from myxtts.text.languages import get_language
from myxtts.text.languages.language import JOINT, Language
from myxtts.text.letters import fold
from myxtts.text.numbers import MOST_DIGITS, NUMBER, cardinal, ordinal


def normalize(text: str, language: str) -> str:
    """Speakable text on one line.

    Raises:
        UsageError: a number is beyond words, or nothing is known of the language.
    """
    return _normalize(text, get_language(language))


def _normalize(text: str, language: Language) -> str:
    text = fold(text, language)
    if long := re.search(rf"\d{{{MOST_DIGITS + 1},}}", text):
        raise UsageError(
            f"the number {long[0][:12]}… has {len(long[0])} digits and cannot be spoken; write it in words"
        )
    text = expand_abbreviations(text, language)
    text = language.before_numbers(text, language)
    if re.search(r"\d", text):
        for rule in (
            _unify_separators, read_dates, read_times, read_money, read_percent, read_units, language.ordinals,
            _read_fractions, language.counted, _read_numbers, language.after_numbers,
        ):  # fmt: skip
            text = rule(text, language)
    text = _read_roman(text, language)
    for sign, word in language.signs.items():
        text = text.replace(sign, f" {word} ")
    text = re.sub(r"(?<=\w)/(?=\w)", " ", text)
    text = re.sub(rf"\s*{JOINT}", "", text)
    text = re.sub(r"\s+", " ", text)
    if not language.word_blanks:
        text = re.sub(r"(?<=[\u3040-\u9fff]) | (?=[\u3040-\u9fff])", "", text)
    return re.sub(r" ([,.;:!?،؛؟。，、])", r"\1", text).strip()


def _unify_separators(text: str, language: Language) -> str:
    """Thousands without separators and a dot before the fraction, however the language writes them."""
    group = r"[\u0020]" if language.groups == " " else re.escape(language.groups)
    text = re.sub(rf"(?<![\d.,+])(?<!\d )\d{{1,3}}(?:{group}\d{{3}})+(?!\d|[ -]\d)", lambda m: _no_year(m[0]), text)
    text = re.sub(r"(\d+(?:[:.,]\d+)?%?)-(?=[$€£]?(\d+)([:.]?))", lambda m: _range(m, language), text)
    if language.decimal == ",":
        before, behind = language.clock_words
        clock = r"(?<![\d.])(\d{1,2})\.(\d\d)(?!\.?\d)"
        if before:
            text = re.sub(rf"(?<!\w)((?:{before})\s){clock}", lambda m: m[1] + _clock_or_same(m[2], m[3]), text)
        if behind:
            text = re.sub(rf"{clock}(?=\s?(?:{behind}))", lambda m: _clock_or_same(m[1], m[2]), text)
        text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    text = language.after_separators(text, language)
    before = r"(?<![^\s(\"'])" if language.word_blanks else r"(?<![\da-zA-Z])"
    text = re.sub(rf"{before}-(?=\d)", f"{language.minus} ", text)
    return re.sub(r"(?<=[^\W\d])-(?=\d)", " ", text)


def _no_year(grouped: str) -> str:
    """Digits without separators, in another script's signs so that no later rule takes 1,950 for a year."""
    return "".join(chr(0x0660 + int(c)) for c in grouped if c.isdigit())


def _clock_or_same(hour: str, minute: str) -> str:
    return f"{hour}:{minute}" if int(hour) < 25 and int(minute) < 60 else f"{hour}.{minute}"


def _range(match: re.Match[str], language: Language) -> str:
    """10-20 and 9:30-10:30 are from one to the other; 3-2, 555-1234 and 2024-05-31 are not."""
    low, high = re.sub(r"\D.*", "", match[1]), match[2]
    times = ":" in match[1] and match[3] == ":"
    dates = re.match(r"\d*-\d", match.string[match.end() :]) or re.search(r"\d-$", match.string[: match.start()])
    alike = len(low) == len(high) <= 4 or len(high) - len(low) == 1 < 4 - len(low)
    rising = alike and int(low) < int(high)
    return match[1] + language.to if (times or rising) and not dates else match[0]


def _read_fractions(text: str, language: Language) -> str:
    """Fractions, versions and addresses, and the hyphens that are left between numbers."""

    def fraction(match: re.Match[str]) -> str:
        if language.say_fraction:
            return language.say_fraction(match[1], match[2], language)
        above, below = cardinal(match[1], language), cardinal(match[2], language)
        return language.fraction.format(above=above, below=below, over=language.over)

    both = language.signs["&"]
    text = re.sub(r"(?<![\d/.])(\d+) (?=[1-9]/\d(?![\d/]))", lambda m: f"{cardinal(m[1], language)} {both} ", text)
    text = re.sub(r"(?<![\d/.])(\d{1,3})/(\d{1,3})(?![\d/])", fraction, text)
    text = re.sub(
        r"(?<![\d.])\d+(?:\.\d+){2,}(?!\d)",
        lambda m: f" {language.point} ".join(cardinal(part, language) for part in m[0].split(".")),
        text,
    )
    return re.sub(r"(?<=\d)-(?=\d)", " " if language.word_blanks else "、", text)


def _read_numbers(text: str, language: Language) -> str:
    """All numbers that no rule before has read."""
    blank = " " if language.number_blanks else ""

    def say(match: re.Match[str]) -> str:
        # Leading zeros, or ten digits and more without separators: a code or a telephone number, digit by digit.
        digits = match[0]
        if re.match(r"0\d", digits) or (digits.isascii() and len(digits) >= 10 and "." not in digits):
            words = " ".join(cardinal(digit, language) for digit in digits if digit != ".")
        else:
            words = cardinal(digits, language)
        return f"{blank}{words}{blank}"

    return re.sub(NUMBER, say, text)


_ROMAN = re.compile(r"(?<![\w.])(?=[IVX]{2,})(X{0,3})(IX|IV|V?I{0,3})(e|ème)?(\.(?=\s\w))?(?!\w)")
_ROMAN_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")


def _read_roman(text: str, language: Language) -> str:
    """Kings and centuries: Louis XIV, XIX. yüzyıl."""
    read = language.roman
    if read is None:
        return text

    def say(match: re.Match[str]) -> str:
        number = str(10 * len(match[1]) + _ROMAN_ONES.index(match[2]))
        if match[3] or match[4]:
            return ordinal(number, language)
        before = text[: match.start()].split()
        words = read(number, before[-1] if before else "", text[match.end() :], language)
        return match[0] if words is None else words

    return _ROMAN.sub(say, text)
