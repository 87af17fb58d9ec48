"""Mel frames to a waveform: ConvNeXt blocks at frame rate that shape two sources in the spectrum.

Siuzdak 2024, "Vocos: Closing the gap between time-domain and Fourier-based neural vocoders for high-quality audio
synthesis"; two sources: Wang et al. 2019, "Neural source-filter-based waveform model for statistical parametric speech
synthesis".

In: normalised log-mel [B, frames, n_mels].
Out: waves float32 [B, (frames - 1) * hop_samples], and how likely each pitch was, [B, frames, STATES].
"""

import functools
import math

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from myxtts.audio.mel import (
    LOG_DEVIATION,
    LOG_MEAN,
    correct_magnitudes,
    griffin_lim_refine,
    linear_magnitudes,
    mel_matrix,
    smooth_magnitudes,
    to_spectrum,
    to_waves,
)
from myxtts.audio.pitch import HIGHEST, LOWEST, OCTAVES, STATES
from myxtts.config.config import AudioConfig, VocoderConfig
from myxtts.models.layers import Block, ConvBlock, Dense, LayerNorm, layers_for, weights_under

LOUDEST = 6.0  # most that a filter may amplify, natural logarithm
CORRECTIONS, MOST = 3, 8.0  # of the spectrum towards the mel, and the largest factor of all of them
ROUNDS, MOMENTUM = 6, 0.9  # of polishing
NEIGHBOURS = 3  # of the likeliest pitch that have a say
BREATH = 2.0  # how much softer than the pulses the noise is at first


class PitchReader(Block):
    """How likely each pitch of `OCTAVES` is, from the mel and from how well its spectrum fits each one's harmonics.

    Scores instead of one number, because where two pitches an octave apart are likely their mean is not.
    """

    def __init__(self, config: VocoderConfig, audio: AudioConfig, **kwargs):
        super().__init__(**kwargs)
        self.audio = audio
        self.enter = layers.Conv1D(config.pitch_width, 3, padding="same")
        self.blocks = [ConvBlock(config.pitch_width, 7) for _ in range(config.pitch_blocks)]
        self.norm = LayerNorm()
        self.out = Dense(STATES)

    def call(self, mel):
        """Scores [B, frames, STATES], before the softmax."""
        magnitudes = linear_magnitudes(mel, self.audio, corrections=2) ** 0.5
        combs = [magnitudes[..., : len(comb)] @ tf.constant(comb) for comb in _combs(self.audio)]
        loudness = tf.reduce_sum(magnitudes, -1, keepdims=True)
        states = self.enter(tf.concat([mel, *(8.0 * comb / loudness for comb in combs)], -1))
        everywhere = tf.ones_like(states[..., :1])
        for block in self.blocks:
            states = block(states, everywhere)
        return self.out(self.norm(states))


