"""What travels through the pipeline, with shapes and dtypes."""

from typing import Any, NamedTuple

import tensorflow as tf


class RawBatch(NamedTuple):
    """Clips of one bucket as the host made them."""

    waves: tf.Tensor  # int16 [B, mel_frames * hop]
    wave_lengths: tf.Tensor  # int32 [B]
    tokens: tf.Tensor  # int32 [B, T], 0 is padding
    text_lengths: tf.Tensor  # int32 [B]
    references: tf.Tensor  # int16 [B, reference_frames * hop], slices of other clips of the speakers
    reference_lengths: tf.Tensor  # int32 [B], samples
    weights: tf.Tensor  # float32 [B], 0 for a clip that only fills up the batch


class Sizes(NamedTuple):
    """What of a whole batch each part of it has to know."""

    text_lengths: tf.Tensor  # int32 [B]
    mel_lengths: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B]


class Batch(NamedTuple):
    """What the training step takes, on the model device."""

    tokens: tf.Tensor  # int32 [B, T]
    text_lengths: tf.Tensor  # int32 [B]
    mel: tf.Tensor  # float32 [B, M, n_mels], zero past mel_lengths
    mel_lengths: tf.Tensor  # int32 [B], multiples of frames_per_step
    pitch: tf.Tensor  # float32 [B, M] in Hz, 0 where voiceless and past mel_lengths
    noise: tf.Tensor  # float32 [B, M, n_mels], normal; M is 0 for a model that draws nothing
    moments: tf.Tensor  # float32 [B] in [0, 1): how far the drawing has come that is trained
    reference: tf.Tensor  # float32 [B, R, n_mels], a slice of the speaker's speech
    reference_lengths: tf.Tensor  # int32 [B]
    weights: tf.Tensor  # float32 [B]

    @property
    def mel_shape(self) -> tuple[int, ...]:
        return tuple(self.mel.shape)


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
    silent = tf.zeros_like(mel[..., 0])
    nothing = mel[:, :0]
    return Batch(
        tokens, text_lengths, mel, mel_lengths, silent, nothing, weights * 0, reference, reference_lengths, weights
    )


class WaveBatch(NamedTuple):
    """What the vocoder's training step takes: slices of clips, F frames each."""

    mel: tf.Tensor  # float32 [B, F, n_mels]
    waves: tf.Tensor  # float32 [B, (F - 1) * hop], what the mel was made of
    pitch: tf.Tensor  # float32 [B, F] in Hz, 0 where voiceless
    noise: tf.Tensor  # float32 [B, (F - 1) * hop], normal
    text_lengths: tf.Tensor  # int32 [B]
    mel_lengths: tf.Tensor  # int32 [B], frames before the clip's end
    weights: tf.Tensor  # float32 [B]

    @property
    def mel_shape(self) -> tuple[int, ...]:
        return tuple(self.mel.shape)


class Halves(NamedTuple):
    """A batch on two devices that both train."""

    on_data: Any  # Batch or WaveBatch
    on_model: Any
    data_sizes: Sizes  # of the whole batch, on the data device
    model_sizes: Sizes

    @property
    def mel_shape(self) -> tuple[int, ...]:
        rows, frames, bands = self.on_model.mel.shape
        return 2 * rows, frames, bands


AnyBatch = Batch | WaveBatch


def sizes_of(batch: AnyBatch) -> Sizes:
    return Sizes(batch.text_lengths, batch.mel_lengths, batch.weights)


Fed = Any  # what a feed gives: a Batch or WaveBatch, or Halves of one where both devices train
