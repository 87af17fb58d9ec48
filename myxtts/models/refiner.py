"""What a decoder leaves out: the residual of a mel, sampled by conditional flow matching.

Lipman et al. 2023, "Flow Matching for Generative Modeling"; in speech: Mehta et al. 2024, "Matcha-TTS: A Fast TTS
Architecture with Conditional Flow Matching".

In: the decoder's mel [B, M', n_mels * frames_per_step] and its states [B, M', width]; noise and timesteps.
Out: the velocity at which noise becomes the missing residual, of the mel's shape; in synthesis the residual itself.
"""

import math

import tensorflow as tf

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Block, ConvBlock, Dense, LayerNorm, gelu

RESIDUAL = 0.35  # about how far a decoder's mel is from the recorded one: brings what is sampled to unit size


class Refiner(Block):
    """A straight way from noise to the difference between the recorded mel and the decoder's.

    Both the mel and the states are read without changing them: the decoder learns as if this were not here.
    """

    def __init__(self, config: ModelConfig, n_mels: int, **kwargs):
        super().__init__(autocast=False, **kwargs)  # timesteps and what is sampled stay float32
        self.width = width = config.refiner_width
        self.enter = Dense(width)
        self.timestep = [Dense(width), Dense(width)]
        self.convs = [ConvBlock(width, 7) for _ in range(config.refiner_blocks)]
        self.norm = LayerNorm()
        self.out = Dense(n_mels * config.frames_per_step, kernel_initializer="zeros")

    def call(self, residual, timesteps, mel, states, mask):
        """The velocity at `timesteps` [B] in [0, 1], where `residual` is partly sampled."""
        known = tf.stop_gradient(tf.concat([tf.cast(mel, states.dtype), states], -1))
        rates = tf.exp(-math.log(1e3) * tf.range(0, self.width, 2, dtype=tf.float32) / self.width)
        angles = 100.0 * tf.cast(timesteps, tf.float32)[:, None] * rates
        embedded = tf.cast(tf.concat([tf.sin(angles), tf.cos(angles)], -1), states.dtype)[:, None]
        widen, narrow = self.timestep
        embedded = narrow(gelu(widen(embedded)))
        x = self.enter(tf.concat([tf.cast(residual, states.dtype), known], -1)) * mask
        for conv in self.convs:
            x = conv(x + embedded, mask)
        return tf.cast(self.out(self.norm(x)) * mask, tf.float32)

    def sample(self, noise, mel, states, mask, steps):
        """The residual that noise becomes in so many steps of equal length."""
        share = 1.0 / tf.cast(steps, tf.float32)

        def move(step, residual):
            timesteps = tf.fill([tf.shape(residual)[0]], (tf.cast(step, tf.float32)) * share)
            return step + 1, residual + share * self(residual, timesteps, mel, states, mask)

        _, residual = tf.while_loop(lambda step, _: step < steps, move, [0, noise * tf.cast(mask, tf.float32)])
        return RESIDUAL * residual
