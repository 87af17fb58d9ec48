"""Where the alignment begins: averages of each symbol's sound, found before the first gradient.

In: the first batches of a run, on the model device.
Out: the model's alignment guide.
"""

from collections.abc import Sequence

import tensorflow as tf

from myxtts.batch import PackedBatch, SpeechLayout
from myxtts.models.alignment import even_path, monotonic_search
from myxtts.models.layers import length_mask, sizes, stack_frames
from myxtts.models.xtts import XTTS
from myxtts.training.tracing import AnyLength


class FlatStart:
    """Statistics for the alignment guide, gathered batch by batch over a sweep."""

    def __init__(self, model: XTTS):
        self.model = model
        self._traced = AnyLength(self._statistics)
        self._sums: tuple[tf.Tensor, tf.Tensor, tf.Tensor] | None = None

    def add(self, batch: PackedBatch, first: bool) -> None:
        """Aligns a batch (evenly in the first sweep) and adds what it says about each symbol."""
        found = self._traced(tf.constant(first), (batch.floats, batch.labels), batch.layout)
        self._sums = found if self._sums is None else tuple(a + b for a, b in zip(self._sums, found, strict=True))

    def finish_sweep(self) -> None:
        """Turns the sums into new Gaussians."""
        if self._sums is None:
            raise ValueError("a sweep needs at least one batch")
        self.model.guide.estimate(*self._sums)
        self._sums = None

    def _statistics(
        self, first: tf.Tensor, rows: Sequence[tf.Tensor], layout: SpeechLayout
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        batch = layout.unpack(*rows)
        guide, step = self.model.guide, self.model.frames_per_step
        stacked, lengths = stack_frames(batch.mel, step), batch.mel_lengths // step
        frames, tokens = sizes(stacked)[1], sizes(batch.tokens)[1]
        mask = length_mask(lengths, frames)
        path = tf.cond(
            first,
            lambda: even_path(batch.text_lengths, lengths, tokens, frames),
            lambda: monotonic_search(guide(batch.tokens, stacked, mask), batch.text_lengths, lengths),
        )
        path *= batch.weights[:, None, None]
        found = guide.statistics(batch.tokens, stacked, mask, path)
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(part)) for part in found])
        return tuple(tf.where(finite, part, 0.0) for part in found)  # a poisoned batch says nothing
