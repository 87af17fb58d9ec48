"""What is trained, the speech model or the vocoder, and what the loop has to know of each.

In: XTTSConfig with `training.target`.
Out: a `Target`.
"""

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import log_mel, reference_mel
from myxtts.batch import PackedBatch, StepInput
from myxtts.checkpoint.packaged import find_vocoder, read_vocoder
from myxtts.checkpoint.weights import load_average
from myxtts.config.config import XTTSConfig
from myxtts.config.load import differences
from myxtts.data.dataset import HostDataset
from myxtts.errors import UsageError
from myxtts.models.discriminators import VocoderGAN
from myxtts.models.engines import AcousticEngine, VocoderEngine
from myxtts.models.layers import unstack_frames
from myxtts.models.vocoder import Vocoder
from myxtts.models.xtts import XTTS, XTTSOutput
from myxtts.pipeline.featurize import Featurizer, WaveFeaturizer
from myxtts.pipeline.feed import join
from myxtts.pipeline.stage import naming_stage
from myxtts.training.flat_start import FlatStart
from myxtts.training.metrics import Pictures
from myxtts.training.sampler import SampleGenerator
from myxtts.training.sets import sample_places

# The sections of the configuration that decide the shapes of each target's weights, and what in them does not.
SHAPED_BY = {"speech": ("model", "audio"), "vocoder": ("vocoder", "audio")}
SHAPELESS = (
    "model.reference_frames", "vocoder.slice_frames", "vocoder.discriminators_after", "vocoder.adversarial_loss",
    "vocoder.feature_matching_loss",
)  # fmt: skip


UNSEEN = ("audio.", "model.heads", "model.decoder_attention_every")  # what weights mean, which no shape tells


class Samples(NamedTuple):
    """What is to be spoken now and then, and where."""

    dataset: HostDataset  # whose sentences are spoken
    voices: dict[str, np.ndarray]  # speaker -> reference mel
    device: str
    device_lock: AbstractContextManager
    sentences: int


class Target(Protocol):
    """One kind of training."""

    loss_tells_best: bool  # whether the lowest validation loss is what one wants to speak with

    def adversarial(self, step: int) -> bool:
        """Whether discriminators take part in that step."""

    def make_model(self) -> Any:
        """A new model, on the current device."""

    def make_featurizer(self) -> Featurizer:
        """What prepares its batches."""

    def begin(
        self,
        model: Any,
        feed: Iterator[StepInput],
        dataset: HostDataset,
        device: str,
        stop: threading.Event,
        device_lock: AbstractContextManager,
    ) -> Iterator[StepInput]:
        """Looks at the first batches of a new run before they are trained on; gives all of them."""

    def draw(self, packed: PackedBatch, output: Any) -> Pictures:
        """The first clip of a batch as it is and as the model makes it."""

    def make_generator(self, wanted: Samples) -> SampleGenerator:
        """What speaks the samples that are wanted."""


