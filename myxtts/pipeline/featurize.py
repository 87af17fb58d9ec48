"""Waves to what a model is trained on: the work of the data device.

In: audio int16 [B, samples] and spans int64 [B, SPANS] of a RawBatch, or some of their rows.
Out: float32 [B, N], packed as a layout says, on the device where it was called; one trace per bucket shape.
     The same rows whether they are prepared together or in several parts, on one device or on several.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import tensorflow as tf

from myxtts.audio.mel import amplify, log_mel
from myxtts.batch import SLICE_MARGIN, join_rows, layout_for
from myxtts.config.config import XTTSConfig

Rows: TypeAlias = tuple[tf.Tensor, int]  # the first of them in the whole batch, and how many


class Featurizer:
    """The compiled features of one target, with a count of their traces."""

    def __init__(self, config: XTTSConfig):
        self.layout, self._all_rows = layout_for(config), config.step_clips
        self._audio, self._model, self._gain_db = config.audio, config.model, config.data.reference_gain_db
        self.traces = 0
        self._compiled = tf.function(self._featurize, autograph=False, jit_compile=True)

    def __call__(self, audio: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
        """The floats of a batch; the seed in the spans decides whatever is left to chance."""
        return self._compiled(audio, spans)

    def _featurize(self, audio: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
        """Mel and reference mel, and noise where something is drawn."""
        self.traces += 1  # runs while tracing only
        waves, spans = tf.cast(audio, tf.float32) / 32768.0, tf.cast(spans, tf.int32)
        rows, seed = (spans[0, 4], waves.shape[0]), spans[0, 2:4]
        hop, width = self._audio.hop_samples, self._model.reference_frames
        frames = waves.shape[1] // hop - width
        mel = log_mel(waves[:, : frames * hop], self._audio)[:, :frames]
        mel *= tf.sequence_mask(spans[:, 0], frames, tf.float32)[:, :, None]
        drawn = frames if self._model.refiner_blocks else 0
        return join_rows(
            mel,
            self._read_references(waves[:, frames * hop :], spans[:, 1], seed, rows),
            self._draw(tf.random.stateless_normal, [drawn, self._audio.n_mels], seed + 3, rows),
            self._draw(tf.random.stateless_uniform, [], seed + 4, rows),
        )

    def _draw(self, draw: Callable[..., tf.Tensor], shape: list[int], seed: tf.Tensor, rows: Rows) -> tf.Tensor:
        """Numbers for some rows: those that they have in the whole batch. Philox gives the same on every device."""
        first, count = rows
        whole = draw([self._all_rows, *shape], seed, alg="philox")
        if count == self._all_rows:
            return whole
        return tf.gather(whole, first + tf.range(count))  # XLA would compile a slice anew for each place to begin at

    def _read_references(self, waves: tf.Tensor, lengths: tf.Tensor, seed: tf.Tensor, rows: Rows) -> tf.Tensor:
        """Mels of the references, each at a level of its own, which keeps the loudness out of the voice."""
        width = self._model.reference_frames
        uniform = partial(tf.random.stateless_uniform, minval=-self._gain_db, maxval=self._gain_db)
        gain = self._draw(uniform, [1, 1], seed + 2, rows)
        mel = amplify(log_mel(waves, self._audio)[:, :width], gain, self._audio)
        return mel * tf.sequence_mask(lengths, width, tf.float32)[:, :, None]


class WaveFeaturizer(Featurizer):
    """The compiled features of slices that the host has cut: mel, waves, and noise to build on."""

    def __init__(self, config: XTTSConfig):
        super().__init__(config)
        self._frames = config.vocoder.slice_frames

    def _featurize(self, audio: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
        self.traces += 1  # runs while tracing only
        waves, spans = tf.cast(audio, tf.float32) / 32768.0, tf.cast(spans, tf.int32)
        margin = SLICE_MARGIN * self._audio.hop_samples
        inside = waves[:, margin:-margin]
        return join_rows(
            log_mel(waves, self._audio)[:, SLICE_MARGIN : SLICE_MARGIN + self._frames],
            inside,
            self._draw(tf.random.stateless_normal, inside.shape[1:], spans[0, 2:4] + 1, (spans[0, 4], inside.shape[0])),
        )
