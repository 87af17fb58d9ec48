"""Waves to what a model is trained on: the work of the data device.

In: audio int16 [B, samples] and spans int64 [B, 4] of a RawBatch.
Out: float32 [B, N], packed as a layout says, on the device where it was called; one trace per bucket shape.
"""

import tensorflow as tf

from myxtts.audio.mel import amplify, log_mel
from myxtts.batch import SLICE_MARGIN, join_rows, layout_for
from myxtts.config.config import XTTSConfig


class Featurizer:
    """The compiled features of one target, with a count of their traces."""

    def __init__(self, config: XTTSConfig):
        self.layout = layout_for(config)
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
        seed = spans[0, 2:]
        rows, hop, width = waves.shape[0], self._audio.hop_samples, self._model.reference_frames
        frames = waves.shape[1] // hop - width
        mel = log_mel(waves[:, : frames * hop], self._audio)[:, :frames]
        mel *= tf.sequence_mask(spans[:, 0], frames, tf.float32)[:, :, None]
        drawn = frames if self._model.refiner_blocks else 0
        return join_rows(
            mel,
            self._read_references(waves[:, frames * hop :], spans[:, 1], seed),
            tf.random.stateless_normal([rows, drawn, self._audio.n_mels], seed + 3, alg="philox"),
            tf.random.stateless_uniform([rows], seed + 4, alg="philox"),
        )

    def _read_references(self, waves: tf.Tensor, lengths: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Mels of the references, each at a level of its own, which keeps the loudness out of the voice.

        Philox gives the same numbers on every device.
        """
        width = self._model.reference_frames
        gain = tf.random.stateless_uniform(
            [waves.shape[0], 1, 1], seed + 2, -self._gain_db, self._gain_db, alg="philox"
        )
        mel = amplify(log_mel(waves, self._audio)[:, :width], gain, self._audio)
        return mel * tf.sequence_mask(lengths, width, tf.float32)[:, :, None]


class WaveFeaturizer(Featurizer):
    """The compiled features of slices that the host has cut: mel, waves, and noise to build on."""

    def __init__(self, config: XTTSConfig):
        super().__init__(config)
        self._frames = config.vocoder.slice_frames

    def _featurize(self, audio: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
        self.traces += 1  # runs while tracing only
        waves = tf.cast(audio, tf.float32) / 32768.0
        margin = SLICE_MARGIN * self._audio.hop_samples
        inside = waves[:, margin:-margin]
        return join_rows(
            log_mel(waves, self._audio)[:, SLICE_MARGIN : SLICE_MARGIN + self._frames],
            inside,
            tf.random.stateless_normal(inside.shape, tf.cast(spans[0, 2:], tf.int32) + 1, alg="philox"),
        )
