"""The whole speech model: text and a reference recording to mel frames.

In the family of Matcha-TTS (Mehta et al. 2024) and P-Flow (Kim et al. 2023, "P-Flow: A Fast and Data-Efficient
Zero-Shot TTS through Speech Prompting"), with the voice tokens of XTTS (Casanova et al. 2024).

In: tokens, lengths and a reference slice; in training also the target mel.
Out: `XTTSOutput` in training, mel frames in synthesis.
"""

import math
from typing import NamedTuple

import keras
import tensorflow as tf

from myxtts.audio.pitch import BYTE_PITCHES
from myxtts.batch import Batch
from myxtts.config.config import ModelConfig
from myxtts.models.alignment import AlignmentGuide, monotonic_search
from myxtts.models.decoder import Decoder
from myxtts.models.duration import DurationPredictor
from myxtts.models.layers import Dense, layers_for, length_mask, named_weights, stack_frames, unstack_frames
from myxtts.models.pitch import PitchEmbedding, PitchPredictor, TokenPitch, average_pitch
from myxtts.models.refiner import RESIDUAL, Refiner
from myxtts.models.speaker import SpeakerEncoder
from myxtts.models.text_encoder import TextEncoder

PARTS = ("speaker", "text", "prior", "duration", "pitch", "pitch_embedding", "decoder", "refiner")  # what learns
LONGEST = math.log(128)  # decoder steps: what an untrained model says of a token is not believed
TEMPERATURE = 0.667  # of the noise that a residual is sampled from; less than 1 avoids what is rarely right


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
    log_f0: tf.Tensor  # [B, T], predicted
    voicing: tf.Tensor  # [B, T], predicted, before the sigmoid
    token_pitch: TokenPitch  # what was heard
    velocity: tf.Tensor | None  # [B, M', n_mels * frames_per_step], predicted; None without a refiner
    wanted_velocity: tf.Tensor | None


