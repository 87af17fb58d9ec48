"""How much of what was to be said was understood.

In: what was to be said and what a recogniser heard.
Out: edits and the number of characters or words they are counted against.
"""

import unicodedata
from collections.abc import Sequence

from myxtts.errors import UsageError
from myxtts.text.languages import get_language
from myxtts.text.normalize import normalize


def plain(text: str, language: str) -> str:
    """Letters and digits in lower case, single spaces; numbers and abbreviations as they are spoken."""
    try:
        spoken = normalize(text, language)
    except UsageError:  # a recogniser may hear a number that is beyond words
        spoken = text
    marks = get_language(language).short_vowels_written
    return " ".join("".join(_plain_letter(c, marks) for c in spoken.lower()).split())


def _plain_letter(c: str, marks: bool) -> str:
    """A letter or digit as it is; a mark on one as it is, but for short vowels where few write them; else a space."""
    if unicodedata.category(c).startswith("M"):
        return c if marks else ""
    return c if c.isalnum() else " "


def count_edits(wanted: Sequence, heard: Sequence) -> int:
    """The fewest insertions, deletions and replacements that make one out of the other."""
    row = list(range(len(heard) + 1))
    for number, one in enumerate(wanted, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(heard, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (one != other))
    return row[-1]


def count_errors(wanted: str, heard: str, language: str) -> dict[str, tuple[float, float]]:
    """Edits and lengths for `cer` and `wer`."""
    one, other = plain(wanted, language), plain(heard, language)
    return {
        "cer": (count_edits(one, other), max(1, len(one))),
        "wer": (count_edits(one.split(), other.split()), max(1, len(one.split()))),
    }
