"""What travels through the pipeline, with shapes and dtypes.

A batch travels in few pieces, because every copy to or between devices makes one of them wait: two tensors from the
host to the data device, one from there to the model device, and one of whole numbers straight from the host to the
model device. A layout tells where in them everything lies. Whole numbers travel as int64: TensorFlow keeps int32 in
host memory even where everything else is on a card, and would copy it back and forth.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from myxtts.config.config import XTTSConfig

HEAD = 4  # columns of the labels before the tokens: text, mel and reference length, weight
SPANS = 5  # columns of the spans
SLICE_MARGIN = 4  # mel frames of sound before and after a vocoder's slice that its first and last windows reach into


class RawBatch(NamedTuple):
    """Clips of one bucket as the host made them."""

    audio: tf.Tensor  # int16 [B, samples]: a clip and its reference, or a vocoder's slice with its margins
    spans: tf.Tensor  # int64 [B, SPANS]: real frames of clip and reference, a seed of two numbers that is the same in
    # every row, and the row's own place in the whole batch
    labels: tf.Tensor  # int64 [B, HEAD + T + M]: lengths and weight, tokens, pitch as bytes
    heads: tf.Tensor  # int64 [W, HEAD], what the labels of the whole batch begin with, of all processes' rows


class Sizes(NamedTuple):
    """What of a whole batch each part of it has to know."""

    text_lengths: tf.Tensor  # int32 [B]
    mel_lengths: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B]


class Batch(NamedTuple):
    """What the speech model is trained on."""

    tokens: tf.Tensor  # int32 [B, T], 0 is padding
    text_lengths: tf.Tensor  # int32 [B]
    mel: tf.Tensor  # float32 [B, M, n_mels], zero past mel_lengths
    mel_lengths: tf.Tensor  # int32 [B], multiples of frames_per_step
    pitch: tf.Tensor  # int32 [B, M], bytes as `audio/pitch.py` makes them, 0 where voiceless and past mel_lengths
    noise: tf.Tensor  # float32 [B, M, n_mels], normal; M is 0 for a model that samples nothing
    timesteps: tf.Tensor  # float32 [B] in [0, 1): how far from noise towards the residual
    reference: tf.Tensor  # float32 [B, R, n_mels], a slice of the speaker's speech
    reference_lengths: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B], 0 for a clip that only fills up the batch


class WaveBatch(NamedTuple):
    """What the vocoder is trained on: slices of clips, F frames each."""

    mel: tf.Tensor  # float32 [B, F, n_mels]
    waves: tf.Tensor  # float32 [B, (F - 1) * hop], what the mel was made of
    pitch: tf.Tensor  # int32 [B, F], bytes as `audio/pitch.py` makes them, 0 where voiceless
    noise: tf.Tensor  # float32 [B, (F - 1) * hop], normal
    text_lengths: tf.Tensor  # int32 [B], zero: a vocoder reads no text
    mel_lengths: tf.Tensor  # int32 [B], frames before the clip's end
    weights: tf.Tensor  # float32 [B]


AnyBatch: TypeAlias = Batch | WaveBatch


def sizes_of(batch: AnyBatch) -> Sizes:
    return Sizes(batch.text_lengths, batch.mel_lengths, batch.weights)


def read_sizes(labels: tf.Tensor) -> Sizes:
    """The sizes that labels begin with."""
    head = tf.cast(labels[:, :HEAD], tf.int32)
    return Sizes(head[:, 0], head[:, 1], tf.cast(head[:, 3], tf.float32))


def _size(tensor: tf.Tensor, axis: int) -> Any:
    """A dimension as a number where it is known."""
    return tensor.shape[axis] if tensor.shape[axis] is not None else tf.shape(tensor)[axis]


def join_rows(*parts: tf.Tensor) -> tf.Tensor:
    """Tensors [B, ...] as one [B, N], in the order in which a layout unpacks them."""
    return tf.concat([tf.reshape(part, [part.shape[0], -1]) for part in parts], 1)


def _cut(rows: tf.Tensor, *shapes: tuple) -> list[tf.Tensor]:
    """Rows [B, N] in parts, one behind the other, each in a shape [B, ...] of which one size may be a tensor."""
    parts = tf.split(rows, [math.prod(shape) for shape in shapes], 1)
    known = [[-1 if tf.is_tensor(size) else size for size in shape] for shape in shapes]
    return [tf.reshape(part, [_size(rows, 0), *shape]) for part, shape in zip(parts, known, strict=True)]


class SpeechLayout(NamedTuple):
    """Where everything lies in a packed batch of the speech model: its floats are mel, reference, noise, timesteps."""

    n_mels: int
    reference_frames: int
    refines: bool  # whether noise comes along

    def frames(self, floats: tf.Tensor) -> Any:
        """Mel frames of the clips."""
        frames = (_size(floats, 1) - 1) // self.n_mels - self.reference_frames
        return frames // 2 if self.refines else frames

    def tokens(self, floats: tf.Tensor, labels: tf.Tensor) -> Any:
        return _size(labels, 1) - HEAD - self.frames(floats)

    def unpack(self, floats: tf.Tensor, labels: tf.Tensor) -> Batch:
        frames, bands = self.frames(floats), self.n_mels
        sampled = frames if self.refines else 0
        shapes = ((frames, bands), (self.reference_frames, bands), (sampled, bands), ())
        mel, reference, noise, timesteps = _cut(floats, *shapes)
        whole = tf.cast(labels, tf.int32)
        tokens, pitch = _cut(whole[:, HEAD:], (self.tokens(floats, labels),), (frames,))
        text_lengths, mel_lengths, weights = read_sizes(labels)
        return Batch(tokens, text_lengths, mel, mel_lengths, pitch, noise, timesteps, reference, whole[:, 2], weights)

    def pack(self, batch: Batch) -> "PackedBatch":
        """The way back, for batches that no pipeline made."""
        floats = join_rows(batch.mel, batch.reference, batch.noise, batch.timesteps)
        weights = tf.cast(batch.weights, tf.int32)
        head = tf.stack([batch.text_lengths, batch.mel_lengths, batch.reference_lengths, weights], 1)
        labels = tf.concat([head, batch.tokens, batch.pitch], 1)
        return PackedBatch(floats, tf.cast(labels, tf.int64), self)


class WaveLayout(NamedTuple):
    """Where everything lies in a packed batch of the vocoder: mel, waves and noise in its floats."""

    n_mels: int
    slice_frames: int
    hop_samples: int

    def frames(self, floats: tf.Tensor) -> int:
        return self.slice_frames

    def tokens(self, floats: tf.Tensor, labels: tf.Tensor) -> int:
        return 0

    @property
    def samples(self) -> int:
        return (self.slice_frames - 1) * self.hop_samples

    def unpack(self, floats: tf.Tensor, labels: tf.Tensor) -> WaveBatch:
        mel, waves, noise = _cut(floats, (self.slice_frames, self.n_mels), (self.samples,), (self.samples,))
        pitch = _cut(tf.cast(labels[:, HEAD:], tf.int32), (self.slice_frames,))[0]
        return WaveBatch(mel, waves, pitch, noise, *read_sizes(labels))

    def pack(self, batch: WaveBatch) -> "PackedBatch":
        """The way back, for batches that no pipeline made."""
        none, weights = tf.zeros_like(batch.text_lengths), tf.cast(batch.weights, tf.int32)
        head = tf.stack([batch.text_lengths, batch.mel_lengths, none, weights], 1)
        floats = join_rows(batch.mel, batch.waves, batch.noise)
        return PackedBatch(floats, tf.cast(tf.concat([head, batch.pitch], 1), tf.int64), self)


Layout: TypeAlias = SpeechLayout | WaveLayout


def layout_for(config: XTTSConfig) -> Layout:
    """The layout of what `training.target` names."""
    audio, model = config.audio, config.model
    if config.kind.speaks:
        return SpeechLayout(audio.n_mels, model.reference_frames, model.refiner_blocks > 0)
    return WaveLayout(audio.n_mels, config.vocoder.slice_frames, audio.hop_samples)


@dataclass(frozen=True)
class PackedBatch:
    """A batch on the model device, in two tensors."""

    floats: tf.Tensor  # float32 [B, N]
    labels: tf.Tensor  # int64 [B, HEAD + T + M]
    layout: Layout

    @property
    def shards(self) -> tuple["PackedBatch", ...]:
        """Itself, as the only part of the batch."""
        return (self,)

    @property
    def rows(self) -> int:
        return self.floats.shape[0]

    @property
    def tokens(self) -> int:
        """Tokens of its longest text, with padding."""
        return self.layout.tokens(self.floats, self.labels)

    @property
    def mel_shape(self) -> tuple[int, int, int]:
        return self.rows, self.layout.frames(self.floats), self.layout.n_mels

    def unpack(self) -> Any:
        """A Batch or a WaveBatch."""
        return self.layout.unpack(self.floats, self.labels)


@dataclass(frozen=True)
class ShardedBatch:
    """A batch on several devices that all train, an equal part on each; where others train elsewhere, our parts."""

    shards: tuple[PackedBatch, ...]
    heads: tuple[tf.Tensor, ...]  # int64 [W, HEAD], the first columns of the whole batch's labels, on each device

    @property
    def mel_shape(self) -> tuple[int, int, int]:
        """Of the whole batch, wherever its rows are."""
        _, frames, bands = self.shards[0].mel_shape
        return self.heads[0].shape[0], frames, bands


StepInput: TypeAlias = PackedBatch | ShardedBatch  # what a feed gives


def voiceless_batch(
    tokens: tf.Tensor,
    text_lengths: tf.Tensor,
    mel: tf.Tensor,
    mel_lengths: tf.Tensor,
    reference: tf.Tensor,
    reference_lengths: tf.Tensor,
    weights: tf.Tensor,
) -> Batch:
    """A batch of made-up mels, whose pitch is not known and of which nothing is drawn."""
    silent = tf.zeros_like(mel[..., 0], tf.int32)
    nothing = mel[:, :0]
    return Batch(
        tokens, text_lengths, mel, mel_lengths, silent, nothing, weights * 0, reference, reference_lengths, weights
    )


def pack_speech(batch: Batch) -> PackedBatch:
    """A made-up batch as the step takes it."""
    refines = batch.noise.shape[1] > 0
    return SpeechLayout(batch.mel.shape[-1], batch.reference.shape[1], refines).pack(batch)
