"""A text to sentences, none of them longer than what training heard.

In: any text, its language.
Out: the sentences in order.
"""

import re

from myxtts.errors import UsageError
from myxtts.text.abbreviations import ends_with_abbreviation
from myxtts.text.languages import get_language

LONGEST_CHARACTERS = 180


def split_sentences(text: str, language: str) -> list[str]:
    """Sentences of a text, at the marks that end one.

    Raises:
        UsageError: there is nothing to speak.
    """
    known = get_language(language)
    own = re.escape("".join(sign for sign, pause in known.pauses.items() if pause in ".!?"))
    ends = rf"(?<=[.!?؟।{own}])\s+(?=\S)|(?<=[。！？])\s*(?=[^\s」』”])"
    sentences: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        before = len(sentences)
        for part in re.split(ends, " ".join(paragraph.split())):
            if len(sentences) > before and ends_with_abbreviation(sentences[-1], part, known):
                sentences[-1] += " " + part  # the dot was an abbreviation's
            elif any(c.isalnum() for c in part):
                sentences.append(part)
    if not sentences:
        raise UsageError("the text is empty; write at least one word")
    return [piece for sentence in sentences for piece in _shorten(sentence)]


def _shorten(sentence: str) -> list[str]:
    """Cuts what is longer than any sentence in training, at a comma where there is one, else between words."""
    pieces = []
    while len(sentence) > LONGEST_CHARACTERS:
        head = sentence[:LONGEST_CHARACTERS]
        cut = max(head.rfind(mark) for mark in (", ", "; ", ": ", "، ", "؛ ")) + 1
        if cut < LONGEST_CHARACTERS // 3:
            cut = head.rfind(" ") if " " in head else LONGEST_CHARACTERS
        pieces.append(head[:cut].strip())
        sentence = sentence[cut:].strip()
    return [piece for piece in [*pieces, sentence] if any(c.isalnum() for c in piece)]
