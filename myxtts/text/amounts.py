"""Money, percentages and units as words.

In: text with numbers whose separators were unified, and their signs.
Out: the same with these numbers and signs as words.
"""

import re

from myxtts.text.languages.language import Language
from myxtts.text.numbers import NUMBER, cardinal, form_of

_NEVER = r"(?!)"  # where a language lists nothing


def _any_of(words: dict[str, tuple[str, ...]]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) or _NEVER


def read_money(text: str, language: Language) -> str:
    """Sums with their sign before or behind: $3.50, 4 Mio. €."""
    signs = _any_of(language.money)
    scales = "|".join([language.scales or _NEVER, *language.short_scales])
    scale = rf"(?:\s?({scales})(?!\w))?"

    def say(sign: str, number: str, large: str | None) -> str:
        return _say_large(sign, number, large, language) if large else _say_sum(sign, number, language)

    after = " " if language.number_blanks else ""
    text = re.sub(r"([$£€])\.(\d)", r"\g<1>0.\2", text)
    text = re.sub(rf"({signs})\s?({NUMBER}){scale}", lambda m: say(m[1], m[2], m[3]) + after, text)
    return re.sub(rf"({NUMBER}){scale}\s?({signs})(?!\w)", lambda m: say(m[3], m[1], m[2]), text)


def _say_large(sign: str, number: str, scale: str, language: Language) -> str:
    """Four million dollars."""
    if scale in language.short_scales:
        scale = language.short_scales[scale]
    elif scale in language.units:
        scale = form_of(number, language.units[scale], language)
    of = language.of if scale in language.of_behind else ""
    return f"{cardinal(number, language)} {scale} {of}{language.money[sign][-1]}"


def _say_sum(sign: str, number: str, language: Language) -> str:
    """Three dollars and fifty cents, drei Euro fünfzig."""
    forms = language.money[sign]
    whole, _, cents = number.partition(".")
    cents = (cents + "0")[:2] if cents else ""
    if not cents or not int(cents):
        return f"{cardinal(whole, language)} {form_of(whole, forms, language)}"
    if small := language.cents.get(sign):
        above = f"{cardinal(whole, language)} {form_of(whole, forms, language)} {language.signs['&']} "
        return f"{above if int(whole) else ''}{cardinal(str(int(cents)), language)} {form_of(cents, small, language)}"
    if language.money_as_decimal:
        return f"{cardinal(number, language)} {forms[-1]}"
    return f"{cardinal(whole, language)} {form_of(whole, forms, language)} {cardinal(str(int(cents)), language)}"


def read_percent(text: str, language: Language) -> str:
    """Percentages, with the sign on the side where the language writes it."""

    def say(match: re.Match[str]) -> str:
        number, word = match["number"], form_of(match["number"], language.percent, language)
        spoken = cardinal(number, language)
        blank = " " if language.word_blanks else ""
        return f" {word}{blank}{spoken}" if language.percent_first else f"{spoken} {word}"

    if language.percent_sign == "either":
        text = re.sub(rf"%\s?({NUMBER})", r"\1%", text)
    before, behind = rf"%\s?(?P<number>{NUMBER})", rf"(?P<number>{NUMBER})\s?%"
    return re.sub(before if language.percent_sign == "before" else behind, say, text)


def read_units(text: str, language: Language) -> str:
    """Units behind a number, which may have a scale: 5 km, 3 Mio. kg."""
    scale = rf"((?:\s?(?:{language.scales or _NEVER}))?)"

    def say(match: re.Match[str]) -> str:
        number, large, unit = match[1], match[2], match[3]
        return f"{cardinal(number, language)}{large} {form_of(number, language.units[unit], language)}"

    ends = r"[\w°]|\.\w" if language.number_blanks else "[a-zA-Z°]"  # no blank stands behind a word there
    return re.sub(rf"(?<![\d.])({NUMBER}){scale}\s?({_any_of(language.units)})(?!{ends})", say, text)
