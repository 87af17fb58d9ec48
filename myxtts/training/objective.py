"""What a model is trained for: its losses, and which weights each of them moves.

In: a model and a batch of its kind.
Out: `ObjectiveResult`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from myxtts.batch import Sizes


class Phase(NamedTuple):
    """What changes as a run goes on."""

    guidance: tf.Tensor  # how much the flat start still decides the alignment, 1 to 0
    adversarial: bool = False  # whether discriminators take part; the other way is traced anew


class LossTerm(NamedTuple):
    """A loss and the weights that are to lower it."""

    loss: tf.Tensor
    weights: Sequence[tf.Variable]


class ObjectiveResult(NamedTuple):
    """What an objective says of a batch."""

    losses: dict[str, tf.Tensor]  # by name; `loss` is what validation goes by
    terms: list[LossTerm]
    output: Any


class Objective(Protocol):
    """Losses of one kind of model. `sizes` are those of the whole batch, of which `batch` may be a part."""

    def __call__(self, model: Any, batch: Any, sizes: Sizes, phase: Phase) -> ObjectiveResult: ...
