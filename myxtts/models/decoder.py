"""Aligned text states to mel frames.

ConvNeXt blocks (Liu et al. 2022, "A ConvNet for the 2020s") with attention (Vaswani et al. 2017, "Attention Is All You
Need").

In: one state per decoder step [B, M', width], mask [B, M', 1], voice tokens [B, K, width].
Out: stacked mel frames [B, M', n_mels * frames_per_step], zero past each length.
"""

import tensorflow as tf

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Block, ConvBlock, Dense, LayerNorm, SentenceAttention, SpeakerConditioning, positions


class Decoder(Block):
    """Deterministic: convolutions for the sound, some attention for the sentence and the voice."""

    def __init__(self, config: ModelConfig, n_mels: int, **kwargs):
        super().__init__(**kwargs)
        self.width, self.every = config.width, config.decoder_attention_every
        self.conditioning = SpeakerConditioning(config.width)
        self.convs = [ConvBlock(config.width, 9) for _ in range(config.decoder_blocks)]
        self.attentions = [
            SentenceAttention(config.width, config.heads) for _ in range(config.decoder_blocks // self.every)
        ]
        self.norm = LayerNorm()
        self.out = Dense(n_mels * config.frames_per_step)

    def call(self, states, mask, voice):
        states = states + positions(tf.shape(states)[1], self.width, states.dtype)
        states = self.conditioning(states, voice) * mask
        for index, conv in enumerate(self.convs):
            states = conv(states, mask)
            if index % self.every == self.every // 2 and index // self.every < len(self.attentions):
                states = self.attentions[index // self.every](states, mask, voice)
        return self.out(self.norm(states)) * mask
