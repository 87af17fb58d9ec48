"""Discriminators of waves, trained to tell a vocoder's from recorded ones.

Several periods: HiFi-GAN (Kong et al. 2020, "HiFi-GAN: Generative Adversarial Networks for Efficient and High Fidelity
Speech Synthesis"); several resolutions: UnivNet (Jang et al. 2021, "UnivNet: A Neural Vocoder with Multi-Resolution
Spectrogram Discriminators for High-Fidelity Waveform Generation").

In: waves float32 [B, samples].
Out: for each discriminator its logits and feature maps, all [B, ...].
"""

import math
from typing import NamedTuple

import keras
import tensorflow as tf
from keras import layers

from myxtts.audio.mel import smooth_magnitudes
from myxtts.config.config import LONGEST_WINDOW, AudioConfig, VocoderConfig
from myxtts.models.layers import Block, named_weights
from myxtts.models.vocoder import Vocoder

PERIODS = (2, 3, 5, 7, 11)  # samples; as primes they share no view of the wave
WINDOWS = (LONGEST_WINDOW, 1024, 512)
PATCH = 8
SLOPE = 0.1  # of what is negative


class Discriminated(NamedTuple):
    """What one discriminator finds in a batch of waves."""

    logits: tf.Tensor  # [B, ...], high where it takes the wave for a recording
    feature_maps: list[tf.Tensor]


class PeriodDiscriminator(Block):
    """Looks at every `period`-th sample, so that what repeats with a voice lies side by side."""

    def __init__(self, period: int, width: int, **kwargs):
        super().__init__(**kwargs)
        self.period = period
        widths = (width, 2 * width, 4 * width, 8 * width)
        self.convs = [layers.Conv2D(w, (5, 1), strides=(3, 1), padding="same") for w in widths]
        self.out = layers.Conv2D(1, (3, 1), padding="same")

    def call(self, waves):
        length = waves.shape[1]
        waves = tf.pad(waves, [[0, 0], [0, -length % self.period]])
        states = tf.reshape(waves, [-1, math.ceil(length / self.period), self.period, 1])
        return _discriminate(states, self.convs, self.out)


class ResolutionDiscriminator(Block):
    """Looks at the magnitudes of one window size, first at `PATCH` neighbouring frequencies as one."""

    def __init__(self, window: int, width: int, **kwargs):
        super().__init__(**kwargs)
        self.window = window
        self.convs = [
            layers.Conv2D(2 * width, (3, 3), strides=stride, padding="same") for stride in ((1, 1), (1, 2), (2, 2))
        ]
        self.out = layers.Conv2D(1, (3, 3), padding="same")

    def call(self, waves):
        magnitudes = smooth_magnitudes(tf.signal.stft(waves, self.window, self.window // 4, self.window), 1e-9)
        loudness = magnitudes[..., :-1] ** 0.3  # as it is heard
        patches = tf.reshape(loudness, [-1, loudness.shape[1], self.window // 2 // PATCH, PATCH])
        return _discriminate(patches, self.convs, self.out)


def _discriminate(states: tf.Tensor, convs: list[layers.Layer], out: layers.Layer) -> Discriminated:
    feature_maps = []
    for conv in convs:
        states = tf.nn.leaky_relu(conv(states), SLOPE)
        feature_maps.append(states)
    return Discriminated(out(states), feature_maps)


class Discriminators(Block):
    """All of them."""

    def __init__(self, config: VocoderConfig, **kwargs):
        super().__init__(**kwargs)
        width = config.discriminator_width
        self.periods = [PeriodDiscriminator(period, width) for period in PERIODS]
        self.resolutions = [ResolutionDiscriminator(window, width) for window in WINDOWS]

    def call(self, waves):
        return [discriminator(waves) for discriminator in (*self.periods, *self.resolutions)]


class VocoderGAN(keras.Model):
    """A vocoder with its discriminators, which learn beside it and are not needed afterwards."""

    def __init__(self, config: VocoderConfig, audio: AudioConfig, card: bool = False, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.config, self.audio = config, audio
        self.vocoder = Vocoder(config, audio, card)
        self.discriminators = Discriminators(config)

    def create_variables(self) -> None:
        """Makes every weight on the current device by one tiny pass."""
        self.vocoder.create_variables()
        self.discriminators(tf.zeros([1, max(WINDOWS)]))
        self.built = True

    def named_weights(self) -> dict[str, tf.Variable]:
        """Every trainable weight by the way to it (`vocoder/blocks/0/depthwise/kernel`), in Keras' own order."""
        return named_weights(self, ("vocoder", "discriminators"))

    def buffers(self) -> dict[str, tf.Variable]:
        """Nothing besides the weights belongs to it."""
        return {}

    symbol_table = None  # it reads no symbols
