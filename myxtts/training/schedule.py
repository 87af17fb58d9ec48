"""What changes as a run goes on, computed on the device from the number of steps it has taken.

In: TrainingConfig and the run's limits.
Out: learning rate and guidance of a step as tensors. A number that Python made anew for each step would be copied to
     the device and wait for it, and TensorFlow keeps every such number for good (tensorflow#68196).
"""

import math
from dataclasses import dataclass

import tensorflow as tf

from myxtts.config.config import TrainingConfig


@dataclass(frozen=True)
class Schedule:
    """Warm-up, a cosine towards the nearest limit, and how long the flat start still helps the alignment."""

    config: TrainingConfig
    guided: bool = True  # whether the alignment is new
    batches: int = 0  # of all epochs; 0: their number is no limit
    ahead: int = 0  # batches used before the first step that is counted here

    def progress(self, taken: tf.Tensor, elapsed: tf.Tensor) -> tf.Tensor:
        """How far the run has come towards its nearest limit; `elapsed` is its share of the time that it has."""
        steps = tf.cast(taken, tf.float32)
        shares = [steps / self.config.max_steps, elapsed]
        if self.batches:
            shares.append((steps + self.ahead) / self.batches)
        return tf.clip_by_value(tf.reduce_max(tf.stack(shares)), 0.0, 1.0)

    def rate(self, taken: tf.Tensor, elapsed: tf.Tensor) -> tf.Tensor:
        """Linear warm-up, then a cosine down to a hundredth of the peak at progress 1."""
        warm = tf.minimum(1.0, (tf.cast(taken, tf.float32) + 1.0) / max(1, self.config.warmup_steps))
        fall = 0.5 * (1.0 + tf.cos(math.pi * self.progress(taken, elapsed)))
        return self.config.lr * warm * (0.01 + 0.99 * fall)

    def guidance(self, taken: tf.Tensor) -> tf.Tensor:
        """How much the averages of the flat start decide the alignment, 1 to 0."""
        if not self.guided or not self.config.guide_steps:
            return tf.zeros([])
        return tf.maximum(0.0, 1.0 - tf.cast(taken, tf.float32) / self.config.guide_steps)
