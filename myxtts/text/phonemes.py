"""Phonemes from espeak-ng, whose library and data come in the `espeakng-loader` wheel.

In: normalised text and its language.
Out: phonemes, one string each with its stress mark joined to it ("ˈoʊ"), and punctuation where the voice pauses.
"""

import ctypes
import functools
import re
import threading
import unicodedata

import numpy as np

from myxtts.errors import UsageError
from myxtts.text.languages import get_language
from myxtts.text.languages.language import Language
from myxtts.text.letters import ZWNJ, order_for_espeak

PAUSES = {",": ",", ";": ",", ":": ",", "-": ",", "،": ",", "؛": ",", "、": ",", "，": ",", "।": ".", "॥": ".",
          ".": ".", "。": ".", "．": ".", "!": "!", "！": "!", "?": "?", "？": "?", "؟": "?"}  # fmt: skip
_SILENT = frozenset("\"'()[]{}<>*_~^|\\/¿¡·・‧「」『』〈〉《》【】〔〕〜～" + ZWNJ)
_UNSAID = str.maketrans(dict.fromkeys(_SILENT - {"'", ZWNJ}, " "))  # espeak-ng would say "asterisk"


class Espeak:
    """The shared library, initialised once in a process. Hold `lock` while using it: it keeps one global voice."""

    lock = threading.Lock()

    _PHONEMES_IPA, _UTF8, _SYNCHRONOUS = 0x02, 1, 2

    def __init__(self) -> None:
        import espeakng_loader

        self._library = ctypes.cdll.LoadLibrary(espeakng_loader.get_library_path())
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._library.espeak_TextToPhonemes.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int]
        data = espeakng_loader.get_data_path().encode()
        self.sample_rate = self._library.espeak_Initialize(self._SYNCHRONOUS, 0, data, 0)
        if self.sample_rate < 0:
            raise RuntimeError("espeak-ng found no data; reinstall the espeakng-loader package")
        self._voice = ""

    def _choose(self, voice: str) -> None:
        if voice != self._voice:
            if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
                raise UsageError(f"espeak-ng has no voice {voice!r}")
            self._voice = voice

    def spell(self, text: str, voice: str) -> str:
        """IPA of a clause: "_" between phonemes, blanks between words."""
        self._choose(voice)
        buffer = ctypes.create_string_buffer(text.encode())
        position = ctypes.c_void_p(ctypes.addressof(buffer))
        pieces = []
        while position.value:
            piece = self._library.espeak_TextToPhonemes(
                ctypes.byref(position), self._UTF8, ord("_") << 8 | self._PHONEMES_IPA
            )
            pieces.append(piece.decode() if piece else "")
        return " ".join(pieces)

    def speak(self, text: str, voice: str) -> np.ndarray:
        """Float32 samples at `sample_rate` in espeak-ng's own voice."""
        self._choose(voice)
        pieces: list[np.ndarray] = []

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
        def collect(samples, count, _events):
            if count:
                pieces.append(np.ctypeslib.as_array(samples, (count,)).astype(np.float32) / 32768.0)
            return 0

        self._library.espeak_SetSynthCallback(collect)
        words = text.encode()
        self._library.espeak_Synth(words, ctypes.c_size_t(len(words) + 1), 0, 1, 0, self._UTF8, None, None)
        self._library.espeak_Synchronize()
        self._library.espeak_SetSynthCallback(None)
        return np.concatenate(pieces)


@functools.cache
def espeak() -> Espeak:
    """The one instance of this process."""
    return Espeak()


def pauses_of(language: Language) -> dict[str, str]:
    """Every sign that is read as a pause, and as which one."""
    return PAUSES | language.pauses


@functools.cache
def _clause_ends(language: Language) -> re.Pattern[str]:
    alone = re.escape("".join(sign for sign in pauses_of(language) if sign not in ".-"))
    return re.compile(rf"([{alone}]+|\.+(?=\s|$|[\"')\]」』])|\s-\s|--+)")


@functools.cache
def is_speakable(character: str, language: str) -> bool:
    """Whether a character of normalised text is a letter of the language, a Latin letter, a pause or a silent sign."""
    known = get_language(language)
    if character in pauses_of(known) or character in _SILENT or character.isspace():
        return True
    name = unicodedata.name(character, "")
    if unicodedata.category(character).startswith("M"):
        return bool(known.vowel_marks) and re.match(f"[{known.vowel_marks}]", character) is not None
    return character.isalpha() and name.startswith((*known.scripts, "LATIN", "MODIFIER"))


def refuse_unspeakable(text: str, language: str) -> None:
    """espeak-ng reads a foreign letter or a sign by its name ("Chinese letter"), which no speaker said.

    Raises:
        UsageError: it names every character that cannot be spoken.
    """
    if bad := sorted({c for c in text if not is_speakable(c, language)}):
        named = " ".join(f"{c} (U+{ord(c):04X})" for c in bad[:8])
        raise UsageError(f"cannot speak {named} in language {language!r}: {text[:60]!r}")


def phonemize(text: str, language: str) -> list[str]:
    """Phonemes and pauses of normalised text.

    Raises:
        UsageError: the text holds characters that cannot be spoken, or nothing that can.
    """
    refuse_unspeakable(text, language)
    known = get_language(language)
    pauses, ends = pauses_of(known), _clause_ends(known)
    units: list[str] = []
    for part in ends.split(text):
        pause = pauses.get(part.strip()[:1]) if ends.fullmatch(part) else None
        if pause:
            if units and units[-1] not in PAUSES.values():
                units.append(pause)
        elif any(c.isalnum() for c in part):
            units += known.read(part) if known.read else _read_clause(part, known)
    if not any(unit not in PAUSES.values() for unit in units):
        raise UsageError(f"nothing to speak in {text[:60]!r}; write at least one word")
    return units


def without_silent_signs(clause: str) -> str:
    """Blanks in place of signs that a reader would name."""
    return clause.translate(_UNSAID)


def _read_clause(clause: str, language: Language) -> list[str]:
    return ask_espeak(order_for_espeak(without_silent_signs(clause)), language.espeak or language.code)


_SWITCH = re.compile(r"\([a-z-]+\)")  # espeak-ng's marks for a switch of language
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")


def ask_espeak(clause: str, voice: str) -> list[str]:
    """Sounds of a clause in one of espeak-ng's voices.

    Raises:
        UsageError: it would name letters instead of reading them.
    """
    with Espeak.lock:
        ipa = espeak().spell(clause, voice)
        if _SWITCH.search(ipa) and not _LATIN.search(clause):  # it spoke a letter's name, and in English
            letters = sorted({c for c in clause if c.isalpha() and _SWITCH.search(espeak().spell(c, voice))})
            raise UsageError(f"cannot speak {' '.join(letters)} in language {voice!r}: {clause[:60]!r}")
    units = re.split(r"[_\s]+", _SWITCH.sub("", ipa))
    return [unit for unit in units if unit.strip("ˈˌː-") and not unit.isdecimal()]
