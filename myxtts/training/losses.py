"""What training minimises, each part by its name.

In: XTTSOutput and the clip weights [B].
Out: {"name": scalar}; only real frames and tokens of clips with weight count.
"""

import tensorflow as tf

from myxtts.config.config import TrainingConfig
from myxtts.models.xtts import XTTSOutput


def speech_losses(output: XTTSOutput, weights: tf.Tensor) -> dict[str, tf.Tensor]:
    """Mean errors: `mel` L1 of the decoder, `prior` half squared error of the token's mel, `duration` in log steps."""
    frame_weight = output.mask * weights[:, None, None]
    token_weight = output.text_mask * weights[:, None]
    values = tf.maximum(tf.reduce_sum(frame_weight) * output.target.shape[-1], 1.0)
    tokens = tf.maximum(tf.reduce_sum(token_weight), 1.0)
    log_found = tf.math.log(tf.maximum(output.durations, 1.0))
    return {
        "mel": tf.reduce_sum(tf.abs(output.mel - output.target) * frame_weight) / values,
        "prior": tf.reduce_sum(0.5 * (output.prior - output.target) ** 2 * frame_weight) / values,
        "duration": tf.reduce_sum((output.log_durations - log_found) ** 2 * token_weight) / tokens,
    }


def total_loss(losses: dict[str, tf.Tensor], config: TrainingConfig) -> tf.Tensor:
    """The weighted sum that is differentiated."""
    return losses["mel"] + config.prior_loss * losses["prior"] + config.duration_loss * losses["duration"]
