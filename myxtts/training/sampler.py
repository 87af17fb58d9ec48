"""Sample audio while a run goes on, from the averaged weights, on a device that does not train.

In: a copy of the averaged weights; a few clips' tokens and voices.
Out: WAV files in `RUN/samples/step-…/`, and the waves for TensorBoard.
"""

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.wav import write_wave
from myxtts.config.config import XTTSConfig
from myxtts.errors import RunError, UsageError
from myxtts.models.voicebox import Voicebox
from myxtts.models.xtts import XTTS
from myxtts.training.aside import Aside
from myxtts.training.metrics import Event, Notice, Sample
from myxtts.training.step import load_average


@dataclass(frozen=True)
class Sentence:
    """What a sample says, and in whose voice."""

    text: str
    tokens: np.ndarray  # int32 [T]
    reference: np.ndarray  # mel [frames, n_mels]


class Sampler:
    """A model of its own.

    Args:
        config: shapes of the model.
        symbols: how many the model knows.
        sentences: what to say each time.
        device: where to speak.
        turn: held while work is given to that device, to which the feed gives work too.
        run: the run folder.
    """

    def __init__(
        self,
        config: XTTSConfig,
        symbols: int,
        sentences: Sequence[Sentence],
        device: str,
        turn: AbstractContextManager,
        run: Path,
    ):
        self._config, self._symbols, self._sentences = config, symbols, sentences
        self._device, self._turn, self._run = device, turn, run
        self._voicebox: Voicebox | None = None
        self._speaking = False

    def warm_up(self) -> None:
        """Makes the model and compiles it, so that no sample has to."""
        sentence = self._sentences[0]
        box = self._voicebox = self._make_voicebox()
        box.wave(box.mel(sentence.tokens, box.voice(sentence.reference)))

    def begin(self, step: int, average: tf.Variable, aside: Aside[Event]) -> None:
        """Has the sentences spoken beside the loop, unless the ones before are still being spoken."""
        if self._speaking:
            aside.do(lambda: Notice(step, "⚠️ no sample audio: the last one is still being spoken"))
            return
        self._speaking = True
        aside.do(functools.partial(self._speak_all, step, average.numpy().copy()))

    def _speak_all(self, step: int, average: np.ndarray) -> Sample | Notice:
        try:
            return self.speak(step, average)
        finally:
            self._speaking = False

    def speak(self, step: int, average: np.ndarray) -> Sample | Notice:
        """Speaks every sentence with these averaged weights."""
        box = self._voicebox = self._voicebox or self._make_voicebox()
        with self._turn, tf.device(self._device):
            load_average(box.model, {"average": average})
        folder = self._run / "samples" / f"step-{step:08d}"
        rate, waves = self._config.audio.sample_rate, []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for number, sentence in enumerate(self._sentences, 1):
                wave = box.wave(box.mel(sentence.tokens, box.voice(sentence.reference)))
                wave *= min(1.0, 0.95 / max(float(np.abs(wave).max()), 1e-6))
                write_wave(folder / f"{number}.wav", wave, rate)
                waves.append(wave)
            lines = "".join(f"{number}.wav {s.text}\n" for number, s in enumerate(self._sentences, 1))
            (folder / "sentences.txt").write_text(lines, encoding="utf-8")
        except (OSError, UsageError, RunError) as error:
            return Notice(step, f"⚠️ no sample audio: {error}")
        return Sample(step, str(folder), rate, waves)

    def _make_voicebox(self) -> Voicebox:
        with self._turn, tf.device(self._device):
            model = XTTS(self._config.model, self._symbols, self._config.audio.n_mels)
            model.create_variables()
        return Voicebox(model, self._config.audio, self._device, self._turn)
