"""What a kind of training is to the loop.

In: XTTSConfig with `training.target`.
Out: a `Target`; `make_target` chooses one.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from myxtts.batch import PackedBatch, StepInput
from myxtts.checkpoint.weights import load_average
from myxtts.config.config import XTTSConfig
from myxtts.config.load import differences
from myxtts.data.dataset import HostDataset
from myxtts.devices import Place
from myxtts.errors import UsageError
from myxtts.pipeline.featurize import Featurizer
from myxtts.text.tokenizer import Tokenizer
from myxtts.training.metrics import Pictures
from myxtts.training.objective import Objective
from myxtts.training.sampler import SampleGenerator

UNSEEN = ("audio.", "model.heads", "model.decoder_attention_every")  # what weights mean, which no shape tells


class Samples(NamedTuple):
    """What is to be spoken now and then, and where."""

    dataset: HostDataset  # whose sentences are spoken
    tokenizer: Tokenizer
    voices: Mapping[str, np.ndarray]  # speaker -> reference mel
    place: Place
    sentences: int


class Target(Protocol):
    """One kind of training."""

    objective: Objective
    too_large: str  # what to do when not even one row of a batch fits into memory

    def adversarial(self, step: int) -> bool:
        """Whether discriminators take part in that step."""

    def make_model(self) -> Any:
        """A new model, on the current device."""

    def make_featurizer(self) -> Featurizer:
        """What prepares its batches."""

    def begin(
        self, model: Any, feed: Iterator[StepInput], dataset: HostDataset, place: Place, stop: threading.Event
    ) -> Iterator[StepInput]:
        """Looks at the first batches of a new run before they are trained on; gives all of them."""

    def draw(self, packed: PackedBatch, output: Any) -> Pictures:
        """The first clip of a batch as it is and as the model makes it."""

    def make_generator(self, wanted: Samples) -> SampleGenerator:
        """What speaks the samples that are wanted."""


def recordings_of(dataset: HostDataset, places: Sequence[int]) -> list[np.ndarray]:
    """Clips of a dataset as waves."""
    return [dataset.pack.wave(int(dataset.clips[place])).astype(np.float32) / 32768.0 for place in places]


def loader_of(model: Any, place: Place, besides: Sequence[str] = ()) -> Callable[[dict[str, np.ndarray]], None]:
    """What gives a model new averaged weights."""

    def load(average: dict[str, np.ndarray]) -> None:
        with place.lock, tf.device(place.device):
            load_average(model, average, besides)

    return load


def refuse_other_model(config: XTTSConfig, saved: XTTSConfig, path: Path | None, whole: bool) -> None:
    """Refuses a checkpoint of another target, of another mel, or, where it is needed as a whole, of other shapes.

    Raises:
        UsageError: it says in what they differ.
    """
    if config.kind is not saved.kind:
        raise UsageError(f"{path} is a {saved.kind.name} model; set `training.target={saved.kind.name}`")
    lines = [line for section in (config.kind.section, "audio") for line in differences(config, saved, section)]
    lines = [line for line in lines if not line.startswith(config.kind.shapeless)]
    if not whole:
        lines = [line for line in lines if line.startswith(UNSEEN)]
    if lines:
        raise UsageError(
            f"{path} is another model: {'; '.join(lines)}; leave `model.size` and other settings of its shape out"
        )
