"""How high each token is spoken.

Łańcucki 2021, "FastPitch: Parallel Text-to-Speech with Pitch Prediction".

In: text states [B, T, width] and mask [B, T, 1]; in training also the pitch that was heard.
Out: log F0 [B, T] in octaves above `MIDDLE`, voicing [B, T] in [0, 1], and the states that know both.
"""

import math
from typing import NamedTuple

import tensorflow as tf

from myxtts.config.config import ModelConfig
from myxtts.models.layers import Block, ConvBlock, Dense, LayerNorm, row_count

MIDDLE = 180.0  # Hz, between the usual voices of men and women


class TokenPitch(NamedTuple):
    """The pitch of tokens."""

    log_f0: tf.Tensor  # [B, T], octaves; 0 where voiceless
    voicing: tf.Tensor  # [B, T], the share of a token's frames that has a voice


def average_pitch(pitch: tf.Tensor, path: tf.Tensor, frames_per_step: int) -> TokenPitch:
    """The average pitch of tokens, from that of frames [B, M] and the path [B, T, M / frames_per_step] through them."""
    voiced = tf.cast(pitch > 0, tf.float32)
    octaves = voiced * tf.math.log(tf.maximum(pitch, 1.0) / MIDDLE) / math.log(2.0)
    sums = tf.reshape(tf.stack([octaves, voiced], -1), [row_count(path), -1, frames_per_step, 2])
    of_tokens = tf.matmul(path, tf.reduce_sum(sums, 2))  # [B, T, 2]
    frames = tf.reduce_sum(path, -1) * frames_per_step
    log_f0 = of_tokens[..., 0] / tf.maximum(of_tokens[..., 1], 1.0)
    return TokenPitch(log_f0, of_tokens[..., 1] / tf.maximum(frames, 1.0))


class PitchPredictor(Block):
    """Reads the text states without changing them: its gradient stops there."""

    def __init__(self, config: ModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.convs = [ConvBlock(config.width, 5) for _ in range(config.duration_blocks)]
        self.norm = LayerNorm()
        self.out = Dense(2)

    def call(self, states, mask):
        """Log F0 [B, T] and what the sigmoid makes voicing of [B, T]."""
        states = tf.stop_gradient(states)
        for conv in self.convs:
            states = conv(states, mask)
        log_f0, voicing = tf.unstack(tf.cast(self.out(self.norm(states)), tf.float32), axis=-1)
        return log_f0, voicing


class PitchEmbedding(Block):
    """States that know their pitch (Lancucki 2021, "FastPitch: Parallel Text-to-Speech with Pitch Prediction")."""

    def __init__(self, config: ModelConfig, **kwargs):
        super().__init__(**kwargs)
        self.out = Dense(config.width)

    def call(self, states, mask, token_pitch):
        heard = tf.stack([token_pitch.log_f0 * token_pitch.voicing, token_pitch.voicing], -1)
        return states + self.out(tf.cast(heard, states.dtype)) * mask
