"""Text and a reference recording to a waveform.

In: an engine, text, a language, optional reference waves.
Out: float32 [samples] at the voice's sampling rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.audio.mel import LOG_DEVIATION, LOG_MEAN, reference_mel
from myxtts.audio.wav import limit_peak, read_wave, trim_silence
from myxtts.config.config import XTTSConfig
from myxtts.errors import UsageError
from myxtts.inference.engine import DEFAULTS, Engine, SynthesisOptions
from myxtts.text.sentences import split_sentences
from myxtts.text.tokenizer import Tokenizer

SENTENCE_GAP_SECONDS, FADE_SECONDS = 0.25, 0.01
SHORTEST_REFERENCE_SECONDS, LONGEST_REFERENCE_SECONDS = 0.5, 30


@dataclass(frozen=True)
class Script:
    """A text that can be spoken: its sentences as symbols, and sounds that training never met with their stand-ins."""

    text: str
    language: str
    sentences: tuple[np.ndarray, ...]
    replaced: dict[str, str]


class Synthesizer:
    """A voice that speaks.

    Args:
        engine: what it speaks with.
        tokenizer: of the engine's model.
        voices: a reference mel of each speaker from training.
        config: of the engine's model.
        vocoder: in words, what makes the waves.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        voices: Mapping[str, np.ndarray],
        config: XTTSConfig,
        vocoder: str,
    ):
        self.engine, self.tokenizer, self.voices, self.config, self.vocoder = engine, tokenizer, voices, config, vocoder
        self.sample_rate = config.audio.sample_rate

    def voice(self, references: Sequence[Path] = (), speaker: str | None = None) -> np.ndarray:
        """The mel of recordings, or of a speaker from training (the first one when none is named), to speak like.

        Raises:
            UsageError: there is no such speaker, or too little speech in a recording.
        """
        if references:
            return np.concatenate([self.read_reference(path) for path in references])
        name = next(iter(self.voices)) if speaker is None else speaker
        if name not in self.voices:
            raise UsageError(f"no speaker {name!r} in this checkpoint; it has {', '.join(self.voices)}")
        return self.voices[name].astype(np.float32)

    def read_reference(self, path: Path) -> np.ndarray:
        """Normalised log-mel of the speech in a recording, about as loud as what was trained with.

        Raises:
            UsageError: there is too little of it.
        """
        wave = read_wave(path, self.sample_rate)
        if np.abs(wave).max() < 1e-3:
            raise UsageError(f"{path} holds only silence; a reference needs at least half a second of speech")
        wave = trim_silence(wave, self.sample_rate)[: LONGEST_REFERENCE_SECONDS * self.sample_rate]
        if len(wave) < SHORTEST_REFERENCE_SECONDS * self.sample_rate:
            seconds = len(wave) / self.sample_rate
            raise UsageError(f"{path} holds {seconds:.2f} s of speech; a reference needs at least half a second")
        mel = self._to_mel(wave)
        around, give = [_loudness(voice) for voice in self.voices.values()], self.config.data.reference_gain_db
        gain = np.clip(_loudness(mel), min(around) - give, max(around) + give) - _loudness(mel)
        return self._to_mel(wave * np.float32(10 ** (gain / 20))) if gain else mel

    def _to_mel(self, wave: np.ndarray) -> np.ndarray:
        return reference_mel(wave, self.config.audio, self.config.model.frames_per_step)

    def read(self, text: str, language: str | None = None) -> Script:
        """What `speak` speaks; the language is the checkpoint's first one unless told.

        Raises:
            UsageError: there is nothing to speak, or signs that nobody can read.
        """
        language = language or self.tokenizer.languages[0]
        found = [self.tokenizer.encode(sentence, language) for sentence in split_sentences(text, language)]
        replaced = {sound: near for _, nearest in found for sound, near in nearest.items()}
        return Script(text, language, tuple(tokens for tokens, _ in found), replaced)

    def speak(self, script: Script, voice: np.ndarray, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Waveform of a text; between its sentences is a short pause."""
        gap = np.zeros(int(SENTENCE_GAP_SECONDS * self.sample_rate), np.float32)
        pieces: list[np.ndarray] = []
        for tokens in script.sentences:
            wave = fade(self.engine.wave(self.engine.mel(tokens, voice, how)), self.sample_rate)
            pieces += [gap, wave] if pieces else [wave]
        return limit_peak(np.concatenate(pieces))


def _loudness(mel: np.ndarray) -> float:
    """Of the loud frames of a normalised log-mel, in dB."""
    bands = mel.astype(np.float32) * LOG_DEVIATION + LOG_MEAN
    return float(np.percentile(20 / np.log(10) * np.log(np.exp(bands).mean(1)), 90))


def fade(wave: np.ndarray, sample_rate: int) -> np.ndarray:
    """The same wave rising from silence and falling back to it, so that no join can be heard as a click."""
    count = min(len(wave) // 2, int(FADE_SECONDS * sample_rate))
    slope = np.sin(np.linspace(0, np.pi / 2, count, dtype=np.float32)) ** 2
    wave = wave.copy()
    wave[:count] *= slope
    wave[len(wave) - count :] *= slope[::-1]
    return wave
