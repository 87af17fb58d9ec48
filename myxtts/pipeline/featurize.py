"""Waves to what a model is trained on: the work of the data device.

In: RawBatch.
Out: Batch (speech) or WaveBatch (vocoder), on the device where it was called; one trace per bucket shape.
"""

import tensorflow as tf

from myxtts.audio.mel import amplify, log_mel
from myxtts.audio.pitch import track_pitch
from myxtts.batch import AnyBatch, Batch, RawBatch, WaveBatch
from myxtts.config.config import XTTSConfig

MARGIN = 4  # frames of sound before and after a slice that its first and last windows reach into


class Featurizer:
    """A compiled RawBatch -> Batch with its own count of traces."""

    def __init__(self, config: XTTSConfig):
        self._audio, self._model, self._gain_db = config.audio, config.model, config.data.reference_gain_db
        self.seed = config.training.seed
        self.traces = 0
        self._compiled = tf.function(self._featurize, autograph=False, jit_compile=True)

    def __call__(self, raw: RawBatch, seed: tf.Tensor) -> AnyBatch:
        """Features of a batch; `seed` int32 [2] decides whatever is left to chance."""
        return self._compiled(raw, seed)

    def _featurize(self, raw: RawBatch, seed: tf.Tensor) -> AnyBatch:
        """Mel, pitch and reference mel, and noise where something is drawn."""
        self.traces += 1  # runs while tracing only
        step = self._model.frames_per_step
        waves = tf.cast(raw.waves, tf.float32) / 32768.0
        frames = waves.shape[1] // self._audio.hop_samples
        lengths = self._audio.mel_frames(raw.wave_lengths)
        lengths = tf.minimum((lengths + step - 1) // step * step, frames)
        mel = log_mel(waves, self._audio)[:, :frames]
        mel *= tf.sequence_mask(lengths, frames, tf.float32)[:, :, None]
        reference, reference_lengths = self._read_references(raw, seed)
        draws = frames if self._model.refiner_blocks else 0
        rows = waves.shape[0]
        return Batch(
            tokens=raw.tokens,
            text_lengths=raw.text_lengths,
            mel=mel,
            mel_lengths=lengths,
            pitch=track_pitch(waves, self._audio)[:, :frames] * tf.sequence_mask(lengths, frames, tf.float32),
            noise=tf.random.stateless_normal([rows, draws, self._audio.n_mels], seed + 3, alg="philox"),
            moments=tf.random.stateless_uniform([rows], seed + 4, alg="philox"),
            reference=reference,
            reference_lengths=reference_lengths,
            weights=raw.weights,
        )

    def _read_references(self, raw: RawBatch, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Mels of the references, each at a level of its own, which keeps the loudness out of the voice.

        Philox gives the same numbers on every device.
        """
        waves = tf.cast(raw.references, tf.float32) / 32768.0
        width = self._model.reference_frames
        lengths = tf.minimum(self._audio.mel_frames(raw.reference_lengths), width)
        gain = tf.random.stateless_uniform(
            [waves.shape[0], 1, 1], seed + 2, -self._gain_db, self._gain_db, alg="philox"
        )
        mel = amplify(log_mel(waves, self._audio)[:, :width], gain, self._audio)
        return mel * tf.sequence_mask(lengths, width, tf.float32)[:, :, None], lengths


class WaveFeaturizer(Featurizer):
    """A compiled RawBatch -> WaveBatch: a random slice of each clip, with its pitch, and noise to build on."""

    def __init__(self, config: XTTSConfig):
        super().__init__(config)
        self._frames = config.vocoder.slice_frames

    def _featurize(self, raw: RawBatch, seed: tf.Tensor) -> AnyBatch:
        self.traces += 1  # runs while tracing only
        hop, rows = self._audio.hop_samples, raw.waves.shape[0]
        samples = (self._frames - 1) * hop
        lengths = self._audio.mel_frames(raw.wave_lengths)
        room = tf.cast(tf.maximum(lengths - self._frames, 0) + 1, tf.float32)
        first = tf.cast(tf.random.stateless_uniform([rows], seed, alg="philox") * room, tf.int32)
        # Silence of a margin's length stands before every clip, and after it as much as a slice may need.
        margin = MARGIN * hop
        padded = tf.pad(raw.waves, [[0, 0], [margin, samples + margin]])
        index = first[:, None] * hop + tf.range(samples + 2 * margin)[None]
        waves = tf.cast(tf.gather(padded, index, batch_dims=1), tf.float32) / 32768.0
        within = slice(MARGIN, MARGIN + self._frames)
        return WaveBatch(
            mel=log_mel(waves, self._audio)[:, within],
            waves=waves[:, margin : margin + samples],
            pitch=track_pitch(waves, self._audio)[:, within],
            noise=tf.random.stateless_normal([rows, samples], seed + 1, alg="philox"),
            text_lengths=raw.text_lengths,
            mel_lengths=tf.minimum(lengths - first, self._frames),
            weights=raw.weights,
        )
