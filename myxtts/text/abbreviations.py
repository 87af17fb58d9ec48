"""Abbreviations and initials as words, where they are not words or the ends of sentences themselves.

In: text in its one spelling.
Out: the same with every known abbreviation spoken out.
"""

import functools
import re

from myxtts.text.languages.language import Language


@functools.cache
def _table(language: Language) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    """What finds the abbreviations of a language, and their words by their letters without blanks."""
    words = language.abbreviations
    if not words:
        return None, {}
    names = sorted(words, key=len, reverse=True)
    written = [re.escape(name).replace(r"\.", r"\.\s?").removesuffix(r"\s?").replace(r"\ ", r"\s") for name in names]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(written)})(?!\w)", re.IGNORECASE)
    return pattern, {name.replace(" ", ""): spoken for name, spoken in words.items()}


def expand_abbreviations(text: str, language: Language) -> str:
    """Every abbreviation that is one here as words; a dot that also ended the sentence is kept."""
    pattern, known = _table(language)
    text = language.before_abbreviations(text, language)
    if language.before_initials:
        text = _join_initials(text, language)

    def spoken(match: re.Match[str]) -> str:
        name = re.sub(r"\s", "", match[0]).lower()
        before, after = text[: match.start()], text[match.end() :]
        if language.read_abbreviation and (words := language.read_abbreviation(name, before, after)) is not None:
            return words
        single = re.fullmatch(r"[^\W\d]\.?", name) is not None
        fits = language.abbreviation_fits.get(name, before_name if single else None)
        if fits and not fits(before, after):
            return match[0]
        ends = not after.strip('")» ') or (name in language.ending_abbreviations and re.match(r"\s[A-Z]", after))
        return known[name] + ("." if name.endswith(".") and ends else "")

    return pattern.sub(spoken, text) if pattern else text


def _join_initials(text: str, language: Language) -> str:
    """J. R. R. Tolkien: the dots of initials are no stops."""
    names = r"(?<![^\W\d_])((?:[A-ZÀ-Ž]\.\s?)+)(?=[A-ZÀ-Ž][a-zà-ž])"

    def join(match: re.Match[str]) -> str:
        before = text[: match.start()].rstrip()
        word = before.rsplit(" ", 1)[-1]
        several = match[1].count(".") > 1
        if several or not before or word[:1].isupper() or word.lower() in language.before_initials:
            return match[1].replace(".", "")
        return match[0]

    return re.sub(names, join, text)


# Conditions for `Language.abbreviation_fits`.


def _first_letter(after: str) -> str:
    """The letter or digit that follows; empty if there is none."""
    follows = re.match(r"\s*(\w)", after)
    return follows[1] if follows else ""


def before_name(before: str, after: str) -> bool:
    """Before a capital, or a letter of a script that need not have any; what is asked of single letters."""
    first = _first_letter(after)
    return bool(first) and (first.isupper() or not first.isascii())


def before_number(before: str, after: str) -> bool:
    """Before a number in digits."""
    return _first_letter(after).isdigit()


def behind_number(before: str, after: str) -> bool:
    """Behind a year or a century."""
    return re.search(r"(?:\d{3,4}|[IVX]|\d[ув])\s*$", before) is not None


# English ones: U.S. and its like stand in texts of all languages.
_BEGINNERS = frozenset("the a an he she it they we i you this that these there but and so in on at when if".split())


def ends_with_abbreviation(text: str, following: str, language: Language) -> bool:
    """Whether the last dot belongs to an abbreviation or an initial, and so ends no sentence before what follows."""
    match = re.search(r"(\S+)\.$", text)
    if match is None:
        return False
    word = match[1].lstrip("(\"'").lower() + "."
    if word in language.counting_abbreviations:
        return following[:1].isdigit()
    if re.fullmatch(r"(\w\.){2,}", word) and word not in language.abbreviations:  # the U.S. Army
        return following.split(maxsplit=1)[0].lower() not in _BEGINNERS
    return word in language.abbreviations or re.fullmatch(r"\w\.", word) is not None
