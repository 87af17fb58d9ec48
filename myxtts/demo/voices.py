"""Voices that can read a corpus offline.

In: a sentence.
Out: float32 samples and their rate.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np
import soundfile

from myxtts.errors import UsageError
from myxtts.text.phonemes import Espeak, espeak


def choose_voice(wanted: str) -> str:
    """The wanted voice, or for `auto` the most natural one that is installed.

    Raises:
        UsageError: the wanted voice is not installed.
    """
    installed = {
        "hibari": importlib.util.find_spec("hibari") is not None,
        "flite": shutil.which("flite") is not None,
        "espeak": True,
    }
    if wanted == "auto":
        return "hibari" if installed["hibari"] else "espeak"
    if not installed[wanted]:
        install = "pip install hibari-tts" if wanted == "hibari" else "apt-get install flite"
        raise UsageError(f"the voice {wanted} is not installed; run {install!r} or choose the voice espeak")
    return wanted


class Reader:
    """Reads sentences aloud into arrays, from several threads at once.

    Args:
        voice: `hibari`, `flite` or `espeak`, with a kind of it after a colon (`flite:rms`, `espeak:en-us+f3`), and
            after an `@` how much faster its recordings are played (`hibari@0.8`): pitch and timbre become another's.
    """

    def __init__(self, voice: str):
        name, _, tempo = voice.partition("@")
        self.voice, _, self._kind = name.partition(":")
        self._tempo = float(tempo or 1.0)
        self._local = threading.local()

    def read(self, sentence: str, seed: int) -> tuple[np.ndarray, int]:
        """Samples and rate; the same for the same sentence and seed."""
        wave, rate = getattr(self, f"_read_{self.voice}")(sentence, seed)
        return wave, round(rate * self._tempo)

    def _read_hibari(self, sentence: str, seed: int) -> tuple[np.ndarray, int]:
        if not hasattr(self._local, "hibari"):
            from hibari import Hibari

            self._local.hibari = Hibari()
        return np.asarray(self._local.hibari(sentence, seed=seed), np.float32), 24000

    def _read_flite(self, sentence: str, _seed: int) -> tuple[np.ndarray, int]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "spoken.wav")
            subprocess.run(["flite", "-voice", self._kind or "slt", "-t", sentence, "-o", str(path)], check=True)
            wave, rate = soundfile.read(path, dtype="float32")
        return wave, rate

    def _read_espeak(self, sentence: str, _seed: int) -> tuple[np.ndarray, int]:
        with Espeak.lock:
            return espeak().speak(sentence, self._kind or "en-us"), espeak().sample_rate
