"""The optimizer and its learning rate.

In: TrainingConfig; how far the run has come, as a share in [0, 1].
Out: a Keras AdamW, and the learning rate for a step.
"""

import math

import keras

from myxtts.config.config import TrainingConfig


def make_optimizer(config: TrainingConfig) -> keras.optimizers.Optimizer:
    """AdamW whose rate the step sets; the gradient is clipped by its global norm."""
    return keras.optimizers.AdamW(
        learning_rate=config.lr,
        weight_decay=config.weight_decay,
        beta_2=0.98,
        epsilon=1e-8,
        global_clipnorm=config.clip_norm,
    )


def learning_rate(config: TrainingConfig, step: int, progress: float) -> float:
    """Linear warm-up, then a cosine down to a hundredth of the peak at progress 1."""
    warm = min(1.0, (step + 1) / max(1, config.warmup_steps))
    fall = 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, progress))))
    return config.lr * warm * (0.01 + 0.99 * fall)