class SpeechTarget:
    """Text to mel."""

    loss_tells_best = True

    def __init__(self, config: XTTSConfig, symbols: int, card: bool):
        self._config, self._symbols, self._card = config, symbols, card

    def adversarial(self, step: int) -> bool:
        return False

    def make_model(self) -> XTTS:
        config = self._config
        return XTTS(config.model, self._symbols, config.audio.n_mels, config.training.mixed_precision, self._card)

    def make_featurizer(self) -> Featurizer:
        return Featurizer(self._config)

    def begin(
        self,
        model: XTTS,
        feed: Iterator[StepInput],
        dataset: HostDataset,
        device: str,
        stop: threading.Event,
        device_lock: AbstractContextManager,
    ) -> Iterator[StepInput]:
        """Sweeps over the first batches to set up the alignment guide."""
        config = self._config.training
        if not config.flat_start_sweeps or not config.guide_steps:
            return feed
        wanted = max(1, min(config.flat_start_clips // self._config.step_clips, dataset.batches_per_epoch))
        first = list(itertools.islice(feed, wanted))
        flat_start = FlatStart(model)
        for sweep, (number, batch) in itertools.product(range(config.flat_start_sweeps), enumerate(first)):
            if stop.is_set():
                return iter(())
            names = functools.partial(dataset.names, number)
            with naming_stage("flat start", number, names), device_lock, tf.device(device):
                flat_start.add(join(batch, device), first=sweep == 0)
                if number == len(first) - 1:
                    flat_start.finish_sweep()
        return itertools.chain(first, feed)

    def draw(self, packed: PackedBatch, output: XTTSOutput) -> Pictures:
        batch = packed.unpack()
        step, frames, tokens = self._config.model.frames_per_step, int(batch.mel_lengths[0]), int(batch.text_lengths[0])
        spoken = unstack_frames(output.mel, step)[0, :frames].numpy()
        return Pictures(batch.mel[0, :frames].numpy(), spoken, output.path[0, :tokens, : frames // step].numpy())

    def make_generator(self, wanted: Samples) -> SampleGenerator:
        dataset, voices, device, device_lock, sentences = wanted
        places = sample_places(dataset, sentences)
        clips = [dataset.pack[int(dataset.clips[place])] for place in places]
        # A speaker without a voice of its own borrows the first one.
        references = [voices.get(clip.speaker, next(iter(voices.values()))) for clip in clips]
        tokens = [dataset.tokens(place) for place in places]
        audio = self._config.audio
        with device_lock, tf.device(device):
            model = XTTS(self._config.model, self._symbols, audio.n_mels)
            model.create_variables()
            vocoder = read_vocoder(find_vocoder(None, audio)[0], audio, device)
        acoustic, vocoder_engine = (
            AcousticEngine(model, device, device_lock),
            VocoderEngine(vocoder, audio, device, device_lock),
        )

        def say(number: int) -> np.ndarray:
            return vocoder_engine.wave(acoustic.mel(tokens[number], acoustic.voice(references[number])))

        texts, languages = [clip.text for clip in clips], [clip.language for clip in clips]
        recordings, speakers = _recordings(dataset, places), [clip.speaker for clip in clips]
        return SampleGenerator(texts, languages, _loader(model, device, device_lock), say, recordings, speakers)


class VocoderTarget:
    """Mel to waves."""

    loss_tells_best = False  # discriminators prefer what is sharper than the mean, which costs spectral loss

    def __init__(self, config: XTTSConfig, card: bool):
        self._config, self._card = config, card

    def adversarial(self, step: int) -> bool:
        return step >= self._config.vocoder.discriminators_after

    def make_model(self) -> VocoderGAN:
        return VocoderGAN(self._config.vocoder, self._config.audio, self._card)

    def make_featurizer(self) -> Featurizer:
        return WaveFeaturizer(self._config)

    def begin(
        self,
        model: VocoderGAN,
        feed: Iterator[StepInput],
        dataset: HostDataset,
        device: str,
        stop: threading.Event,
        device_lock: AbstractContextManager,
    ) -> Iterator[StepInput]:
        return feed

    def draw(self, packed: PackedBatch, output: tf.Tensor) -> Pictures:
        return Pictures(packed.unpack().mel[0].numpy(), log_mel(output[:1], self._config.audio)[0].numpy(), None)

    def make_generator(self, wanted: Samples) -> SampleGenerator:
        dataset, _, device, device_lock, sentences = wanted
        audio = self._config.audio
        places = sample_places(dataset, sentences)
        recordings = _recordings(dataset, places)
        mels = [reference_mel(wave, audio, 1) for wave in recordings]
        with device_lock, tf.device(device):
            model = Vocoder(self._config.vocoder, audio)
            model.create_variables()
        vocoder_engine = VocoderEngine(model, audio, device, device_lock)
        clips = [dataset.pack[int(dataset.clips[place])] for place in places]
        texts, languages = [clip.text for clip in clips], [clip.language for clip in clips]
        load = _loader(model, device, device_lock, besides=("discriminators",))
        speakers = [clip.speaker for clip in clips]
        return SampleGenerator(
            texts, languages, load, lambda n: vocoder_engine.wave(mels[n]), recordings, speakers, copies=True
        )


def _recordings(dataset: HostDataset, places: list[int]) -> list[np.ndarray]:
    return [dataset.pack.wave(int(dataset.clips[place])).astype(np.float32) / 32768.0 for place in places]


def _loader(
    model: Any, device: str, device_lock: AbstractContextManager, besides: Sequence[str] = ()
) -> Callable[[dict[str, np.ndarray]], None]:
    """What gives a model on a device new averaged weights, under the lock of the device."""

    def load(average: dict[str, np.ndarray]) -> None:
        with device_lock, tf.device(device):
            load_average(model, average, besides)

    return load


def make_target(config: XTTSConfig, symbols: int, card: bool = False) -> Target:
    """What `training.target` names, in the form that a card or the CPU is quick at."""
    vocoder = config.training.target == "vocoder"
    return VocoderTarget(config, card) if vocoder else SpeechTarget(config, symbols, card)


def refuse_other_model(config: XTTSConfig, saved: XTTSConfig, path: Path | None, whole: bool) -> None:
    """Refuses a checkpoint of another target, of another mel, or, where it is needed as a whole, of other shapes.

    Raises:
        UsageError: it says in what they differ.
    """
    if config.training.target != saved.training.target:
        raise UsageError(f"{path} is a {saved.training.target} model; add --target {saved.training.target}")
    lines = [line for section in SHAPED_BY[config.training.target] for line in differences(config, saved, section)]
    lines = [line for line in lines if not line.startswith(SHAPELESS)]
    if not whole:
        lines = [line for line in lines if line.startswith(UNSEEN)]
    if lines:
        raise UsageError(f"{path} is another model: {'; '.join(lines)}")
