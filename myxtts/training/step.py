"""One training step: forward, backward, update, moving average.

In: a packed batch on the model device.
Out: the named losses as scalars on the device, not read back.
"""

import logging
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from myxtts.batch import Layout, PackedBatch, StepInput, sizes_of
from myxtts.checkpoint.earlier import called_before
from myxtts.checkpoint.weights import AVERAGE, MOMENTS, PARAMETERS, Fit, fit, part_of, under
from myxtts.config.config import TrainingConfig
from myxtts.devices import guarded_copies
from myxtts.errors import UsageError
from myxtts.training.gradient import Given, Gradient, Losses, Trainable
from myxtts.training.objective import Objective, Phase
from myxtts.training.optimizer import OptimizerState, adamw
from myxtts.training.parameters import FlatParameters
from myxtts.training.schedule import Schedule
from myxtts.training.tracing import AnyLength

_LOGGER = logging.getLogger(__name__)
FIRST_SCALE, MOST_SCALE, GROW_AFTER = 2.0**15, 2.0**24, 2000  # of the loss in float16, whose small numbers vanish
Update = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, ...]]  # gradient, loss -> what was told of the step
LEAST_SHARE = 0.5  # of a model's parameters that a checkpoint must hold for it to begin from that
NOTICEABLE = 1e-3  # of a run's time: a smaller change is not worth a copy to the device


