"""A model made ready to speak: compiled once for every length.

In: tokens and voice tokens.
Out: mel frames, and waves by Griffin-Lim.
"""

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import griffin_lim
from myxtts.config.config import AudioConfig
from myxtts.models.xtts import XTTS


class Voicebox:
    """Speaks on one device. The first sentence pays for tracing, later ones do not.

    Args:
        model: with the weights to speak with.
        audio: the mel definition.
        device: where the model lies.
        turn: held while work is given to the device, where another thread gives it work too.
    """

    def __init__(self, model: XTTS, audio: AudioConfig, device: str, turn: AbstractContextManager | None = None):
        self.model, self.device, self._turn = model, device, turn or nullcontext()
        tokens, count = tf.TensorSpec([1, None], tf.int32), tf.TensorSpec([1], tf.int32)
        voice, scalar = tf.TensorSpec([1, None, model.config.width]), tf.TensorSpec([])
        self._speak = tf.function(model.speak, input_signature=[tokens, count, voice, scalar], autograph=False)
        self._vocode = tf.function(
            lambda mel: griffin_lim(mel, audio), input_signature=[tf.TensorSpec([1, None, audio.n_mels])]
        )

    def voice(self, reference: np.ndarray) -> tf.Tensor:
        """Voice tokens [1, K, width] of reference mel [frames, n_mels]."""
        with self._turn, tf.device(self.device):
            return tf.cast(self.model.voice(tf.constant(reference[None]), tf.constant([len(reference)])), tf.float32)

    def mel(self, tokens: np.ndarray, voice: tf.Tensor, speed: float = 1.0) -> np.ndarray:
        """Normalised log-mel [frames, n_mels] of token ids [T]."""
        with self._turn, tf.device(self.device):
            mel, _ = self._speak(
                tf.constant(tokens[None]), tf.constant([len(tokens)]), voice, tf.constant(speed, tf.float32)
            )
        return mel[0].numpy()

    def wave(self, mel: np.ndarray) -> np.ndarray:
        """Waves [samples] of a mel [frames, n_mels]."""
        with self._turn, tf.device(self.device):
            wave = self._vocode(tf.constant(mel[None]))[0]
        return wave.numpy()
