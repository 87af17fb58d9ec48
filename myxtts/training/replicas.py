"""A step on several devices: each finds the gradient of its shard of a batch, one all-reduce adds them, all move alike.

In: a `ShardedBatch`, one shard on each device of this process.
Out: as `TrainStep`; the losses are those of the whole batch. Among several processes, also how long this one `waited`
     from its own gradient to the sum of all.

The engine is tf.distribute. Every device keeps all state of the step, so what crosses is the gradient and, by
themselves, the few numbers of the losses.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from myxtts.batch import Layout, PackedBatch, StepInput
from myxtts.checkpoint.weights import Fit
from myxtts.config.config import TrainingConfig
from myxtts.devices import HOST, DevicePlan, guarded_copies, move, require_on
from myxtts.errors import RunError
from myxtts.training.gradient import Given, Losses, Trainable
from myxtts.training.objective import Objective
from myxtts.training.step import TrainStep, given_by
from myxtts.training.strategy import strategy_for
from myxtts.training.tracing import AnyLength


class ReplicatedStep(TrainStep):
    """A `TrainStep` whose state lies on the first device, with a copy that moves alike on each of the others.

    A batch that is not sharded is trained on by the first device alone; the copies follow before the next sharded one.

    Args:
        model: on the first device.
        objective: as of `TrainStep`.
        config: as of `TrainStep`.
        devices: which ones train.
    """

    def __init__(self, model: Trainable, objective: Objective, config: TrainingConfig, devices: DevicePlan):
        super().__init__(model, objective, config, devices.compiled)
        self.devices = devices.training_devices
        self._strategy, self._first = strategy_for(devices)
        self._timed = devices.processes > 1
        self._states, self._all_buffers = [self.state], [self.buffers]
        for device in self.devices[1:]:
            with tf.device(device):
                self._states.append(tf.nest.map_structure(_copy, self.state))
                self._all_buffers.append([_copy(buffer) for buffer in self.buffers])
            copies = (*tf.nest.flatten(self._states[-1]), *self._all_buffers[-1])
            require_on(device, {copy.name: copy for copy in copies}, "a copy of the model")
        self._updates = [self._update, *(self.make_update(state) for state in self._states[1:])]
        self._everywhere = AnyLength(self._run_everywhere, fixed=devices.compiled)
        self._behind = True  # whether the copies are: what came before the first step has changed the first device only

    def __call__(self, batch: StepInput, adversarial: bool = False) -> Losses:
        """Runs one step, on all devices at once where each has a shard."""
        if isinstance(batch, PackedBatch):
            self._behind = True
            return super().__call__(batch, adversarial)
        if self._behind:
            self.catch_up()
        rows = [tensor for shard in batch.shards for tensor in (shard.floats, shard.labels)]
        try:
            with guarded_copies():
                return self._everywhere(list(batch.heads), rows, batch.shards[0].layout, self.parts, adversarial)
        except Exception:
            self._refuse_half_a_step()
            raise

    def _refuse_half_a_step(self) -> None:
        """After an error: where no device has moved the step may be tried again, otherwise it must not be.

        Raises:
            RunError: some devices have moved and others have not.
        """
        self._behind = True
        taken = [int(state.taken) for state in self._states]  # host sync
        if len(set(taken)) > 1:
            raise RunError(
                f"only some of {', '.join(self.devices)} took step {max(taken)}; resume from the last checkpoint, with "
                "a lower `data.batch_size` or a higher `training.grad_accum` where memory ran out"
            )

    def _run_everywhere(
        self, heads: Sequence[tf.Tensor], rows: Sequence[tf.Tensor], layout: Layout, parts: int, adversarial: bool
    ) -> Losses:
        """The step of every device, with the all-reduce between gradient and update."""

        def one() -> Losses:
            replica = tf.distribute.get_replica_context()
            place = int(tf.get_static_value(replica.replica_id_in_sync_group)) - self._first
            floats, labels = rows[2 * place : 2 * place + 2]
            shard, given = PackedBatch(floats, labels, layout), self._given_on(place)
            gradient, losses = self.gradient.of(given, shard, heads[place], parts, adversarial)
            told, add = tf.stack(list(losses.values())), tf.distribute.ReduceOp.SUM
            ready = self._when(gradient)
            gradient = replica.all_reduce(add, gradient)
            if self._timed:
                with tf.device(HOST):
                    waited = tf.cast(self._when(gradient) - ready, tf.float32)
            # By themselves: joined with the gradient they would have it copied twice.
            losses = dict(zip(losses, tf.unstack(replica.all_reduce(add, told)), strict=True))
            if self._timed:
                losses["waited"] = tf.identity(waited)
            skipped, bad, rate = self._updates[place](gradient, losses["loss"])
            return {**losses, "skipped": skipped, "bad": bad, "rate": rate}

        results = self._strategy.run(one)
        return {name: self._strategy.experimental_local_results(value)[0] for name, value in results.items()}

    def _when(self, finished: tf.Tensor) -> tf.Tensor:
        """The time at which a device has finished a vector, in seconds; among several processes only, else 0."""
        if not self._timed:
            return tf.zeros([], tf.float64)
        last = finished[-1]
        with tf.device(HOST):
            read_back = tf.identity(last)  # a card only queues work
            with tf.control_dependencies([read_back]):
                return tf.timestamp()

    def _given_on(self, place: int) -> Given:
        return given_by(self._states[place], self._all_buffers[place])

    def catch_up(self) -> None:
        """Brings the copies to where the first device is."""
        first, *others = self.copies()
        for other in others:
            for copy, variable in zip(other, first, strict=True):
                copy.assign(move(variable.read_value(), copy.device))
        self._behind = False

    def copies(self) -> list[list[tf.Variable]]:
        """All variables of each device, in the same order."""
        return [
            [*tf.nest.flatten(state), *buffers] for state, buffers in zip(self._states, self._all_buffers, strict=True)
        ]

    def tell_elapsed(self, share: np.float32) -> None:
        for state in self._states:
            state.elapsed.assign(share)

    def restore(self, arrays: dict[str, np.ndarray], taken: int = 0, optimizer: bool = True) -> None:
        super().restore(arrays, taken, optimizer)
        self._behind = True

    def begin_from(self, arrays: dict[str, np.ndarray]) -> Fit:
        self._behind = True
        return super().begin_from(arrays)


def _copy(variable: tf.Variable) -> tf.Variable:
    """A variable like it on the current device."""
    return tf.Variable(tf.zeros_like(variable), trainable=False, name=variable.name.split(":")[0])
