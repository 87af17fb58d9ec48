"""A reference recording to a few tokens that hold the voice (Perceiver resampler).

Jaegle et al. 2021, "Perceiver: General Perception with Iterative Attention"; for voices: Casanova et al. 2024, "XTTS: a
Massively Multilingual Zero-Shot Text-to-Speech Model".

The queries begin with the average and the spread of the recording's spectrum, a plain description of every voice; what
they read in single frames comes on top. All that is read is brought to unit size first: latents that read themselves
as they are can grow without bound, and voices then come out alike.

In: stacked reference frames [B, R, n_mels * frames_per_step] and their lengths [B]; several references of one
    speaker are joined along R.
Out: voice tokens [B, K, width].
"""

import tensorflow as tf
from keras import layers

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Attention, ConvBlock, Dense, LayerNorm, length_mask


class SpeakerEncoder(layers.Layer):
    """Learned queries that read the reference; the number of tokens does not depend on its length."""

    def __init__(self, config: ModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.tokens, self.width = config.speaker_tokens, config.width
        self.enter = Dense(config.width)
        self.stats = Dense(config.width)
        self.convs = [ConvBlock(config.width, 5) for _ in range(config.speaker_blocks)]
        self.readers = [Attention(config.width, config.heads) for _ in range(config.speaker_blocks + 1)]
        self.mixers = [ConvBlock(config.width, 1) for _ in range(config.speaker_blocks + 1)]
        self.frame_norm = LayerNorm()
        self.norms = [LayerNorm() for _ in self.readers]
        self.norm = LayerNorm()

    def build(self, *_shapes, **_named_shapes):
        self.queries = self.add_weight(
            shape=(self.tokens, self.width), initializer="random_normal", name="queries", trainable=True
        )
        self.built = True

    def call(self, frames, lengths):
        mask = length_mask(lengths, tf.shape(frames)[1])
        stats = self.stats(_average_and_spread(frames, mask))
        frames = self.enter(frames)
        mask = tf.cast(mask, frames.dtype)
        for conv in self.convs:
            frames = conv(frames, mask)
        frames = self.frame_norm(frames) * mask
        latent = self.queries[None] + stats[:, None]
        everything = tf.ones_like(latent[..., :1])
        for read, norm, mix in zip(self.readers, self.norms, self.mixers, strict=True):
            # The queries read the frames and each other, as in the Perceiver.
            source = tf.concat([norm(latent), frames], axis=1)
            latent = mix(read(latent, source, tf.concat([everything, mask], axis=1)), everything)
        return self.norm(latent)


def _average_and_spread(frames: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Mean and standard deviation of frames [B, R, width] over time, padding left out: [B, 2 * width]."""
    frames = tf.cast(frames, mask.dtype)  # a sum over many frames would round badly in half precision
    count = tf.maximum(tf.reduce_sum(mask, 1), 1.0)
    mean = tf.reduce_sum(frames * mask, 1) / count
    variance = tf.reduce_sum(((frames - mean[:, None]) * mask) ** 2, 1) / count
    return tf.concat([mean, tf.sqrt(variance + 1e-5)], -1)
