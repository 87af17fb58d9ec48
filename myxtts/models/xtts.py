"""The whole speech model: text and a reference recording to mel frames.

In: tokens, lengths and a reference slice; in training also the target mel.
Out: `XTTSOutput` in training, mel frames in synthesis.
"""

from typing import NamedTuple

import keras
import tensorflow as tf
from keras import layers

from myxtts.batch import Batch
from myxtts.config.config import ModelConfig
from myxtts.models.alignment import AlignmentGuide, monotonic_search
from myxtts.models.decoder import Decoder
from myxtts.models.duration import DurationPredictor
from myxtts.models.layers import length_mask, stack_frames, unstack_frames
from myxtts.models.speaker import SpeakerEncoder
from myxtts.models.text_encoder import TextEncoder


class XTTSOutput(NamedTuple):
    """What the losses need; M' counts decoder steps of `frames_per_step` mel frames."""

    mel: tf.Tensor  # [B, M', n_mels * frames_per_step], from the decoder
    prior: tf.Tensor  # [B, M', n_mels * frames_per_step], from the token alone
    target: tf.Tensor  # [B, M', n_mels * frames_per_step]
    mask: tf.Tensor  # [B, M', 1]
    log_durations: tf.Tensor  # [B, T], predicted
    durations: tf.Tensor  # [B, T], found by the search
    text_mask: tf.Tensor  # [B, T]
    path: tf.Tensor  # [B, T, M']


class XTTS(keras.Model):
    """Text encoder, speaker encoder, prior, alignment, durations and decoder."""

    def __init__(self, config: ModelConfig, symbols: int, n_mels: int = 80, **kwargs):
        super().__init__(**kwargs)
        self.config, self.frames_per_step, self.n_mels = config, config.frames_per_step, n_mels
        self.speaker = SpeakerEncoder(config)
        self.text = TextEncoder(config, symbols)
        self.prior = layers.Dense(n_mels * config.frames_per_step)
        self.guide = AlignmentGuide(symbols, n_mels, config.frames_per_step)
        self.duration = DurationPredictor(config)
        self.decoder = Decoder(config, n_mels)

    def create_variables(self) -> None:
        """Makes every weight on the current device by one tiny pass; without it the first call would decide where."""
        step = self.frames_per_step
        one = tf.ones([1], tf.int32)
        voice = self.voice(tf.zeros([1, step, self.n_mels]), one * step)
        self.speak(tf.zeros([1, 1], tf.int32), one, voice, tf.constant(1.0))
        self.prior(tf.zeros([1, 1, self.config.width]))
        self.guide(tf.zeros([1, 1], tf.int32), tf.zeros([1, 1, self.n_mels * step]), tf.ones([1, 1, 1]))
        self.built = True

    def voice(self, reference: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Voice tokens [B, K, width] of reference mel [B, R, n_mels]."""
        step = self.frames_per_step
        return self.speaker(stack_frames(reference, step), lengths // step)

    def call(self, batch: Batch, guidance: tf.Tensor) -> XTTSOutput:
        """The training pass. `guidance` in [0, 1] is how much the guide decides the alignment."""
        step = self.frames_per_step
        target, lengths = stack_frames(batch.mel, step), batch.mel_lengths // step
        mask = length_mask(lengths, tf.shape(target)[1])
        voice = self.voice(batch.reference, batch.reference_lengths)
        states, text_mask = self.text(batch.tokens, batch.text_lengths, voice)
        prior = self.prior(states)  # [B, T, n_mels * step]
        scores = tf.matmul(prior, target, transpose_b=True) - 0.5 * tf.reduce_sum(prior**2, -1, keepdims=True)
        scores = (1.0 - guidance) * scores + guidance * self.guide(batch.tokens, target, mask)
        path = monotonic_search(scores, batch.text_lengths, lengths)
        frames = tf.matmul(path, states, transpose_a=True)  # [B, M', width]
        return XTTSOutput(
            mel=self.decoder(frames, mask, voice),
            prior=tf.matmul(path, prior, transpose_a=True),
            target=target,
            mask=mask,
            log_durations=self.duration(states, text_mask),
            durations=tf.reduce_sum(path, axis=-1),
            text_mask=text_mask[..., 0],
            path=path,
        )

    def speak(
        self, tokens: tf.Tensor, text_lengths: tf.Tensor, voice: tf.Tensor, speed: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Mel [B, M, n_mels] and its lengths [B] from tokens and voice tokens."""
        states, text_mask = self.text(tokens, text_lengths, voice)
        steps = tf.exp(self.duration(states, text_mask)) / speed
        durations = tf.maximum(tf.round(steps), 1.0) * text_mask[..., 0]
        ends = tf.cumsum(durations, axis=1)
        lengths = tf.cast(ends[:, -1], tf.int32)
        frame = tf.cast(tf.range(tf.reduce_max(lengths)), tf.float32)[None, None]
        path = tf.cast((frame < ends[..., None]) & (frame >= (ends - durations)[..., None]), tf.float32)
        mask = length_mask(lengths, tf.shape(path)[-1])
        stacked = self.decoder(tf.matmul(path, states, transpose_a=True), mask, voice)
        return unstack_frames(stacked, self.frames_per_step), lengths * self.frames_per_step