class XTTS(keras.Model):
    """Text encoder, speaker encoder, prior, alignment, durations and decoder.

    Weights, targets, alignment and all results are float32; `precision` is what the layers compute in. `card` chooses
    the form of their computations that a card is quick at.
    """

    def __init__(
        self,
        config: ModelConfig,
        symbols: int,
        n_mels: int = 80,
        precision: str = "float32",
        card: bool = False,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.config, self.frames_per_step, self.n_mels = config, config.frames_per_step, n_mels
        with layers_for(card, precision):
            self.speaker = SpeakerEncoder(config)
            self.text = TextEncoder(config, symbols)
            self.prior = Dense(n_mels * config.frames_per_step)
            self.duration = DurationPredictor(config)
            self.pitch = PitchPredictor(config)
            self.pitch_embedding = PitchEmbedding(config)
            self.decoder = Decoder(config, n_mels)
            self.refiner = Refiner(config, n_mels) if config.refiner_blocks else None
        self.guide = AlignmentGuide(symbols, n_mels, config.frames_per_step, dtype="float32")

    def create_variables(self) -> None:
        """Makes every weight on the current device by one tiny pass; without it the first call would decide where."""
        step = self.frames_per_step
        one = tf.ones([1], tf.int32)
        voice = self.voice(tf.zeros([1, step, self.n_mels]), one * step)
        self.speak(tf.zeros([1, 1], tf.int32), one, voice, tf.constant(1.0), tf.constant(0.0), tf.constant(1))
        self.prior(tf.zeros([1, 1, self.config.width]))
        self.guide(tf.zeros([1, 1], tf.int32), tf.zeros([1, 1, self.n_mels * step]), tf.ones([1, 1, 1]))
        self.built = True

    def named_weights(self) -> dict[str, tf.Variable]:
        """Every trainable weight by the way to it (`text/convs/0/depthwise/kernel`), in Keras' own order."""
        return named_weights(self, [part for part in PARTS if getattr(self, part) is not None])

    def buffers(self) -> dict[str, tf.Variable]:
        """What belongs to the model besides its weights."""
        return {"guide/means": self.guide.means, "guide/precisions": self.guide.precisions}

    @property
    def symbol_table(self) -> tf.Variable:
        """The weight with a row for each symbol."""
        return self.text.embed.embeddings

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
        prior = tf.cast(self.prior(states), tf.float32)  # [B, T, n_mels * step]
        scores = tf.matmul(prior, target, transpose_b=True) - 0.5 * tf.reduce_sum(prior**2, -1, keepdims=True)
        scores = (1.0 - guidance) * scores + guidance * self.guide(batch.tokens, target, mask)
        path = tf.stop_gradient(monotonic_search(scores, batch.text_lengths, lengths))  # no way back is built
        token_pitch = average_pitch(tf.gather(BYTE_PITCHES, batch.pitch), path, step)
        pitched = self.pitch_embedding(states, text_mask, token_pitch)
        frames = tf.matmul(tf.cast(path, pitched.dtype), pitched, transpose_a=True)  # [B, M', width]
        mel = tf.cast(self.decoder(frames, mask, voice), tf.float32)
        log_f0, voicing = self.pitch(states, text_mask)
        velocity = wanted_velocity = None
        if self.refiner is not None:
            noise, residual = stack_frames(batch.noise, step), (target - tf.stop_gradient(mel)) / RESIDUAL
            share = batch.timesteps[:, None, None]
            partly = (1.0 - share) * noise + share * residual
            velocity = self.refiner(partly, batch.timesteps, mel, frames, tf.cast(mask, frames.dtype))
            wanted_velocity = residual - noise
        return XTTSOutput(
            mel=mel,
            prior=tf.matmul(path, prior, transpose_a=True),
            target=target,
            mask=mask,
            log_durations=tf.cast(self.duration(states, text_mask), tf.float32),
            durations=tf.reduce_sum(path, axis=-1),
            text_mask=tf.cast(text_mask[..., 0], tf.float32),
            path=path,
            log_f0=log_f0,
            voicing=voicing,
            token_pitch=token_pitch,
            velocity=velocity,
            wanted_velocity=wanted_velocity,
        )

    def speak(
        self,
        tokens: tf.Tensor,
        text_lengths: tf.Tensor,
        voice: tf.Tensor,
        speed: tf.Tensor,
        octaves: tf.Tensor,
        steps: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Mel [B, M, n_mels] and its lengths [B] from tokens and voice tokens.

        Args:
            tokens: int32 [B, T].
            text_lengths: int32 [B].
            voice: [B, K, width].
            speed: how many times as fast as the model itself would speak.
            octaves: how much higher.
            steps: in which the refiner samples; 0 leaves the decoder's mel as it is.
        """
        states, text_mask = self.text(tokens, text_lengths, voice)
        lasting = tf.exp(tf.minimum(tf.cast(self.duration(states, text_mask), tf.float32), LONGEST)) / speed
        durations = tf.maximum(tf.round(lasting), 1.0) * tf.cast(text_mask[..., 0], tf.float32)
        ends = tf.cumsum(durations, axis=1)
        lengths = tf.cast(ends[:, -1], tf.int32)
        frame = tf.cast(tf.range(tf.reduce_max(lengths)), tf.float32)[None, None]
        path = tf.cast((frame < ends[..., None]) & (frame >= (ends - durations)[..., None]), states.dtype)
        mask = length_mask(lengths, tf.shape(path)[-1])
        log_f0, voicing = self.pitch(states, text_mask)
        pitched = self.pitch_embedding(states, text_mask, TokenPitch(log_f0 + octaves, tf.sigmoid(voicing)))
        frames = tf.matmul(path, pitched, transpose_a=True)
        mel = tf.cast(self.decoder(frames, mask, voice), tf.float32)
        refiner = self.refiner
        if refiner is not None:
            noise = TEMPERATURE * tf.random.stateless_normal(tf.shape(mel), [0, 0], alg="philox")
            mask = tf.cast(mask, frames.dtype)
            mel += tf.cond(
                steps > 0, lambda: refiner.sample(noise, mel, frames, mask, steps), lambda: tf.zeros_like(noise)
            )
        return unstack_frames(mel, self.frames_per_step), lengths * self.frames_per_step
