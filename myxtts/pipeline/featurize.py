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
        """A batch whose references are slices of the speaker's other clips."""
        self.traces += 1  # runs while tracing only
        step = self._model.frames_per_step
        waves = tf.cast(raw.waves, tf.float32) / 32768.0
        frames = waves.shape[1] // self._audio.hop_samples
        lengths = self._audio.mel_frames(raw.wave_lengths)
        lengths = tf.minimum((lengths + step - 1) // step * step, frames)
        mel = log_mel(waves, self._audio)[:, :frames]
        mel *= tf.sequence_mask(lengths, frames, tf.float32)[:, :, None]
        reference, reference_lengths = self._slice_references(mel, lengths, raw, seed)
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

    def _slice_references(
        self, mel: tf.Tensor, lengths: tf.Tensor, raw: RawBatch, seed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """A random slice of a random clip of the same speaker in this batch, at most `reference_frames` long.

        Taking another clip where there is one keeps the words of the target out of the voice; a level of its own keeps
        the loudness out. Philox gives the same numbers on every device.
        """
        rows, width = mel.shape[0], min(self._model.reference_frames, mel.shape[1])
        chance = tf.random.stateless_uniform([rows, rows], seed, alg="philox")
        chance -= tf.eye(rows)  # itself only when the speaker has no other clip here
        chance -= 1.5 * (1.0 - raw.weights)[None, :]  # what fills up a batch is a copy, perhaps of itself
        chance = tf.where(raw.speakers[:, None] == raw.speakers[None, :], chance, -9.0)
        donor = tf.argmax(chance, axis=1, output_type=tf.int32)
        donor_lengths = tf.gather(lengths, donor)
        span = tf.minimum(donor_lengths, width)
        room = tf.cast(donor_lengths - span + 1, tf.float32)
        start = tf.cast(tf.random.stateless_uniform([rows], seed + 1, alg="philox") * room, tf.int32)
        index = tf.minimum(start[:, None] + tf.range(width)[None, :], mel.shape[1] - 1)
        slices = tf.gather(tf.gather(mel, donor), index, batch_dims=1)
        gain = tf.random.stateless_uniform([rows, 1, 1], seed + 2, -self._gain_db, self._gain_db, alg="philox")
        slices = amplify(slices, gain, self._audio)
        return slices * tf.sequence_mask(span, width, tf.float32)[:, :, None], span


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
