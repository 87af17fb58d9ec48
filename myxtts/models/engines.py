"""Models made ready to speak: compiled once for every length, as soon as that pays.

In: tokens and voice tokens.
Out: mel frames, and waves by a vocoder or by Griffin-Lim.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import GriffinLim, griffin_lim
from myxtts.config.config import AudioConfig
from myxtts.models.vocoder import Vocoder
from myxtts.models.xtts import XTTS


@dataclass(frozen=True)
class SynthesisOptions:
    """How something is said."""

    speed: float = 1.0  # times as fast
    pitch: float = 1.0  # times as high
    ode_steps: int = 4  # in which the refiner samples the residual, where a model has one; 0: without


DEFAULTS = SynthesisOptions()


class Compiled:
    """A function that is run as it is for the first `eager_calls` calls and compiled for those that follow.

    Compiling takes as long as speaking some sentences: for a single one it is most of the waiting.
    """

    def __init__(self, function: Callable, signature: list[tf.TensorSpec], eager_calls: int):
        self._function, self._eager_calls = function, eager_calls
        self._compiled = tf.function(function, input_signature=signature, autograph=False)

    def __call__(self, *arguments: tf.Tensor):
        if self._eager_calls:
            self._eager_calls -= 1
            return self._function(*arguments)
        return self._compiled(*arguments)


class AcousticEngine:
    """Text to mel on one device.

    Args:
        model: with the weights to speak with.
        device: where the model lies.
        device_lock: held while work is given to the device, where another thread gives it work too.
        eager_calls: as of `Compiled`, in sentences.
    """

    def __init__(
        self, model: XTTS, device: str, device_lock: AbstractContextManager | None = None, eager_calls: int = 0
    ):
        self.model, self.device, self._device_lock = model, device, device_lock or nullcontext()
        tokens, count = tf.TensorSpec([1, None], tf.int32), tf.TensorSpec([1], tf.int32)
        voice, scalar = tf.TensorSpec([1, None, model.config.width]), tf.TensorSpec([])
        signature = [tokens, count, voice, scalar, scalar, tf.TensorSpec([], tf.int32)]
        self._speak = Compiled(model.speak, signature, eager_calls)

    def voice(self, reference: np.ndarray) -> tf.Tensor:
        """Voice tokens [1, K, width] of reference mel [frames, n_mels]."""
        with self._device_lock, tf.device(self.device):
            return tf.cast(self.model.voice(tf.constant(reference[None]), tf.constant([len(reference)])), tf.float32)

    def mel(self, tokens: np.ndarray, voice: tf.Tensor, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Normalised log-mel [frames, n_mels] of token ids [T]."""
        with self._device_lock, tf.device(self.device):
            mel, _ = self._speak(
                tf.constant(tokens[None]),
                tf.constant([len(tokens)]),
                voice,
                tf.constant(how.speed, tf.float32),
                tf.constant(np.log2(how.pitch), tf.float32),
                tf.constant(how.ode_steps),
            )
        return mel[0].numpy()


class VocoderEngine:
    """Mel to waves on one device.

    Args:
        vocoder: with the weights to speak with, or Griffin-Lim.
        audio: the mel definition.
        device: where the vocoder lies.
        device_lock: as of `AcousticEngine`.
        eager_calls: as of `Compiled`, in sentences.
    """

    def __init__(
        self,
        vocoder: Vocoder | GriffinLim,
        audio: AudioConfig,
        device: str,
        device_lock: AbstractContextManager | None = None,
        eager_calls: int = 0,
    ):
        self.device, self._device_lock = device, device_lock or nullcontext()

        def make(mel: tf.Tensor) -> tf.Tensor:
            if isinstance(vocoder, GriffinLim):
                return griffin_lim(mel, audio, vocoder)
            noise = tf.random.stateless_normal([1, (tf.shape(mel)[1] - 1) * audio.hop_samples], [0, 0], alg="philox")
            return vocoder.speak(mel, noise)

        signature = [tf.TensorSpec([1, None, audio.n_mels])]
        self._make = Compiled(make, signature, eager_calls)

    def wave(self, mel: np.ndarray) -> np.ndarray:
        """Waves [samples] of a mel [frames, n_mels]."""
        with self._device_lock, tf.device(self.device):
            return self._make(tf.constant(mel[None]))[0].numpy()
