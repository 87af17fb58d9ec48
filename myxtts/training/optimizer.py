"""AdamW on one flat vector, with a moving average of the weights (Loshchilov & Hutter 2019).

In: the vectors, a gradient, a learning rate.
Out: the vectors after the step, or as they were where the step is not finite.
"""

from typing import NamedTuple

import tensorflow as tf

from myxtts.config.config import TrainingConfig

BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-8


class OptimizerState(NamedTuple):
    """All that a step changes, tensors of one size but for the count."""

    weights: tf.Tensor
    average: tf.Tensor
    momentum: tf.Tensor
    velocity: tf.Tensor
    count: tf.Tensor  # int64, steps that moved the weights


def adamw(
    state: OptimizerState,
    gradient: tf.Tensor,
    finite: tf.Tensor,
    rate: tf.Tensor,
    config: TrainingConfig,
    learning: tf.Tensor | None = None,
) -> OptimizerState:
    """One step, clipped by the gradient's norm. Where `learning` is False nothing moves, and nothing decays.

    A step that is not finite moves everything by zero: a branch would make the host wait for the device to tell which
    one is taken, and choosing between old and new vectors would keep both.
    """
    moves = tf.cast(finite, tf.float32)
    done = tf.cast(state.count + 1, tf.float32)
    norm = tf.sqrt(tf.reduce_sum(gradient * gradient))
    gradient = gradient * (config.clip_norm * tf.minimum(1.0 / norm, 1.0 / config.clip_norm))
    gradient = tf.where(finite, gradient, 0.0)
    momentum = state.momentum + (gradient - state.momentum) * ((1.0 - BETA_1) * moves)
    velocity = state.velocity + (gradient * gradient - state.velocity) * ((1.0 - BETA_2) * moves)
    pace = rate * tf.sqrt(1.0 - BETA_2**done) / (1.0 - BETA_1**done)
    weights = state.weights - state.weights * (config.weight_decay * rate * moves)
    weights -= momentum * (pace * moves) / (tf.sqrt(velocity) + EPSILON)
    if learning is not None:
        weights = tf.where(learning, weights, state.weights)
    keep = tf.minimum(config.ema_decay, (1.0 + done) / (10.0 + done))  # young averages forget faster
    average = state.average - (1.0 - keep) * moves * (state.average - weights)
    return OptimizerState(weights, average, momentum, velocity, state.count + tf.cast(finite, tf.int64))
