"""The one mel definition, for training, vocoder and synthesis alike, and the way back by Griffin-Lim.

In: waves float32 [B, samples], any device.
Out: natural-log mel magnitudes [B, frames, n_mels], normalised to about zero mean and unit deviation;
     a frame is centred on every `hop_samples`-th sample.
"""

import functools
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from myxtts.config.config import AudioConfig

# One mean and deviation for every voice keeps loudness comparable between speakers and saves a pass over the data.
LOG_MEAN, LOG_DEVIATION = -5.0, 2.3


def _hz_to_mel(hz: np.ndarray) -> np.ndarray:
    """Slaney's scale: linear to 1 kHz, logarithmic above."""
    return np.where(hz < 1000, hz * 3 / 200, 15 + np.log(np.maximum(hz, 1000) / 1000) * 27 / np.log(6.4))


def _mel_to_hz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


@functools.cache
def mel_matrix(audio: AudioConfig) -> np.ndarray:
    """Triangular bands of equal area, float32 [n_fft / 2 + 1, n_mels]."""
    bins = np.linspace(0, audio.sample_rate / 2, audio.n_fft // 2 + 1)
    low, high = _hz_to_mel(np.array([audio.fmin, audio.fmax]))
    edges = _mel_to_hz(np.linspace(low, high, audio.n_mels + 2))
    rising = (bins[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins[:, None]) / (edges[2:] - edges[1:-1])
    return (np.maximum(0, np.minimum(rising, falling)) * 2 / (edges[2:] - edges[:-2])).astype(np.float32)


def to_spectrum(waves: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """Complex spectrum [B, frames, n_fft / 2 + 1] of waves [B, samples]; zeros stand before and after a wave."""
    half = audio.n_fft // 2
    return tf.signal.stft(tf.pad(waves, [[0, 0], [half, half]]), audio.n_fft, audio.hop_samples, audio.n_fft)


def to_waves(spectrum: tf.Tensor, samples: int | tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """So many samples [B, samples] of a spectrum: the inverse of `to_spectrum`."""
    half, window = audio.n_fft // 2, tf.signal.inverse_stft_window_fn(audio.hop_samples)
    waves = tf.signal.inverse_stft(spectrum, audio.n_fft, audio.hop_samples, audio.n_fft, window)
    return waves[:, half:][:, :samples]


def smooth_magnitudes(spectrum: tf.Tensor, floor: float) -> tf.Tensor:
    """Magnitudes of a complex spectrum with a gradient at zero too; `floor` is added to the power."""
    return tf.sqrt(tf.math.real(spectrum) ** 2 + tf.math.imag(spectrum) ** 2 + floor)


def log_mel(waves: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """Normalised log-mel [B, frames, n_mels] of waves [B, samples]; zeros stand before and after a wave."""
    mel = tf.abs(to_spectrum(waves, audio)) @ tf.constant(mel_matrix(audio))
    return (tf.math.log(tf.maximum(mel, audio.floor)) - LOG_MEAN) / LOG_DEVIATION


def amplify(mel: tf.Tensor, decibels: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """The normalised log-mel of the same sound louder or softer; both arguments broadcast."""
    silence = (np.log(audio.floor) - LOG_MEAN) / LOG_DEVIATION
    return tf.maximum(mel + decibels * (np.log(10.0) / 20 / LOG_DEVIATION), silence)


def reference_mel(wave: np.ndarray, audio: AudioConfig, frames_per_step: int) -> np.ndarray:
    """Normalised log-mel [frames, n_mels] of one wave [samples], in whole decoder steps, on the host."""
    mel = log_mel(tf.constant(wave[None]), audio).numpy()[0]
    return mel[: len(mel) // frames_per_step * frames_per_step]


@functools.cache
def _inverse_matrix(audio: AudioConfig) -> np.ndarray:
    return np.linalg.pinv(mel_matrix(audio)).astype(np.float32)


def linear_magnitudes(mel: tf.Tensor, audio: AudioConfig, corrections: int) -> tf.Tensor:
    """Non-negative magnitudes [B, frames, n_fft / 2 + 1] whose bands come close to the given normalised log-mel."""
    target = tf.exp(mel * LOG_DEVIATION + LOG_MEAN)
    linear = tf.maximum(target @ tf.constant(_inverse_matrix(audio)), 1e-6)
    return correct_magnitudes(linear, mel, audio, corrections)


def correct_magnitudes(linear: tf.Tensor, mel: tf.Tensor, audio: AudioConfig, corrections: int) -> tf.Tensor:
    """Magnitudes [B, frames, n_fft / 2 + 1] brought closer to those whose bands are the given normalised log-mel.

    Each correction is a factor, so that they stay positive; what lies outside all bands stays as it is.
    """
    forward = tf.constant(mel_matrix(audio))
    outside = tf.constant((mel_matrix(audio).sum(1) < 1e-6).astype(np.float32))
    wanted = tf.matmul(tf.exp(mel * LOG_DEVIATION + LOG_MEAN), forward, transpose_b=True)
    for _ in range(corrections):
        found = tf.matmul(linear @ forward, forward, transpose_b=True)
        linear *= wanted / tf.maximum(found, 1e-8) * (1.0 - outside) + outside
    return linear


@dataclass(frozen=True)
class GriffinLim:
    """How Griffin-Lim is done: rounds, momentum, and corrections of the magnitudes towards the mel.

    Without the last two it is the algorithm as it was published, on the mel's pseudo-inverse.
    """

    iterations: int = 32
    momentum: float = 0.99
    corrections: int = 8


def griffin_lim(mel: tf.Tensor, audio: AudioConfig, how: GriffinLim) -> tf.Tensor:
    """Waves [B, samples] from normalised log-mel [B, frames, n_mels]."""
    magnitudes = linear_magnitudes(mel, audio, how.corrections)
    samples = (tf.shape(mel)[1] - 1) * audio.hop_samples
    phase = tf.random.stateless_uniform(tf.shape(magnitudes), [1, 2], -np.pi, np.pi)
    angles = tf.exp(tf.complex(0.0, 1.0) * tf.cast(phase, tf.complex64))
    waves = to_waves(tf.cast(magnitudes, tf.complex64) * angles, samples, audio)
    return griffin_lim_refine(waves, magnitudes, audio, how.iterations, how.momentum)


def griffin_lim_refine(
    waves: tf.Tensor, magnitudes: tf.Tensor, audio: AudioConfig, rounds: int, momentum: float
) -> tf.Tensor:
    """Waves [B, samples] whose spectra come nearer to the magnitudes in each round, by Griffin-Lim with momentum."""
    samples, shape = tf.shape(waves)[1], waves.shape

    def step(number, waves, spectrum, before):
        guess = spectrum + tf.cast(momentum, tf.complex64) * (spectrum - before)
        angles = guess / tf.cast(tf.maximum(tf.abs(guess), 1e-8), tf.complex64)
        waves = tf.ensure_shape(to_waves(tf.cast(magnitudes, tf.complex64) * angles, samples, audio), shape)
        return number + 1, waves, to_spectrum(waves, audio), spectrum

    spectrum = to_spectrum(waves, audio)
    return tf.while_loop(lambda number, *_: number < rounds, step, [0, waves, spectrum, spectrum])[1]  # traced once