class TrainStep:
    """The compiled step with the state it changes: weights, optimizer, moving average, step counts.

    All weights are one flat vector. The model is computed from slices of it, its gradient is one vector too, and the
    update is a few operations on vectors; the model's own variables are let go of, so that weights are kept once.

    A batch is worked through in `parts` of equal size whose gradients are added: the same result in less memory.
    A step whose gradient is not finite changes nothing but the scale of the loss.

    Args:
        model: with its variables, which the step takes over.
        objective: what it is trained for.
        config: of the optimisation.
        compiled: whether XLA compiles the gradient as a whole.
        schedule: of learning rate and guidance; by default that of a new run.
    """

    def __init__(
        self,
        model: Trainable,
        objective: Objective,
        config: TrainingConfig,
        compiled: bool = False,
        schedule: Schedule | None = None,
    ):
        self.model, self.objective, self.config, self.parts = model, objective, config, config.grad_accum
        self.schedule = schedule or Schedule(config)
        self.parameters = FlatParameters(model.named_weights())
        self._learns = _choose_learning(self.parameters.names, config.freeze)
        flat = self.parameters.flatten([variable.value for variable in model.named_weights().values()])
        self.weights, self.average = _variable(flat, "weights"), _variable(flat, "average")
        self.momentum = _variable(tf.zeros_like(flat), "momentum")
        self.velocity = _variable(tf.zeros_like(flat), "velocity")
        self.count = _variable(tf.zeros([], tf.int64), "step")  # steps that moved the weights
        self.taken = _variable(tf.zeros([], tf.int64), "taken")  # all steps
        self.elapsed = _variable(tf.zeros([]), "elapsed")  # share of the run's time
        self._told_elapsed = 0.0
        self._scaled = config.mixed_precision == "float16"
        self.scale = _variable(tf.constant(FIRST_SCALE if self._scaled else 1.0), "scale")
        self._good = _variable(tf.zeros([]), "good")  # steps since the scale was changed
        self._learning = None if all(self._learns) else tf.constant(self.parameters.flags(self._learns))
        self.parameters.release()
        guidance = lambda taken: self.schedule.guidance(taken)  # noqa: E731 (a resumed run gets another schedule)
        self.gradient = Gradient(model, objective, self.parameters, self._learns, guidance, compiled)
        self._update = self.make_update(self.state)

    def __call__(self, batch: StepInput, adversarial: bool = False) -> Losses:
        """Runs one step; `adversarial` asks a vocoder's discriminators too."""
        if not isinstance(batch, PackedBatch):
            raise TypeError("this step trains on one device; a sharded batch needs a ReplicatedStep")
        return self.apply(*self.find_gradient(batch, adversarial))

    def find_gradient(self, batch: PackedBatch, adversarial: bool = False) -> tuple[tf.Tensor, Losses]:
        """The flat gradient of a batch, and its losses."""
        with guarded_copies():
            return self.gradient.of(self.given(), batch, None, self.parts, adversarial)

    def given(self) -> Given:
        """What a gradient is found from besides a batch, as it is now."""
        return given_by(self.state, self.buffers)

    def apply(self, gradient: tf.Tensor, losses: Losses) -> Losses:
        """Moves the weights by a gradient."""
        skipped, bad, rate = self._update(gradient, losses["loss"])
        return {**losses, "skipped": skipped, "bad": bad, "rate": rate}

    def note_elapsed(self, share: float) -> None:
        """Tells the schedule how much of its time a run has used, in steps that a resumed run takes alike."""
        share = NOTICEABLE * int(share / NOTICEABLE)
        if share != self._told_elapsed:
            self._told_elapsed = share
            self.tell_elapsed(np.float32(share))

    def tell_elapsed(self, share: np.float32) -> None:
        self.elapsed.assign(share)

    def learns(self, weight: keras.Variable) -> bool:
        """Whether a weight of the model is not frozen."""
        places = zip(self.model.named_weights().values(), self._learns, strict=True)
        return next(learns for variable, learns in places if variable is weight)

    @property
    def traces(self) -> int:
        return self.gradient.traces

    @property
    def state(self) -> "StepState":
        """The variables that steps change."""
        optimizer = OptimizerState(self.weights, self.average, self.momentum, self.velocity, self.count)
        return StepState(optimizer, self.taken, self.elapsed, self.scale, self._good)

    @property
    def buffers(self) -> list[tf.Variable]:
        """What the model keeps besides its weights; no step changes it."""
        return [buffer.value for buffer in self.model.buffers().values()]

    def variables(self) -> dict[str, tf.Variable]:
        """Every variable of model, optimizer and moving average by name."""
        own = (self.weights, self.average, self.momentum, self.velocity, self.count, self.taken, self.elapsed)
        buffers = {f"model/{name}": v for name, v in self.model.buffers().items()}
        return {**{v.name: v for v in (*own, self.scale, self._good)}, **buffers}

    def named_weights(self, averaged: bool = False) -> dict[str, np.ndarray]:
        """A copy of every weight on the host by the way to it."""
        return self.parameters.named((self.average if averaged else self.weights).numpy())  # host sync

    def give_back(self) -> None:
        """Gives the model its own variables again, with the weights as they are."""
        self.parameters.give_back(self.weights)

    def arrays(self) -> dict[str, np.ndarray]:
        """All state by name, as arrays on the host, copied: later steps do not change them."""
        found = {name: variable.numpy().copy() for name, variable in self._scalars_and_buffers().items()}
        for part, vector in self._vectors().items():
            found |= under(part, self.parameters.named(vector.numpy()))  # host sync
        return found

    def averaged_weights(self) -> dict[str, np.ndarray]:
        """The moving average on the host as a checkpoint holds it."""
        return under(AVERAGE, self.named_weights(averaged=True))

    def _vectors(self) -> dict[str, tf.Variable]:
        parts = (PARAMETERS, AVERAGE, *MOMENTS)
        return dict(zip(parts, (self.weights, self.average, self.momentum, self.velocity), strict=True))

    def _scalars_and_buffers(self) -> dict[str, tf.Variable]:
        scale = {"scale": self.scale, "good": self._good} if self._scaled else {}
        return {"step": self.count, **self.model.buffers(), **scale}

    def restore(self, arrays: dict[str, np.ndarray], taken: int = 0, optimizer: bool = True) -> None:
        """Takes back what `arrays` gave, with or without what the optimizer remembers.

        Raises:
            UsageError: they are of another model, or of one that was made small.
        """
        if not part_of(arrays, PARAMETERS):
            raise UsageError(
                "this checkpoint only speaks, it cannot be resumed; begin a new run from it with `training.init_from`"
            )
        left_out = () if optimizer else (*MOMENTS, "step")
        scalars = {name: v for name, v in self._scalars_and_buffers().items() if name not in left_out}
        vectors = {part: v for part, v in self._vectors().items() if part not in left_out}
        others = fit(arrays, {name: tuple(variable.shape) for name, variable in scalars.items()})
        found = {part: fit(part_of(arrays, part), self.parameters.named_shapes) for part in vectors}
        problems = [f"{part} {one.describe()}" for part, one in found.items() if not one.complete]
        problems += [f"{name} is missing" for name in others.missing]
        problems += [f"{name} {shapes}" for name, shapes in others.differing.items()]
        if problems:
            raise UsageError(f"the checkpoint does not fit this model: {problems[0]}")
        for part, variable in vectors.items():
            variable.assign(self.parameters.join(found[part].fitting))
        for name, variable in scalars.items():
            variable.assign(others.fitting[name])
        self.taken.assign(taken)

    def begin_from(self, arrays: dict[str, np.ndarray]) -> Fit:
        """Starts with the averaged weights of another model, as far as they fit; the rest stays as it is.

        A table with fewer symbols than this one's gives its rows to the first of them.

        Returns:
            What fitted and what did not.

        Raises:
            UsageError: less than half of the model fits, or something that is frozen does not.
        """
        average, shapes = part_of(arrays, AVERAGE), self.parameters.named_shapes
        fresh, table = self.named_weights(), self._symbol_table
        if table in average and average[table].shape[1:] == shapes[table][1:]:
            average[table] = np.concatenate([average[table], fresh[table][len(average[table]) :]])
        found = fit(average, shapes)
        share = sum(array.size for array in found.fitting.values()) / self.parameters.count
        if share < LEAST_SHARE:
            raise UsageError(
                f"the checkpoint holds only {share:.0%} of this model ({found.describe()}); leave "
                "`training.init_from` out, or the settings that change the model's shapes"
            )
        learns = dict(zip(self.parameters.names, self._learns, strict=True))
        if stuck := [name for name in found.anew if not learns[name]]:
            raise UsageError(
                f"`training.freeze={self.config.freeze}` keeps {stuck[0]} as it is, and the checkpoint does not hold "
                f"it; leave {stuck[0].split('/')[0]} out of it"
            )
        for name, variable in self.model.buffers().items():
            if name in arrays and arrays[name].shape == tuple(variable.shape):
                variable.assign(arrays[name])
        self.weights.assign(self.parameters.join(fresh | found.fitting))
        self.average.assign(self.weights)
        return found

    @property
    def _symbol_table(self) -> str:
        """The name of the weight with a row for each symbol; empty where the model reads none."""
        table = self.model.symbol_table
        return next((name for name, variable in self.model.named_weights().items() if variable is table), "")

    def make_update(self, variables: "StepState") -> Update:
        """What moves these variables by a gradient, one pass over all of them; it returns what `advance` tells."""

        def update(gradient: tf.Tensor, loss: tf.Tensor) -> tuple[tf.Tensor, ...]:
            before = tf.nest.map_structure(lambda variable: variable.read_value(), variables)
            after, *told = self.advance(before, gradient, loss)
            for variable, value in zip(tf.nest.flatten(variables), tf.nest.flatten(after), strict=True):
                variable.assign(value)
            return tuple(told)

        return tf.function(update, autograph=False, jit_compile=True)

    def advance(
        self, state: "StepState", gradient: tf.Tensor, loss: tf.Tensor
    ) -> tuple["StepState", tf.Tensor, tf.Tensor, tf.Tensor]:
        """The state after a step, as a function of tensors alone.

        Returns:
            The state; 1.0 where the step was skipped; 1.0 where a smaller scale of the loss could not have helped
            either; the learning rate.
        """
        rate = self.schedule.rate(state.taken, state.elapsed)
        gradient = gradient / state.scale
        # No number and no infinity goes unnoticed in the sum, nor a norm that is too large for one.
        finite = tf.math.is_finite(loss) & tf.math.is_finite(tf.reduce_sum(gradient * gradient))
        moved = adamw(state.optimizer, gradient, finite, rate, self.config, self._learning)
        skipped = 1.0 - tf.cast(finite, tf.float32)
        bad = skipped * tf.cast(state.scale <= 1.0, tf.float32)
        scale, good = state.scale, state.good
        if self._scaled:
            grow = finite & (good + 1 >= GROW_AFTER)
            factor = tf.where(finite, tf.where(grow, 2.0, 1.0), 0.5)
            good = tf.where(finite & ~grow, good + 1, 0.0)
            scale = tf.clip_by_value(scale * factor, 1.0, MOST_SCALE)
        return StepState(moved, state.taken + 1, state.elapsed, scale, good), skipped, bad, rate


