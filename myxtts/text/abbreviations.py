"""Abbreviations and initials as words, where they are not words or the ends of sentences themselves.

In: text in its one spelling.
Out: the same with every known abbreviation spoken out.
"""

import functools
import re

from myxtts.text.languages import SPEECH


@functools.cache
def _table(language: str) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    """What finds the abbreviations of a language, and their words by their letters without blanks."""
    words = SPEECH[language].abbreviations
    if not words:
        return None, {}
    names = sorted(words, key=len, reverse=True)
    written = [re.escape(name).replace(r"\.", r"\.\s?").removesuffix(r"\s?").replace(r"\ ", r"\s") for name in names]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(written)})(?!\w)", re.IGNORECASE)
    return pattern, {name.replace(" ", ""): spoken for name, spoken in words.items()}


def expand_abbreviations(text: str, language: str) -> str:
    """Every abbreviation that is one here as words; a dot that also ended the sentence is kept."""
    pattern, known = _table(language)
    if language == "en":
        text = re.sub(r"(?<=\d)\s?([ap])\.?m\b\.?", lambda m: f" {m[1]}.m.", text, flags=re.IGNORECASE)
    if language in ("en", "de", "fr", "es", "it", "pt", "nl"):  # J. R. R. Tolkien
        text = _initials(text)

    def spoken(match: re.Match[str]) -> str:
        name = re.sub(r"\s", "", match[0]).lower()
        before, after = text[: match.start()], text[match.end() :]
        follows = re.match(r"\s*(\w)", after)
        if language == "en" and name in _AFTER_A_NAME:
            if re.search(r"(?:[A-Z]\w*|\d(?:st|nd|rd|th)) $", before):  # Main St., Smith Dr.
                return _AFTER_A_NAME[name] + ("." if not after.strip() else "")
            if name == "ft." and not re.match(r"\s[A-Z]", after):
                return match[0]
        single = re.fullmatch(r"[^\W\d]\.?", name) is not None or name in _ONLY_BEFORE_NUMBER.get(language, ())
        if single and not _fits(language, name, before, follows):
            return match[0]
        ends = not after.strip('")» ') or (name in ("a.m.", "p.m.", "etc.") and re.match(r"\s[A-Z]", after))
        return known[name] + ("." if name.endswith(".") and ends else "")

    text = pattern.sub(spoken, text) if pattern else text
    if language == "de":
        text = re.sub(r"(?<=\w)str\.", "straße", text)
    if language == "en":  # "No. 7", but not "He said no."; "St. Mary", but "Main St."
        text = re.sub(r"\bNo\.(?=\s*\d)", "number", text)
    if language == "ru":
        text = re.sub(r"(?<!\w)г\.(?=\s[А-ЯЁ])", "городе", text)
    return text


def _initials(text: str) -> str:
    """J. R. R. Tolkien: the dots of initials are no stops."""
    names = r"(?<![^\W\d_])((?:[A-ZÀ-Ž]\.\s?)+)(?=[A-ZÀ-Ž][a-zà-ž])"

    def join(match: re.Match[str]) -> str:
        before = text[: match.start()].rstrip()
        word = before.rsplit(" ", 1)[-1]
        several = match[1].count(".") > 1
        if (
            several
            or not before
            or word[:1].isupper()
            or word.lower() in ("by", "of", "and", "to", "with", "von", "de")
        ):
            return match[1].replace(".", "")
        return match[0]

    return re.sub(names, join, text)


_AFTER_A_NAME = {"st.": "street", "dr.": "drive", "ft.": "fort"}


_ONLY_BEFORE_NUMBER = {"it": ("n.",), "de": ("s.",), "pl": ("m.",), "ru": ("д.",), "fa": ("ص.", "ج.")}


def _fits(language: str, name: str, before: str, follows: re.Match[str] | None) -> bool:
    """Whether a very short abbreviation is one here: before a number, behind a number, or before a name."""
    if name in _ONLY_BEFORE_NUMBER.get(language, ()):
        return follows is not None and follows[1].isdigit()
    if name in ("г.", "r.", "в.") or (language, name) in (("hu", "u."), ("hu", "sz.")):
        return re.search(r"(?:\d{3,4}|[IVX]|\d[ув])\s*$", before) is not None
    if (language, name) in (("es", "d."), ("pt", "d.")):
        word = before.split()[-1].lower() if before.split() else ""
        return word in ("", "a", "o", "de", "do", "con", "com", "el", "y", "e", "para", "por") and follows is not None
    if (language, name) == ("es", "s."):
        return follows is not None and follows[1] in "IVX"
    return follows is not None and (follows[1].isupper() or not follows[1].isascii())


_BEFORE_NUMBER = ("no.", "nos.", "fig.", "vol.", "ch.", "p.", "pp.", "sec.")  # English ones that count things
_BEGINNERS = frozenset("the a an he she it they we i you this that these there but and so in on at when if".split())


def ends_with_abbreviation(text: str, following: str, language: str) -> bool:
    """Whether the last dot belongs to an abbreviation or an initial, and so ends no sentence before what follows."""
    match = re.search(r"(\S+)\.$", text)
    if match is None:
        return False
    word = match[1].lstrip("(\"'").lower() + "."
    if language == "en" and word in _BEFORE_NUMBER:
        return following[:1].isdigit()
    if re.fullmatch(r"(\w\.){2,}", word) and word not in SPEECH[language].abbreviations:  # the U.S. Army
        return following.split(maxsplit=1)[0].lower() not in _BEGINNERS
    return word in SPEECH[language].abbreviations or re.fullmatch(r"\w\.", word) is not None
