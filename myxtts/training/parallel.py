"""A step on two devices: each finds the gradient of half a batch, the sum moves the weights.

In: a `ShardedBatch`, one half on each device.
Out: as `TrainStep`; the losses are those of the whole batch.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import tensorflow as tf

from myxtts.batch import PackedBatch, ShardedBatch, StepInput
from myxtts.config.config import TrainingConfig
from myxtts.devices import DevicePlan, move
from myxtts.training.step import Given, Losses, Trainable, TrainStep


class ParallelStep(TrainStep):
    """All state lies on the model device; the data device is given a copy of the weights with each step.

    Args:
        model: on the model device.
        config: as of `TrainStep`.
        devices: both of them.
        device_lock: held while the data device is given work, where something else uses it too.
    """

    def __init__(
        self, model: Trainable, config: TrainingConfig, devices: DevicePlan, device_lock: AbstractContextManager
    ):
        super().__init__(model, config, devices.compiled)
        self._devices, self._device_lock = devices, device_lock
        self._thread = ThreadPoolExecutor(1, "second device")

    def __call__(self, batch: StepInput, adversarial: bool = False) -> Losses:
        """Runs one step on both devices at once."""
        if isinstance(batch, PackedBatch):
            return super().__call__(batch, adversarial)
        given = self.given()
        theirs = self._thread.submit(self._find_theirs, batch, given, adversarial)
        gradient, losses = self.gradient.of(given, batch.on_model, batch.model_head, self.parts, adversarial)
        more, found = theirs.result()
        return self.apply(gradient + more, {name: losses[name] + found[name] for name in losses})

    def _find_theirs(self, batch: ShardedBatch, given: Given, adversarial: bool) -> tuple[tf.Tensor, Losses]:
        """The other half's gradient and losses, brought to the model device."""
        device, home = self._devices.data_device, self._devices.model_device
        given = tf.nest.map_structure(lambda tensor: move(tensor, device), given)
        with self._device_lock, tf.device(device):
            found = self.gradient.of(given, batch.on_data, batch.data_head, self.parts, adversarial)
        return tf.nest.map_structure(lambda tensor: move(tensor, home), found)
