"""What a decoder leaves out: the fine grain of a mel, drawn by conditional flow matching.

In: the decoder's mel [B, M', n_mels * frames_per_step] and its states [B, M', width]; noise and moments.
Out: the velocity at which noise becomes the missing grain, of the mel's shape; in synthesis the grain itself.
"""

import math

import tensorflow as tf

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Block, ConvBlock, Dense, LayerNorm, gelu

GRAIN = 0.35  # about how far a decoder's mel is from the recorded one: brings what is drawn to unit size


class Refiner(Block):
    """A straight way from noise to the difference between the recorded mel and the decoder's.

    Both the mel and the states are read without changing them: the decoder learns as if this were not here.
    """

    def __init__(self, config: ModelConfig, n_mels: int, **kwargs):
        super().__init__(autocast=False, **kwargs)  # moments and what is drawn stay float32
        self.width = width = config.refiner_width
        self.enter = Dense(width)
        self.timestep = [Dense(width), Dense(width)]
        self.convs = [ConvBlock(width, 7) for _ in range(config.refiner_blocks)]
        self.norm = LayerNorm()
        self.out = Dense(n_mels * config.frames_per_step, kernel_initializer="zeros")

    def call(self, grain, moments, mel, states, mask):
        """The velocity at `moments` [B] in [0, 1], where `grain` is partly drawn."""
        known = tf.stop_gradient(tf.concat([tf.cast(mel, states.dtype), states], -1))
        rates = tf.exp(-math.log(1e3) * tf.range(0, self.width, 2, dtype=tf.float32) / self.width)
        angles = 100.0 * tf.cast(moments, tf.float32)[:, None] * rates
        moment = tf.cast(tf.concat([tf.sin(angles), tf.cos(angles)], -1), states.dtype)[:, None]
        widen, narrow = self.timestep
        moment = narrow(gelu(widen(moment)))
        x = self.enter(tf.concat([tf.cast(grain, states.dtype), known], -1)) * mask
        for conv in self.convs:
            x = conv(x + moment, mask)
        return tf.cast(self.out(self.norm(x)) * mask, tf.float32)

    def draw(self, noise, mel, states, mask, steps):
        """The grain that noise becomes in so many steps of equal length."""
        share = 1.0 / tf.cast(steps, tf.float32)

        def move(step, grain):
            moments = tf.fill([tf.shape(grain)[0]], (tf.cast(step, tf.float32)) * share)
            return step + 1, grain + share * self(grain, moments, mel, states, mask)

        _, grain = tf.while_loop(lambda step, _: step < steps, move, [0, noise * tf.cast(mask, tf.float32)])
        return GRAIN * grain
