"""A reference recording to a few tokens that hold the voice (Perceiver resampler).

In: stacked reference frames [B, R, n_mels * frames_per_step] and their lengths [B]; several references of one
    speaker are joined along R.
Out: voice tokens [B, K, width].
"""

import tensorflow as tf
from keras import layers

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Attention, ConvBlock, length_mask


class SpeakerEncoder(layers.Layer):
    """Learned queries that read the reference; the number of tokens does not depend on its length."""

    def __init__(self, config: ModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.tokens, self.width = config.speaker_tokens, config.width
        self.enter = layers.Dense(config.width)
        self.convs = [ConvBlock(config.width, 5) for _ in range(config.speaker_blocks)]
        self.readers = [Attention(config.width, config.heads) for _ in range(config.speaker_blocks + 1)]
        self.mixers = [ConvBlock(config.width, 1) for _ in range(config.speaker_blocks + 1)]
        self.frame_norm = layers.LayerNormalization(epsilon=1e-5)
        self.norm = layers.LayerNormalization(epsilon=1e-5)

    def build(self, *_shapes, **_named_shapes):
        self.queries = self.add_weight(
            shape=(self.tokens, self.width), initializer="random_normal", name="queries", trainable=True
        )
        self.built = True

    def call(self, frames, lengths):
        mask = length_mask(lengths, tf.shape(frames)[1])
        frames = self.enter(frames)
        mask = tf.cast(mask, frames.dtype)
        for conv in self.convs:
            frames = conv(frames, mask)
        frames = self.frame_norm(frames) * mask
        latent = tf.tile(self.queries[None], [tf.shape(frames)[0], 1, 1])
        everything = tf.ones_like(latent[..., :1])
        for read, mix in zip(self.readers, self.mixers, strict=True):
            # The queries read the frames and each other, as in the Perceiver.
            source = tf.concat([latent, frames], axis=1)
            latent = mix(read(latent, source, tf.concat([everything, mask], axis=1)), everything)
        return self.norm(latent)