@functools.cache
def _combs(audio: AudioConfig) -> list[np.ndarray]:
    """For each pitch a cosine over the frequencies that peaks at its harmonics: [bins up to 1 or 3 kHz, STATES]."""
    hertz = np.arange(audio.n_fft // 2 + 1) * audio.sample_rate / audio.n_fft
    cosines = np.cos(2 * np.pi * hertz[:, None] / 2.0**OCTAVES).astype(np.float32)
    return [cosines[hertz < highest] for highest in (1000, 3000)]


def decide_pitch(scores: tf.Tensor) -> tf.Tensor:
    """Pitch in Hz [B, frames] of scores [B, frames, STATES]: the mean of the likeliest and its neighbours."""
    best = tf.argmax(scores, -1, output_type=tf.int32)
    near = tf.abs(tf.range(STATES) - best[..., None]) <= NEIGHBOURS
    shares = tf.nn.softmax(tf.where(near, scores, -1e9))
    return 2.0 ** tf.linalg.matvec(shares, tf.constant(OCTAVES))


class Vocoder(keras.Model):
    """An inverse STFT whose phases need not be invented.

    A network at frame rate cannot keep count of a voice's periods, so the phases that one such network draws from the
    mel alone never quite fit from frame to frame. Here the pitch is read from the mel, a pulse train of that pitch is
    made at sample rate, and the network only filters it: one complex filter for the pulses and one for noise per frame.
    Both start as the mel's own envelope, and their sum is corrected until its mel is the given one, so that only what
    the mel does not say is left to be learned.
    """

    def __init__(self, config: VocoderConfig, audio: AudioConfig, card: bool = False, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.config, self.audio = config, audio
        self.bins = audio.n_fft // 2 + 1
        with layers_for(card):
            self.pitch = PitchReader(config, audio)
            self.enter = layers.Conv1D(config.width, 7, padding="same")
            self.blocks = [ConvBlock(config.width, 7) for _ in range(config.blocks)]
            self.norm = LayerNorm()
            self.filters = Dense(3 * self.bins)

    def create_variables(self) -> None:
        """Makes every weight on the current device by one tiny pass through the layers alone."""
        mel = tf.zeros([1, 2, self.audio.n_mels])
        self.pitch(mel)
        self._shape(mel, tf.zeros([1, 2]) + LOWEST)
        self.built = True

    def named_weights(self) -> dict[str, tf.Variable]:
        """Every trainable weight by the way to it, as the model that it is trained in calls it."""
        return weights_under("vocoder", self)

    def call(self, mel: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Waves and the scores of `PitchReader`; `noise` [B, (frames - 1) * hop_samples] is normal."""
        audio = self.audio
        scores = self.pitch(mel)
        pitch = tf.stop_gradient(decide_pitch(scores))
        voiced, turn, voiceless = self._shape(mel, pitch)
        envelope = log_envelope(mel, audio)
        voiced = tf.exp(tf.minimum(envelope + voiced, LOUDEST))
        voiceless = tf.exp(tf.minimum(envelope + voiceless - BREATH, LOUDEST))
        spectrum = tf.complex(voiced * tf.cos(turn), voiced * tf.sin(turn)) * to_spectrum(pulses(pitch, audio), audio)
        spectrum += _real(voiceless) * to_spectrum(noise, audio)
        spectrum *= _real(self._correction(spectrum, mel))
        return to_waves(spectrum, noise.shape[1] or tf.shape(noise)[1], audio), scores

    def _shape(self, mel: tf.Tensor, pitch: tf.Tensor) -> list[tf.Tensor]:
        """What the network says of both filters: two log magnitudes with the pulses' angle between them."""
        height = tf.math.log(pitch / LOWEST)[..., None] / math.log(HIGHEST / LOWEST)
        states = self.enter(tf.concat([mel, 4.0 * height - 2.0], axis=-1))
        everywhere = tf.ones_like(states[..., :1])
        for block in self.blocks:
            states = block(states, everywhere)
        return tf.split(self.filters(self.norm(states)), 3, axis=-1)

    def speak(self, mel: tf.Tensor, noise: tf.Tensor, rounds: int = ROUNDS) -> tf.Tensor:
        """Waves, polished: a few rounds of Griffin-Lim, from phases that are almost right, make all frames agree."""
        waves, _ = self(mel, noise)
        spectrum = to_spectrum(waves, self.audio)
        magnitudes = tf.abs(spectrum) * self._correction(spectrum, mel)
        return griffin_lim_refine(waves, magnitudes, self.audio, rounds, MOMENTUM)

    def _correction(self, spectrum: tf.Tensor, mel: tf.Tensor) -> tf.Tensor:
        """Factors [B, frames, bins] that give a spectrum the mel it should have."""
        magnitudes = smooth_magnitudes(spectrum, 1e-12)
        factors = correct_magnitudes(magnitudes, mel, self.audio, CORRECTIONS) / magnitudes
        return tf.clip_by_value(factors, 1 / MOST, MOST)


def _real(values: tf.Tensor) -> tf.Tensor:
    return tf.complex(values, tf.zeros_like(values))


def log_envelope(mel: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """Log magnitudes [B, frames, n_fft / 2 + 1] of a filter that gives a source of unit power this mel, roughly."""
    spread, offset = _interpolation(audio)
    return (mel * LOG_DEVIATION + LOG_MEAN) @ tf.constant(spread) + offset


@functools.cache
def _interpolation(audio: AudioConfig) -> tuple[np.ndarray, float]:
    """Weights [n_mels, n_fft / 2 + 1] that read each bin between its two nearest bands, and what lies between units."""
    bands = mel_matrix(audio)
    bins = np.arange(len(bands))
    centres = (bands * bins[:, None]).sum(0) / bands.sum(0)
    spread = np.stack([np.interp(bins, centres, row) for row in np.eye(audio.n_mels)])
    window = np.hanning(audio.n_fft + 1)[:-1]
    return spread.astype(np.float32), -float(np.log(bands.sum(0).mean()) + 0.5 * np.log((window**2).sum()))


def pulses(pitch: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """A train of band-limited pulses of unit power: waves [B, (frames - 1) * hop] of pitch [B, frames] in Hz.

    The pitch goes in a straight line from frame to frame, so the phase inside a frame has a closed form; whole turns
    are dropped at every frame, so that the error of float32 stays far below a sample for minutes.
    """
    hop, rate = audio.hop_samples, float(audio.sample_rate)
    first, last = pitch[:, :-1], pitch[:, 1:]
    turns = tf.cumsum((first + last) * (hop / 2 / rate) % 1.0, axis=1, exclusive=True) % 1.0
    place = tf.range(hop, dtype=tf.float32)
    within = first[..., None] * place + (last - first)[..., None] * (place**2 / (2 * hop))
    phase = (turns[..., None] + within / rate) % 1.0  # in turns, [B, frames - 1, hop]
    height = first[..., None] + (last - first)[..., None] * (place / hop)
    harmonics = tf.floor(rate / 2 / height)
    # The sum of so many cosines in closed form (Dirichlet's kernel); at a whole turn it is the number of them.
    angle = math.pi * phase
    below = tf.sin(angle)
    kernel = tf.sin((2 * harmonics + 1) * angle) / (2 * tf.where(tf.abs(below) < 1e-4, 1.0, below)) - 0.5
    kernel = tf.where(tf.abs(below) < 1e-4, harmonics, kernel)
    train = kernel * tf.sqrt(2.0 / harmonics)
    return tf.reshape(train, [tf.shape(pitch)[0], (pitch.shape[1] or tf.shape(pitch)[1]) * hop - hop])
