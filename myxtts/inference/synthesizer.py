"""Text and a reference recording to a waveform.

In: a checkpoint, text, a language, optional reference waves.
Out: float32 [samples] at the checkpoint's sampling rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import LOG_DEVIATION, LOG_MEAN, reference_mel
from myxtts.audio.wav import limit_peak, read_wave, trim_silence
from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint
from myxtts.checkpoint.packaged import find_vocoder, read_vocoder
from myxtts.checkpoint.weights import load_average
from myxtts.devices import plan_devices
from myxtts.errors import UsageError
from myxtts.models.engines import DEFAULTS, AcousticEngine, SynthesisOptions, VocoderEngine
from myxtts.models.xtts import XTTS
from myxtts.text.sentences import split_sentences

SENTENCE_GAP_SECONDS, FADE_SECONDS = 0.25, 0.01
SHORTEST_REFERENCE_SECONDS, LONGEST_REFERENCE_SECONDS = 0.5, 30
EAGER_SENTENCES = 3  # sentences: compiling takes as long as speaking about seven


@dataclass(frozen=True)
class Script:
    """A text that can be spoken: its sentences as symbols, and sounds that training never met with their stand-ins."""

    text: str
    language: str
    sentences: tuple[np.ndarray, ...]
    replaced: dict[str, str]


class Synthesizer:
    """A loaded voice. It is compiled after a few sentences: the first ones come sooner for it, those after them faster.

    Args:
        checkpoint: a run folder or one checkpoint of it.
        vocoder: as of `find_vocoder`; the attribute tells in words which one speaks.
        eager_calls: how many sentences are spoken before it is compiled; 0 for who is going to speak many.
    """

    def __init__(self, checkpoint: Path, vocoder: str | None = None, eager_calls: int = EAGER_SENTENCES):
        saved = read_checkpoint(find_checkpoint(checkpoint), to_resume=False)
        if saved.config.training.target != "speech":
            raise UsageError(f"{checkpoint} is a vocoder; name it with --vocoder and a speech model with --checkpoint")
        self.config, self.tokenizer, self.voices = saved.config, saved.tokenizer, saved.voices
        self.sample_rate = saved.config.audio.sample_rate
        self.device = plan_devices().model_device
        n_mels = self.config.audio.n_mels
        with tf.device(self.device):
            self.model = XTTS(self.config.model, len(self.tokenizer.symbols), n_mels)
            self.model.create_variables()
            load_average(self.model, saved.arrays, source=checkpoint)
        self._acoustic = AcousticEngine(self.model, self.device, eager_calls=eager_calls)
        path, self.vocoder = find_vocoder(vocoder, self.config.audio)
        made = read_vocoder(path, self.config.audio, self.device)
        self.vocoder_engine = VocoderEngine(made, self.config.audio, self.device, eager_calls=eager_calls)

    def voice(self, references: Sequence[Path] = (), speaker: str | None = None) -> tf.Tensor:
        """Voice tokens of recordings, or of a speaker from training (the first one when none is named)."""
        if references:
            mels = [self.read_reference(path) for path in references]
        else:
            name = next(iter(self.voices)) if speaker is None else speaker
            if name not in self.voices:
                raise UsageError(f"no speaker {name!r} in this checkpoint; it has {', '.join(self.voices)}")
            mels = [self.voices[name].astype(np.float32)]
        return self._acoustic.voice(np.concatenate(mels))

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

    def mel(self, tokens: np.ndarray, voice: tf.Tensor, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Normalised log-mel [frames, n_mels] of one sentence."""
        return self._acoustic.mel(tokens, voice, how)

    def speak(self, script: Script, voice: tf.Tensor, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Waveform of a text; between its sentences is a short pause."""
        gap = np.zeros(int(SENTENCE_GAP_SECONDS * self.sample_rate), np.float32)
        pieces: list[np.ndarray] = []
        for tokens in script.sentences:
            wave = fade(self.vocoder_engine.wave(self.mel(tokens, voice, how)), self.sample_rate)
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
