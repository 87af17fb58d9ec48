"""Written text to speakable text: Unicode form, quotation marks, numbers and abbreviations, per language.

In: text as the user wrote it.
Out: text in which every number and abbreviation is a word; punctuation that makes a pause is kept.
"""

import re
import threading
import unicodedata
from collections.abc import Callable

import num2words as _library

from myxtts.errors import UsageError

_PLAIN = str.maketrans(
    {
        "“": '"',
        "”": '"',
        "„": '"',
        "«": '"',
        "»": '"',
        "’": "'",
        "‘": "'",
        "–": "-",
        "—": " - ",
        "…": "...",
        "\u00a0": " ",
    }
)

# num2words names a language differently here and there; a language it lacks is left to espeak-ng.
_NUM2WORDS = {
    "en": "en", "fa": "fa", "es": "es", "fr": "fr", "de": "de", "it": "it", "pt": "pt", "pl": "pl", "tr": "tr",
    "ru": "ru", "nl": "nl", "cs": "cs", "ar": "ar", "ja": "ja", "hu": "hu", "ko": "ko",
}  # fmt: skip

_ENGLISH_ABBREVIATIONS = {
    "mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint", "co": "company", "jr": "junior", "maj": "major",
    "gen": "general", "rev": "reverend", "lt": "lieutenant", "hon": "honorable", "sgt": "sergeant", "capt": "captain",
    "esq": "esquire", "ltd": "limited", "col": "colonel", "ft": "fort",
    "no": "number", "vs": "versus", "etc": "et cetera",
}  # fmt: skip
_ENGLISH_ABBREVIATION = re.compile(r"\b(" + "|".join(_ENGLISH_ABBREVIATIONS) + r")\.(?=\s|,|$)", re.IGNORECASE)
_CURRENCIES = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}


_lock = threading.Lock()  # num2words keeps state in shared objects


def num2words(number: int | float, **options: str) -> str:
    """The library's words for a number, safe to call from several threads."""
    try:
        with _lock:
            return _library.num2words(number, **options)
    except Exception as error:  # the library raises half a dozen kinds for numbers beyond its reach
        raise UsageError(f"the number {number:g} cannot be spoken ({error}); write it in words") from None


def _count(number: str, word: str) -> str:
    plural = {"penny": "pence"}.get(word, word + "s")
    return f"{num2words(_number(number))} {word if int(number) == 1 else plural}"


def _english_money(match: re.Match[str]) -> str:
    large, small = _CURRENCIES[match[1]]
    whole, scale = match[2].replace(",", ""), match[4]
    if scale:
        return f"{num2words(_number(whole + (match[3] or '')))} {scale} {large}s"
    if not match[3]:
        return _count(whole, large)
    cents = (match[3][1:] + "0")[:2]
    return _count(whole, large) + (f" and {_count(cents, small)}" if int(cents) else "")


def _english(text: str) -> str:
    def abbreviation(match: re.Match[str]) -> str:
        if match[1].lower() == "no" and not re.match(r"\s+\d", text[match.end() :]):
            return match[0]  # the word "no" at the end of a sentence
        return _ENGLISH_ABBREVIATIONS[match[1].lower()]

    text = _ENGLISH_ABBREVIATION.sub(abbreviation, text)
    text = re.sub(r"([$£€])\s?(\d+(?:,\d{3})*)(\.\d+)?(?:\s+(million|billion|trillion))?", _english_money, text)
    text = re.sub(r"(\d)%", r"\1 percent", text)
    text = text.replace("&", " and ")
    text = re.sub(r"(?<![\w-])-(?=\d)", "minus ", text)
    text = re.sub(r"\b(\d{1,2}):(\d{2})\b", _english_time, text)
    text = re.sub(r"\b(\d+)(st|nd|rd|th)\b", lambda m: num2words(_number(m[1]), to="ordinal"), text)
    return re.sub(r"(?<![\d,.])(1[1-9]\d\d|20[1-9]\d)(?!\d|[,.]\d)", lambda m: num2words(int(m[1]), to="year"), text)


def _english_time(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), int(match[2])
    if hour > 24 or minute > 59:
        return match[0].replace(":", " ")
    if minute == 0:
        return num2words(hour)
    return f"{num2words(hour)} {'oh ' if minute < 10 else ''}{num2words(minute)}"


def ends_with_abbreviation(text: str) -> bool:
    """Whether the last dot belongs to an abbreviation or an initial, and so ends no sentence."""
    match = re.search(r"\b(\w+)\.$", text)
    if match is None:
        return False
    return match[1].lower() in _ENGLISH_ABBREVIATIONS or re.fullmatch("[A-Z]", match[1]) is not None


_RULES: dict[str, Callable[[str], str]] = {"en": _english}


def _number(digits: str) -> int | float:
    if len(digits) > 30:
        raise UsageError(f"the number {digits[:12]}… has {len(digits)} digits and cannot be spoken; write it in words")
    return float(digits) if "." in digits else int(digits)


def _speak_numbers(text: str, language: str) -> str:
    code = _NUM2WORDS.get(language)
    if code is None:
        return text

    def words(match: re.Match[str]) -> str:
        digits = match[0].replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", match[0]) else match[0]
        return f" {num2words(_number(digits), lang=code)} "

    return re.sub(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+", words, text)


def normalize(text: str, language: str) -> str:
    """Speakable text on one line, in NFC."""
    text = unicodedata.normalize("NFC", text).translate(_PLAIN)
    text = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    if rule := _RULES.get(language):
        text = rule(text)
    text = _speak_numbers(text, language)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ([,.;:!?،؛؟])", r"\1", text).strip()
