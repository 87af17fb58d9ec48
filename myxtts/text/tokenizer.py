"""Text to token ids: the symbols that a model knows, learned from its training texts.

In: text (or ready phonemes) and a language.
Out: int32 ids that begin with the language's symbol and end with an end mark; 0 is padding.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from myxtts.errors import UsageError
from myxtts.text.languages import get_language
from myxtts.text.letters import ZWNJ
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import PAUSES, pauses_of, phonemize, refuse_unspeakable

PAD, END = "<pad>", "<end>"
STRESS = "ˈˌ"
_TIE = "\u0361"
_ONE_SOUND = {"tʃ", "dʒ", "ts", "dz", "tɕ", "dʑ", "oʊ", "aʊ", "aɪ", "eɪ", "ɔɪ"}  # as espeak-ng writes them
_KEPT = " '" + ZWNJ  # what character mode keeps besides letters and pauses
_NEAREST = {  # sounds that a language borrows, and what its speakers say who have not learned them
    "x": "k", "ç": "h", "χ": "k", "ɣ": "ɡ", "ɬ": "l", "ʎ": "l", "ɲ": "n", "β": "v", "q": "k", "r": "ɹ", "ʁ": "ɹ",
    "ɾ": "ɹ", "o": "oʊ", "e": "eɪ", "a": "æ", "ɑ": "ɑː", "ɔ": "ɔː", "œ": "ɜː", "ø": "ɜː", "y": "uː", "ɨ": "ɪ",
    "ɯ": "uː", "ɕ": "ʃ", "ʑ": "ʒ", "ʂ": "ʃ", "ʐ": "ʒ", "ɦ": "h", "ʋ": "v", "ɸ": "f", "c": "k", "ɟ": "dʒ", "ʔ": "t",
}  # fmt: skip


def spell(text: str, language: str, front_end: str) -> list[str]:
    """The units of a text before they become ids: phonemes or characters, with pauses."""
    speakable = normalize(text, language)
    if front_end == "phonemes":
        return phonemize(speakable, language)
    refuse_unspeakable(speakable, language)
    speakable = re.sub(r"(?<=\w)-(?=\w)", " ", speakable)  # a hyphen in a word is no pause
    known = get_language(language)
    pauses = pauses_of(known)
    lowered = known.lower(speakable)
    units = [pauses.get(c, c) for c in lowered if c.isalpha() or c in pauses or c in _KEPT or _is_mark(c)]
    if not any(c.isalpha() for c in units):
        raise UsageError(f"nothing to speak in {text[:60]!r}; write at least one word")
    return units


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def spell_phonemes(phonemes: str) -> list[str]:
    """Units of a `phonemes` column: blanks between words, optional `_` between phonemes, marks joined to their base.

    Raises:
        UsageError: there is no sound in it, or a symbol that only the tokenizer may use.
    """
    units: list[str] = []
    for word in phonemes.split():
        if "_" in word:
            bare = word.rstrip("".join(PAUSES))
            units += [unit for unit in bare.split("_") if unit]
            units += [PAUSES[c] for c in word[len(bare) :][:1]]
            continue
        stress = ""
        for c in word:
            if c in STRESS:
                stress = c
            elif (units and (_is_mark(c) or c in "ːˑʰʲʷˠˤ" or units[-1].endswith(_TIE))) or (
                not stress and units and units[-1].lstrip(STRESS) + c in _ONE_SOUND
            ):
                units[-1] += c
            else:
                units.append(PAUSES.get(c, stress + c))
                stress = ""
    units = [unit.replace(_TIE, "") for unit in units]
    if reserved := [c for unit in units for c in unit if c in "<>/\\()[]{}|" or c.isdecimal()]:
        raise UsageError(f"the phonemes hold {reserved[0]!r}, which is no sound")
    if not any(c.isalpha() for unit in units for c in unit):
        raise UsageError(f"the phonemes {phonemes[:60]!r} hold no sound")
    return units


@dataclass(frozen=True)
class Tokenizer:
    """The symbols of one model, in the order of their ids."""

    symbols: tuple[str, ...]
    front_end: str
    languages: tuple[str, ...]

    @classmethod
    def learn(cls, texts: Iterable[Sequence[str]], front_end: str, languages: Iterable[str]) -> "Tokenizer":
        """All units that occur, sorted, after padding, the end mark and one symbol for each language."""
        languages = tuple(sorted(set(languages)))
        known = sorted({unit for units in texts for unit in units})
        marks = (PAD, END, *(f"<{language}>" for language in languages))
        return cls((*marks, *known), front_end, languages)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Tokenizer":
        """From the table of its fields, as JSON gives it back."""
        return cls(tuple(document["symbols"]), document["front_end"], tuple(document["languages"]))

    def grown(self, other: "Tokenizer") -> "Tokenizer":
        """These symbols with their ids, and after them what only the other knows.

        Raises:
            UsageError: the other reads another front end's symbols.
        """
        if other.front_end != self.front_end:
            raise UsageError(
                f"the checkpoint reads {self.front_end}, not {other.front_end}; set `data.front_end={self.front_end}`"
            )
        languages = (*self.languages, *(name for name in other.languages if name not in self.languages))
        return Tokenizer((*self.symbols, *(s for s in other.symbols if s not in self._ids)), self.front_end, languages)

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    def _stand_in(self, unit: str) -> str | None:
        """The same sound with another stress or length, where training never met this one."""
        bare = unit.lstrip(STRESS)
        candidates = [mark + form for form in (bare, bare.replace("ː", ""), bare + "ː") for mark in ("", *STRESS)]
        return next((c for c in candidates if c in self._ids), None)

    def _known_parts(self, unit: str) -> list[str]:
        """The symbols that speak a unit: itself, a stand-in, or its longest known pieces; none if one is missing."""
        if unit in self._ids:
            return [unit]
        for end in range(len(unit), 0, -1):
            head = self._stand_in(unit[:end]) if unit[:end].strip(STRESS) else None
            if head is not None:
                rest = self._known_parts(unit[end:]) if unit[end:] else []
                return [head, *rest] if rest or not unit[end:] else []
        return []

    def nearest(self, units: Sequence[str]) -> dict[str, str]:
        """For each sound that cannot be spoken the nearest one that can, where there is one."""
        found: dict[str, str] = {}
        if self.front_end != "phonemes":
            return found
        for unit in {unit for unit in units if not self._known_parts(unit)}:
            bare = "".join(c for c in unit.lstrip(STRESS) if not _is_mark(c))
            candidates = (bare, "".join(_NEAREST.get(c, c) for c in bare))
            if near := next((sound for sound in candidates if self._known_parts(sound)), None):
                found[unit] = near
        return found

    @property
    def end_id(self) -> int:
        return self._ids[END]

    def language_id(self, language: str) -> int:
        """The id of a language's symbol."""
        if language not in self.languages:
            raise UsageError(f"this model speaks {', '.join(self.languages)}, not {language!r}")
        return self._ids[f"<{language}>"]

    def encode_symbols(self, units: Sequence[str]) -> list[np.ndarray]:
        """The ids of each unit by itself, int32."""
        known = {unit: self._known_parts(unit) for unit in set(units)}
        if unknown := sorted(unit for unit, parts in known.items() if not parts):
            raise UsageError(
                f"the model never heard {' '.join(unknown)} in training and cannot speak it; write that word otherwise"
            )
        return [np.array([self._ids[part] for part in known[unit]], np.int32) for unit in units]

    def encode_units(self, units: Sequence[str], language: str) -> np.ndarray:
        """Ids of ready units, int32 [length]; the language's symbol stands first."""
        start = self.language_id(language)
        return np.concatenate([[start], *self.encode_symbols(units), [self.end_id]]).astype(np.int32)

    def encode(self, text: str, language: str) -> tuple[np.ndarray, dict[str, str]]:
        """Ids of a text to be spoken, int32 [length], and the sounds that training never met, with their stand-ins."""
        units = spell(text, language, self.front_end)
        nearest = self.nearest(units)
        return self.encode_units([nearest.get(unit, unit) for unit in units], language), nearest
