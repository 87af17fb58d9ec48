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
from myxtts.text.letters import ZWNJ, order_for_espeak
from myxtts.text.readings import read_chinese, read_japanese

PAUSES = {",": ",", ";": ",", ":": ",", "-": ",", "،": ",", "؛": ",", "、": ",", "，": ",", "।": ".", "॥": ".",
          ".": ".", "。": ".", "．": ".", "!": "!", "！": "!", "?": "?", "？": "?", "؟": "?"}  # fmt: skip
_CLAUSE = re.compile(r"([,;:،؛、，।॥。．！？؟!?]+|\.+(?=\s|$|[\"')\]」』])|\s-\s|--+)")
_VOICES = {"en": "en-us", "es": "es", "pt": "pt-br"}
_SCRIPTS = {
    "fa": ("ARABIC",), "ar": ("ARABIC",), "ru": ("CYRILLIC",), "zh": ("CJK", "IDEOGRAPHIC"), "ko": ("HANGUL",),
    "ja": ("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC"), "hi": ("DEVANAGARI",),
}  # fmt: skip
_SILENT = frozenset("\"'()[]{}<>*_~^|\\/¿¡·・‧「」『』〈〉《》【】〔〕〜～" + ZWNJ)
_UNSAID = str.maketrans(dict.fromkeys(_SILENT - {"'", ZWNJ}, " "))  # espeak-ng would say "asterisk"
_MARKS = re.compile("[\u064b-\u0655\u0670\u0900-\u097f]")


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


@functools.cache
def is_speakable(character: str, language: str) -> bool:
    """Whether a character of normalised text is a letter of the language, a Latin letter, a pause or a silent sign."""
    if character in PAUSES or character in _SILENT or character.isspace():
        return True
    name = unicodedata.name(character, "")
    if unicodedata.category(character).startswith("M"):
        scripts = _SCRIPTS.get(language, ())
        return name.startswith(scripts) and bool(scripts) and _MARKS.match(character) is not None
    return character.isalpha() and name.startswith((*_SCRIPTS.get(language, ()), "LATIN", "MODIFIER"))


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
    units: list[str] = []
    for part in _CLAUSE.split(text):
        pause = PAUSES.get(part.strip()[:1]) if _CLAUSE.fullmatch(part) else None
        if pause:
            if units and units[-1] not in PAUSES.values():
                units.append(pause)
        elif any(c.isalnum() for c in part):
            units += _read_clause(part, language)
    if not any(unit not in PAUSES.values() for unit in units):
        raise UsageError(f"nothing to speak in {text[:60]!r}; write at least one word")
    return units


def _read_clause(clause: str, language: str) -> list[str]:
    if language == "ja":
        return read_japanese(clause.translate(_UNSAID))
    if language == "zh":
        runs = re.findall(r"[a-zA-Z][a-zA-Z' -]*|[^\W\d_a-zA-Z]+", clause)
        return [unit for run in runs for unit in (_ask_espeak(run, "en-us") if run[0].isascii() else read_chinese(run))]
    return _ask_espeak(order_for_espeak(clause.translate(_UNSAID)), _VOICES.get(language, language))


_SWITCH = re.compile(r"\([a-z-]+\)")  # espeak-ng's marks for a switch of language
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")


def _ask_espeak(clause: str, voice: str) -> list[str]:
    with Espeak.lock:
        ipa = espeak().spell(clause, voice)
        if _SWITCH.search(ipa) and not _LATIN.search(clause):  # it spoke a letter's name, and in English
            letters = sorted({c for c in clause if c.isalpha() and _SWITCH.search(espeak().spell(c, voice))})
            raise UsageError(f"cannot speak {' '.join(letters)} in language {voice!r}: {clause[:60]!r}")
    units = re.split(r"[_\s]+", _SWITCH.sub("", ipa))
    return [unit for unit in units if unit.strip("ˈˌː-") and not unit.isdecimal()]
