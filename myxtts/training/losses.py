"""What training minimises, each part by its name.

In: XTTSOutput and the clip weights [B].
Out: {"name": scalar}; only real frames and tokens of clips with weight count.
     The losses of a batch's parts, each divided by the whole batch's counts, add up to the loss of the whole.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.batch import Batch, Sizes
from myxtts.config.config import TrainingConfig
from myxtts.models.xtts import XTTSOutput


class Counts(NamedTuple):
    """What means are taken over."""

    frames: tf.Tensor  # decoder steps with weight
    tokens: tf.Tensor


def count_batch(batch: Batch | Sizes, frames_per_step: int) -> Counts:
    """Real decoder steps and tokens of a batch; at least one of each, so that they can be divided by."""
    steps = tf.cast(batch.mel_lengths // frames_per_step, tf.float32)
    tokens = tf.cast(batch.text_lengths, tf.float32)
    return Counts(
        tf.maximum(tf.reduce_sum(steps * batch.weights), 1.0), tf.maximum(tf.reduce_sum(tokens * batch.weights), 1.0)
    )


def speech_losses(output: XTTSOutput, weights: tf.Tensor, counts: Counts) -> dict[str, tf.Tensor]:
    """Mean errors.

    `mel` L1 of the decoder, `prior` half squared error of the token's mel, `duration` in log steps, `pitch` in octaves
    and of the voicing, `flow` squared error of the refiner's velocity where there is one.
    """
    frame_weight = output.mask * weights[:, None, None]
    token_weight = output.text_mask * weights[:, None]
    values, tokens = counts.frames * output.target.shape[-1], counts.tokens
    log_found = tf.math.log(tf.maximum(output.durations, 1.0))
    voiced = tf.stop_gradient(output.token_pitch.voicing)
    off_key = tf.abs(output.log_f0 - output.token_pitch.log_f0) * voiced
    off_key += tf.nn.sigmoid_cross_entropy_with_logits(voiced, output.voicing)
    losses = {
        "mel": tf.reduce_sum(tf.abs(output.mel - output.target) * frame_weight) / values,
        "prior": tf.reduce_sum(0.5 * (output.prior - output.target) ** 2 * frame_weight) / values,
        "duration": tf.reduce_sum((output.log_durations - log_found) ** 2 * token_weight) / tokens,
        "pitch": tf.reduce_sum(off_key * token_weight) / tokens,
    }
    if output.velocity is not None:
        losses["flow"] = tf.reduce_sum((output.velocity - output.wanted_velocity) ** 2 * frame_weight) / values
    return losses


def total_loss(losses: dict[str, tf.Tensor], config: TrainingConfig) -> tf.Tensor:
    """The sum that is differentiated: `mel`, and every other loss times its weight, `training.<name>_loss`."""
    weighted = [getattr(config, f"{name}_loss") * loss for name, loss in losses.items() if name != "mel"]
    return sum(weighted, start=losses["mel"])
