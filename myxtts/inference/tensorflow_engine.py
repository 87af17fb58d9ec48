"""Speaking with TensorFlow: a checkpoint's models, compiled once for every length as soon as that pays.

In: a checkpoint, or models with the weights to speak with.
Out: an `Engine`, either of its parts, or a `Synthesizer` over it.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import GriffinLim, griffin_lim
from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint
from myxtts.checkpoint.packaged import find_vocoder, read_vocoder
from myxtts.checkpoint.weights import load_average
from myxtts.config.config import AudioConfig
from myxtts.devices import Place, plan_devices
from myxtts.errors import UsageError
from myxtts.inference.engine import DEFAULTS, SynthesisOptions
from myxtts.inference.synthesizer import Synthesizer
from myxtts.models.vocoder import Vocoder
from myxtts.models.xtts import XTTS

EAGER_SENTENCES = 3  # compiling takes as long as speaking about seven


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
        place: where the model lies.
        eager_calls: as of `Compiled`, in sentences.
    """

    def __init__(self, model: XTTS, place: Place, eager_calls: int = 0):
        self._model, self._place = model, place
        tokens, count = tf.TensorSpec([1, None], tf.int32), tf.TensorSpec([1], tf.int32)
        voice, scalar = tf.TensorSpec([1, None, model.config.width]), tf.TensorSpec([])
        signature = [tokens, count, voice, scalar, scalar, tf.TensorSpec([], tf.int32)]
        self._speak = Compiled(model.speak, signature, eager_calls)
        self._heard: tuple[np.ndarray, tf.Tensor] | None = None

    def forget_voice(self) -> None:
        """To be called when the model has been given other weights."""
        self._heard = None

    def mel(self, tokens: np.ndarray, reference: np.ndarray, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Normalised log-mel [frames, n_mels] of token ids [T] in the voice of a reference mel [frames, n_mels]."""
        with self._place.lock, tf.device(self._place.device):
            mel, _ = self._speak(
                tf.constant(tokens[None]),
                tf.constant([len(tokens)]),
                self._hear(reference),
                tf.constant(how.speed, tf.float32),
                tf.constant(np.log2(how.pitch), tf.float32),
                tf.constant(how.ode_steps),
            )
        return mel[0].numpy()

    def _hear(self, reference: np.ndarray) -> tf.Tensor:
        """Voice tokens [1, K, width]; a text of many sentences is spoken with one reference, which is heard once."""
        if self._heard is None or self._heard[0] is not reference:
            voice = self._model.voice(tf.constant(reference[None]), tf.constant([len(reference)]))
            self._heard = reference, tf.cast(voice, tf.float32)
        return self._heard[1]


class VocoderEngine:
    """Mel to waves on one device.

    Args:
        vocoder: with the weights to speak with, or Griffin-Lim.
        audio: the mel definition.
        place: where the vocoder lies.
        eager_calls: as of `Compiled`, in sentences.
    """

    def __init__(self, vocoder: Vocoder | GriffinLim, audio: AudioConfig, place: Place, eager_calls: int = 0):
        self._place = place

        def make(mel: tf.Tensor) -> tf.Tensor:
            if isinstance(vocoder, GriffinLim):
                return griffin_lim(mel, audio, vocoder)
            noise = tf.random.stateless_normal([1, (tf.shape(mel)[1] - 1) * audio.hop_samples], [0, 0], alg="philox")
            return vocoder.speak(mel, noise)

        signature = [tf.TensorSpec([1, None, audio.n_mels])]
        self._make = Compiled(make, signature, eager_calls)

    def wave(self, mel: np.ndarray) -> np.ndarray:
        """Waves [samples] of a mel [frames, n_mels]."""
        with self._place.lock, tf.device(self._place.device):
            return self._make(tf.constant(mel[None]))[0].numpy()


class TensorFlowEngine:
    """Both in one."""

    def __init__(self, acoustic: AcousticEngine, vocoder: VocoderEngine):
        self.mel, self.wave = acoustic.mel, vocoder.wave


def open_checkpoint(
    checkpoint: Path | str, vocoder: str | None = None, eager_calls: int = EAGER_SENTENCES
) -> Synthesizer:
    """A voice to speak with. Compiled after a few sentences: the first come sooner for it, those after them faster.

    Args:
        checkpoint: a run folder or one checkpoint of it.
        vocoder: as of `find_vocoder`.
        eager_calls: how many sentences are spoken before it is compiled; 0 for who is going to speak many.

    Raises:
        UsageError: it is no speech model.
    """
    saved = read_checkpoint(find_checkpoint(Path(checkpoint)), to_resume=False)
    if not saved.config.kind.speaks:
        raise UsageError(f"{checkpoint} is a vocoder; name it as `vocoder`, and a speech model as `checkpoint`")
    config, device = saved.config, plan_devices().model_device
    with tf.device(device):
        model = XTTS(config.model, len(saved.tokenizer.symbols), config.audio.n_mels)
        model.create_variables()
        load_average(model, saved.arrays, source=checkpoint)
    path, words = find_vocoder(vocoder, config.audio)
    made = read_vocoder(path, config.audio, device)
    place = Place(device)
    engine = TensorFlowEngine(
        AcousticEngine(model, place, eager_calls), VocoderEngine(made, config.audio, place, eager_calls)
    )
    return Synthesizer(engine, saved.tokenizer, saved.voices, config, words)