class StepState(NamedTuple):
    """All that steps change."""

    optimizer: OptimizerState
    taken: tf.Tensor  # int64, all steps
    elapsed: tf.Tensor  # share of the run's time
    scale: tf.Tensor  # of the loss
    good: tf.Tensor  # steps since the scale was changed


def given_by(state: StepState, buffers: Sequence[tf.Variable]) -> Given:
    """What a gradient is found from on the device where these variables lie."""
    read = (variable.read_value() for variable in (state.optimizer.weights, state.taken, state.scale, *buffers))
    weights, taken, scale, *values = read
    return Given(weights, values, taken, scale)


class EvaluateStep:
    """Losses and outputs of a batch with the averaged weights, without changing anything."""

    def __init__(self, step: TrainStep):
        self._step = step
        self.traced = AnyLength(self._evaluate)

    def __call__(self, batch: PackedBatch) -> tuple[Losses, Any]:
        return self.traced(self._step.average.read_value(), (batch.floats, batch.labels), batch.layout)

    def _evaluate(self, average: tf.Tensor, rows: Sequence[tf.Tensor], layout: Layout) -> tuple[Losses, Any]:
        batch, parameters = layout.unpack(*rows), self._step.parameters
        with parameters.scope(parameters.slices(average)):
            found = self._step.objective(self._step.model, batch, sizes_of(batch), Phase(tf.zeros([])))
        return found.losses, found.output


def _variable(value: tf.Tensor, name: str) -> tf.Variable:
    return tf.Variable(value, trainable=False, name=name)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")


def _choose_learning(names: Sequence[str], patterns: str) -> list[bool]:
    """For each weight whether it learns; patterns are separated by commas and match names like `text/embed/embeddings`.

    Raises:
        UsageError: a pattern matches nothing.
    """
    frozen: set[str] = set()
    for pattern in (part.strip() for part in patterns.split(",") if part.strip()):
        matched = {name for name in names if _matches(name, pattern)}
        if not matched and (matched := {name for name in names if _matches(called_before(name), pattern)}):
            today = ", ".join(dict.fromkeys("/".join(name.split("/")[: pattern.count("/") + 1]) for name in matched))
            _LOGGER.warning("`training.freeze`: %s is called %s today", pattern, today)
        if not matched:
            parts = ", ".join(dict.fromkeys(name.split("/")[0] for name in names))
            raise UsageError(f"`training.freeze={pattern}`: no weight has such a name; the parts are {parts}")
        frozen |= matched
    if len(frozen) == len(names):
        raise UsageError(f"`training.freeze={patterns}`: nothing is left to learn")
    return [name not in frozen for name in names]
