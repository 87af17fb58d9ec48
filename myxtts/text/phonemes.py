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

PAUSES = {",": ",", ";": ",", ":": ",", "-": ",", "،": ",", "؛": ",", "、": ",", "，": ",", "।": ".",
          ".": ".", "。": ".", "．": ".", "!": "!", "！": "!", "?": "?", "？": "?", "؟": "?"}  # fmt: skip
_CLAUSE = re.compile(r"([,;:،؛、，।。．！？؟!?]+|\.+(?=\s|$|\")|\s-\s|--+)")
_VOICES = {"en": "en-us", "zh": "cmn", "es": "es", "pt": "pt-br"}
_SCRIPTS = {
    "fa": ("ARABIC",), "ar": ("ARABIC",), "ru": ("CYRILLIC",), "zh": ("CJK", "LATIN"), "ko": ("HANGUL", "LATIN"),
    "ja": ("HIRAGANA", "KATAKANA", "CJK", "LATIN"), "hi": ("DEVANAGARI",),
}  # fmt: skip


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


def _refuse_foreign(text: str, language: str) -> None:
    """espeak-ng reads a foreign letter by its name ("Chinese letter"); that is never what the speaker said."""
    scripts = _SCRIPTS.get(language, ("LATIN",))
    foreign = {c for c in text if c.isalpha() and not unicodedata.name(c, "").startswith((*scripts, "MODIFIER"))}
    if foreign:
        raise UsageError(f"cannot speak {' '.join(sorted(foreign))} in language {language!r}: {text[:60]!r}")


def phonemize(text: str, language: str) -> list[str]:
    """Phonemes and pauses of normalised text.

    Raises:
        UsageError: the text holds letters of another script, or nothing that can be spoken.
    """
    _refuse_foreign(text, language)
    units: list[str] = []
    with Espeak.lock:
        for part in _CLAUSE.split(text):
            pause = PAUSES.get(part.strip()[:1]) if _CLAUSE.fullmatch(part) else None
            if pause:
                if units and units[-1] not in PAUSES.values():
                    units.append(pause)
                continue
            if not any(c.isalnum() for c in part):
                continue
            ipa = espeak().spell(part, _VOICES.get(language, language))
            ipa = re.sub(r"\([a-z-]+\)", "", ipa)  # espeak-ng's marks for a switch of language
            units += [unit for unit in re.split(r"[_\s]+", ipa) if unit.strip("ˈˌː-")]
    if not any(unit not in PAUSES.values() for unit in units):
        raise UsageError(f"nothing to speak in {text[:60]!r}; write at least one word")
    return units
