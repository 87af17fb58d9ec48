"""What travels through the pipeline, with shapes and dtypes."""

from typing import NamedTuple

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
