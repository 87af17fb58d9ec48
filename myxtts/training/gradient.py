"""The gradient of a batch: the only place with a GradientTape.

In: the flat weights, a packed batch, both on the device where it is computed.
Out: the flat gradient and the named losses as scalars on the device, not read back.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import keras
import tensorflow as tf

from myxtts.batch import HEAD, Layout, PackedBatch, read_sizes, sizes_of
from myxtts.training.objective import Objective, Phase
from myxtts.training.parameters import FlatParameters
from myxtts.training.tracing import AnyLength

Losses = dict[str, tf.Tensor]


class Trainable(Protocol):
    """What a step needs of a model; `XTTS` and `VocoderGAN` are such."""

    trainable_variables: list[keras.Variable]
    symbol_table: keras.Variable | None

    def create_variables(self) -> None: ...

    def named_weights(self) -> dict[str, keras.Variable]: ...

    def buffers(self) -> dict[str, keras.Variable]: ...


class Given(NamedTuple):
    """What a gradient is found from besides a batch: tensors, so that any device can be given them."""

    weights: tf.Tensor | list[tf.Tensor]  # float32, flat, or the slices of it that the model is computed from
    buffers: list[tf.Tensor]
    taken: tf.Tensor  # int64
    scale: tf.Tensor


class Gradient:
    """The gradient of one model's losses, flat, with a count of its traces.

    Args:
        model: what is differentiated.
        objective: its losses.
        parameters: where the model's weights lie in the flat vector.
        learns: for each weight whether it has a gradient at all.
        guidance: how much the flat start decides the alignment, by the number of steps taken.
        compiled: whether XLA compiles it as a whole.
    """

    def __init__(
        self,
        model: Trainable,
        objective: Objective,
        parameters: FlatParameters,
        learns: Sequence[bool],
        guidance: Callable[[tf.Tensor], tf.Tensor],
        compiled: bool,
    ):
        self._model, self._objective, self._guidance = model, objective, guidance
        self._parameters, self._learns, self.compiled = parameters, learns, compiled
        # The slices are made outside of what XLA compiles: there they are views, inside they would be copies.
        self._inner = tf.function(self.find, autograph=False, jit_compile=True) if compiled else self.find
        self._outer = AnyLength(self._slice_and_find, fixed=compiled)
        self._cut = tf.function(self._cut_rows, autograph=False, reduce_retracing=True)
        self._add = tf.function(self._add_up, autograph=False)

    @property
    def traces(self) -> int:
        return self._outer.traces

    def of(
        self, given: Given, batch: PackedBatch, head: tf.Tensor | None, parts: int, adversarial: bool
    ) -> tuple[tf.Tensor, Losses]:
        """Gradient and losses of a batch, found in so many parts.

        `head` holds the sizes of the batch that this one is a shard of, where it is one.
        """
        pieces = [(batch.floats, batch.labels)]
        if parts > 1:
            head = batch.labels[:, :HEAD] if head is None else head
            pieces = self._cut(batch.floats, batch.labels, parts)
        found = [self._outer((given, head), piece, batch.layout, adversarial) for piece in pieces]
        if parts == 1:
            return found[0]
        return self._add(found)

    @staticmethod
    def _cut_rows(floats: tf.Tensor, labels: tf.Tensor, parts: int) -> list[tuple[tf.Tensor, tf.Tensor]]:
        return list(zip(tf.split(floats, parts), tf.split(labels, parts), strict=True))

    @staticmethod
    def _add_up(found: list[tuple[tf.Tensor, Losses]]) -> tuple[tf.Tensor, Losses]:
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *found)

    def _slice_and_find(
        self, state: tuple[Given, tf.Tensor | None], rows: Sequence[tf.Tensor], layout: Layout, adversarial: bool
    ) -> tuple[tf.Tensor, Losses]:
        (given, head), (floats, labels) = state, rows
        given = given._replace(weights=self._parameters.slices(given.weights))
        return self._inner(given, floats, labels, head, layout, adversarial)

    def find(
        self,
        given: Given,
        floats: tf.Tensor,
        labels: tf.Tensor,
        head: tf.Tensor | None,
        layout: Layout,
        adversarial: bool,
    ) -> tuple[tf.Tensor, Losses]:
        """All that XLA compiles, as a function of tensors alone; the weights are given as slices."""
        model, slices = self._model, given.weights
        batch = layout.unpack(floats, labels)
        sizes = sizes_of(batch) if head is None else read_sizes(head)
        learning = [tensor for tensor, learns in zip(slices, self._learns, strict=True) if learns]
        kept = list(zip(model.buffers().values(), given.buffers, strict=True))
        with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
            tape.watch(learning)
            with self._parameters.scope(slices, kept):
                found = self._objective(model, batch, sizes, Phase(self._guidance(given.taken), adversarial))
            terms = [(term.loss * given.scale, {id(v) for v in term.weights}) for term in found.terms]
        variables = model.named_weights().values()
        gradients: dict[int, tf.Tensor] = {}
        for loss, moved in terms:
            places = [n for n, v in enumerate(variables) if id(v) in moved and self._learns[n]]
            gradients.update(zip(places, tape.gradient(loss, [slices[n] for n in places]), strict=True))
        flat = self._parameters.flatten(
            gradients[n] if n in gradients else tf.zeros(tensor.shape) for n, tensor in enumerate(slices)
        )
        frames = tf.reduce_sum(tf.cast(batch.mel_lengths, tf.float32) * batch.weights)
        return flat, {**found.losses, "frames": frames}
