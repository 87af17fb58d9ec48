"""What the vocoder's training minimises, each part by its name.

In: a WaveBatch and what the vocoder and its discriminators made of it.
Out: {"name": scalar}, means over the clips with weight; the losses of a batch's parts add up to those of the whole.
"""

import math
from collections.abc import Sequence

import tensorflow as tf

from myxtts.audio.mel import log_mel, smooth_magnitudes
from myxtts.audio.pitch import BYTE_PITCHES, OCTAVES, STEP
from myxtts.batch import WaveBatch
from myxtts.config.config import LONGEST_WINDOW, AudioConfig
from myxtts.models.discriminators import Discriminated

WINDOWS = (LONGEST_WINDOW, 1024, 512, 256, 128)  # long ones tell pitch, short ones tell when
QUIETEST = 1e-4  # magnitude below which differences are not heard


def edge_frames(audio: AudioConfig) -> int:
    """Frames at each end of a slice whose windows reach beyond it: there the recording goes on and the copy cannot."""
    return audio.n_fft // audio.hop_samples // 2


def inner(waves: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """Waves [B, samples] without the edges of their slice."""
    cut = edge_frames(audio) * audio.hop_samples
    return waves[:, cut:-cut]


def reconstruction_losses(
    batch: WaveBatch, waves: tf.Tensor, scores: tf.Tensor, share: tf.Tensor, audio: AudioConfig
) -> dict[str, tf.Tensor]:
    """How far waves [B, samples] are from the recorded ones, and the likely pitches from the one that was heard.

    `scores` are those of `PitchReader`; `share` [B] is each clip's part of the mean.
    """
    voiced = tf.cast(batch.pitch > 0, tf.float32)
    heard = tf.math.log(tf.maximum(tf.gather(BYTE_PITCHES, batch.pitch), 1.0))[..., None] / math.log(2.0)
    wanted = tf.nn.softmax(-0.5 * ((OCTAVES - heard) / STEP) ** 2)  # a little wider than the grid's step
    surprise = tf.nn.softmax_cross_entropy_with_logits(wanted, scores) * voiced
    surprise = tf.reduce_sum(surprise, 1) / tf.maximum(tf.reduce_sum(voiced, 1), 1.0)
    edge = edge_frames(audio)
    mel = tf.reduce_mean(tf.abs(log_mel(waves, audio) - batch.mel)[:, edge:-edge], [1, 2])
    spectrum = _spectral_distance(inner(waves, audio), inner(batch.waves, audio))
    return {
        "spectrum": tf.reduce_sum(share * spectrum),
        "mel": tf.reduce_sum(share * mel),
        "pitch": tf.reduce_sum(share * surprise),
    }


def _spectral_distance(waves: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Relative error of the magnitudes plus error of their logarithms, [B], mean over the windows."""
    distances = []
    for window in WINDOWS:
        ours, theirs = _magnitudes(waves, window), _magnitudes(target, window)
        error = tf.sqrt(tf.reduce_sum((ours - theirs) ** 2, [1, 2]) + 1e-8)
        loud = tf.sqrt(tf.reduce_sum(theirs**2, [1, 2]) + 1e-2)  # silence is not divided by
        logarithms = tf.abs(tf.math.log(ours + QUIETEST) - tf.math.log(theirs + QUIETEST))
        distances.append(error / loud + tf.reduce_mean(logarithms, [1, 2]))
    return tf.add_n(distances) / len(distances)


def _magnitudes(waves: tf.Tensor, window: int) -> tf.Tensor:
    return smooth_magnitudes(tf.signal.stft(waves, window, window // 4, window), 1e-10)


def adversarial_losses(
    made: Sequence[Discriminated], recorded: Sequence[Discriminated], share: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Least squares (Mao et al. 2017), for the vocoder `adversarial` and `feature_matching`; `discriminator`."""
    adversarial = [_row_mean((1.0 - one.logits) ** 2) for one in made]
    feature_matching = [
        _row_mean(tf.abs(ours - tf.stop_gradient(theirs))) / (_row_mean(tf.abs(tf.stop_gradient(theirs))) + 1e-3)
        for one, other in zip(made, recorded, strict=True)
        for ours, theirs in zip(one.feature_maps, other.feature_maps, strict=True)
    ]
    discriminator = [
        _row_mean((1.0 - other.logits) ** 2) + _row_mean(one.logits**2)
        for one, other in zip(made, recorded, strict=True)
    ]
    parts = {"adversarial": adversarial, "feature_matching": feature_matching, "discriminator": discriminator}
    return {name: tf.reduce_sum(share * tf.add_n(losses)) / len(losses) for name, losses in parts.items()}


def _row_mean(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(values, list(range(1, len(values.shape))))
