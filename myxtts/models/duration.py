"""How long each token lasts.

Ren et al. 2019, "FastSpeech: Fast, Robust and Controllable Text to Speech".

In: text states [B, T, width] and mask [B, T, 1].
Out: natural logarithm of the duration in decoder steps, [B, T].
"""

import tensorflow as tf

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Block, ConvBlock, Dense


class DurationPredictor(Block):
    """Reads the text states without changing them: its gradient stops there."""

    def __init__(self, config: ModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.convs = [ConvBlock(config.width, 3) for _ in range(config.duration_blocks)]
        self.out = Dense(1)

    def call(self, states, mask):
        states = tf.stop_gradient(states)
        for conv in self.convs:
            states = conv(states, mask)
        return self.out(states)[..., 0]
