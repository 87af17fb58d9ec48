"""A step on several devices: each finds the gradient of its part of a batch, the sum moves the weights.

In: a `ShardedBatch`, one part on each device.
Out: as `TrainStep`; the losses are those of the whole batch.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import tensorflow as tf

from myxtts.batch import PackedBatch, ShardedBatch, StepInput
from myxtts.config.config import TrainingConfig
from myxtts.devices import DevicePlan, move
from myxtts.training.gradient import Given, Losses, Trainable
from myxtts.training.objective import Objective
from myxtts.training.step import TrainStep


class ParallelStep(TrainStep):
    """All state lies on the first device; the others are given a copy of the weights with each step.

    Args:
        model: on the first device.
        objective: as of `TrainStep`.
        config: as of `TrainStep`.
        devices: all of them.
        device_lock: held while one of the others is given work, where something else uses it too.
    """

    def __init__(
        self,
        model: Trainable,
        objective: Objective,
        config: TrainingConfig,
        devices: DevicePlan,
        device_lock: AbstractContextManager,
    ):
        super().__init__(model, objective, config, devices.compiled)
        self._devices, self._device_lock = devices.training_devices, device_lock
        self._threads = ThreadPoolExecutor(len(self._devices) - 1, "training device")

    def __call__(self, batch: StepInput, adversarial: bool = False) -> Losses:
        """Runs one step on all devices at once."""
        if isinstance(batch, PackedBatch):
            return super().__call__(batch, adversarial)
        given = self.given()
        others = [
            self._threads.submit(self._find_elsewhere, batch, place, given, adversarial)
            for place in range(1, len(self._devices))
        ]
        found = self.gradient.of(given, batch.shards[0], batch.heads[0], self.parts, adversarial)
        for other in others:
            found = tf.nest.map_structure(lambda ours, theirs: ours + theirs, found, other.result())
        return self.apply(*found)

    def _find_elsewhere(
        self, batch: ShardedBatch, place: int, given: Given, adversarial: bool
    ) -> tuple[tf.Tensor, Losses]:
        """Gradient and losses of another device's part, brought to the first device."""
        device, home = self._devices[place], self._devices[0]
        given = tf.nest.map_structure(lambda tensor: move(tensor, device), given)
        with self._device_lock, tf.device(device):
            found = self.gradient.of(given, batch.shards[place], batch.heads[place], self.parts, adversarial)
        return tf.nest.map_structure(lambda tensor: move(tensor, home), found)
