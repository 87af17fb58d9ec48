"""A step on two devices: each finds the gradient of half a batch, the sum moves the weights.

In: `Halves`, one on each device.
Out: as `TrainStep`; the losses are those of the whole batch.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager

import tensorflow as tf

from myxtts.batch import Fed, Halves
from myxtts.config.config import TrainingConfig
from myxtts.devices import DevicePlan, move
from myxtts.training.objective import Schedule
from myxtts.training.step import Gradient, Trainable, TrainStep, spread


class ParallelStep(TrainStep):
    """All state lies on the model device; the data device has a copy of the weights, renewed before each step.

    Args:
        model: on the model device.
        config: as of `TrainStep`.
        make_replica: makes another such model.
        devices: both of them.
        turn: held while the data device is given work, where something else uses it too.
    """

    def __init__(
        self,
        model: Trainable,
        config: TrainingConfig,
        make_replica: Callable[[], Trainable],
        devices: DevicePlan,
        turn: AbstractContextManager,
    ):
        super().__init__(model, config)
        self._devices, self._turn = devices, turn
        with tf.device(devices.data_device):
            self._replica = make_replica()
            self._replica.create_variables()
        self._their_gradient = Gradient(self._replica, config, self._learns)
        self._renew = tf.function(self._take_weights, autograph=False)
        self._thread = ThreadPoolExecutor(1, "second device")
        self._known: set[tuple[tuple[int, ...], int, bool]] = set()  # shapes of which both gradients are traced

    @property
    def traces(self) -> int:
        return super().traces + self._their_gradient.traces

    def __call__(self, batch: Fed, rate: tf.Tensor, schedule: Schedule) -> dict[str, tf.Tensor]:
        """Runs one step on both devices at once."""
        if not isinstance(batch, Halves):
            return super().__call__(batch, rate, schedule)
        scale = self.scale.read_value()
        state = [self.weights.read_value(), *(v.value for v in self.model.remembered().values())]
        theirs = self._thread.submit(self._find_theirs, batch, state, schedule, scale)
        shape = (batch.mel_shape, self.parts, schedule is True)
        if shape not in self._known:  # both models call the same compiled search, which one thread at a time may trace
            wait([theirs])
        gradient, losses = self._gradient.of(batch.on_model, batch.model_sizes, schedule, scale, self.parts)
        more, found = theirs.result()
        self._known.add(shape)
        gradient += more
        losses = {name: losses[name] + found[name] for name in losses}
        return self.apply(gradient, losses, rate)

    def _find_theirs(
        self, batch: Halves, state: list[tf.Tensor], schedule: Schedule, scale: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """The other half's gradient and losses, brought to the model device."""
        device, home = self._devices.data_device, self._devices.model_device
        with self._turn, tf.device(device):
            self._renew(*[move(part, device) for part in state])
            scale = move(scale, device)
            schedule = schedule if isinstance(schedule, bool) else move(schedule, device)
            gradient, losses = self._their_gradient.of(batch.on_data, batch.data_sizes, schedule, scale, self.parts)
        return move(gradient, home), {name: move(value, home) for name, value in losses.items()}

    def _take_weights(self, weights: tf.Tensor, *remembered: tf.Tensor) -> None:
        spread(weights, self._replica.trainable_variables)
        for variable, value in zip(self._replica.remembered().values(), remembered, strict=True):
            variable.assign(value)
