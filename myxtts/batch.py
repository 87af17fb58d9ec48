"""What travels through the pipeline, with shapes and dtypes."""

from typing import Any, NamedTuple

import tensorflow as tf


class RawBatch(NamedTuple):
    """Clips of one bucket as the host made them."""

    waves: tf.Tensor  # int16 [B, mel_frames * hop]
    wave_lengths: tf.Tensor  # int32 [B]
    tokens: tf.Tensor  # int32 [B, T], 0 is padding
    text_lengths: tf.Tensor  # int32 [B]
    speakers: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B], 0 for a clip that only fills up the batch


class Batch(NamedTuple):
    """What the training step takes, on the model device."""

    tokens: tf.Tensor  # int32 [B, T]
    text_lengths: tf.Tensor  # int32 [B]
    mel: tf.Tensor  # float32 [B, M, n_mels], zero past mel_lengths
    mel_lengths: tf.Tensor  # int32 [B], multiples of frames_per_step
    reference: tf.Tensor  # float32 [B, R, n_mels], a slice of the speaker's speech
    reference_lengths: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B]

    @property
    def mel_shape(self) -> tuple[int, ...]:
        return tuple(self.mel.shape)


class Sizes(NamedTuple):
    """What of a whole batch each half of it has to know."""

    text_lengths: tf.Tensor  # int32 [B]
    mel_lengths: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B]


class Halves(NamedTuple):
    """A batch on two devices that both train."""

    on_data: Batch
    on_model: Batch
    data_sizes: Sizes  # of the whole batch, on the data device
    model_sizes: Sizes

    @property
    def mel_shape(self) -> tuple[int, ...]:
        rows, frames, bands = self.on_model.mel.shape
        return 2 * rows, frames, bands


Fed = Any  # what a feed gives: a Batch, or Halves where both devices train
