"""Tokens to one state per token.

ConvNeXt blocks (Liu et al. 2022, "A ConvNet for the 2020s") with attention to the text and to the voice.

In: tokens int32 [B, T], lengths [B], voice tokens [B, K, width].
Out: states [B, T, width], zero past each length, and their mask [B, T, 1].
"""

import tensorflow as tf
from keras import layers

from myxtts.config.config import ModelConfig
from myxtts.models.layers import (
    Block,
    ConvBlock,
    LayerNorm,
    SentenceAttention,
    SpeakerConditioning,
    length_mask,
    positions,
)


class TextEncoder(Block):
    """Convolutions for the neighbourhood, attention for the sentence and the voice."""

    def __init__(self, config: ModelConfig, symbols: int, **kwargs):
        super().__init__(**kwargs)
        self.width = config.width
        self.embed = layers.Embedding(symbols, config.width)
        self.conditioning = SpeakerConditioning(config.width)
        self.convs = [ConvBlock(config.width, 5) for _ in range(config.text_blocks)]
        self.attentions = [SentenceAttention(config.width, config.heads) for _ in range(config.text_blocks)]
        self.norm = LayerNorm()

    def call(self, tokens, lengths, voice):
        mask = length_mask(lengths, tf.shape(tokens)[1])
        states = self.embed(tokens)
        mask = tf.cast(mask, states.dtype)
        states = states * self.width**0.5 + positions(tf.shape(tokens)[1], self.width, states.dtype)
        states = self.conditioning(states, voice)
        for conv, attend in zip(self.convs, self.attentions, strict=True):
            states = attend(conv(states, mask), mask, voice)
        return self.norm(states) * mask, mask
