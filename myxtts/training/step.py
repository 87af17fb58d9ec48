"""One training step: forward, backward, update, moving average. The only place with a GradientTape.

In: a batch on the model device, learning rate and schedule.
Out: the named losses as scalars on the device, not read back.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatchcase
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from myxtts.batch import AnyBatch, Sizes, sizes_of
from myxtts.config.config import TrainingConfig
from myxtts.devices import guarded_copies
from myxtts.errors import UsageError
from myxtts.training.objective import Schedule, objective_for
from myxtts.training.optimizer import make_optimizer

FIRST_SCALE, MOST_SCALE, GROW_AFTER = 2.0**15, 2.0**24, 2000  # of the loss in float16, whose small numbers vanish


class Trainable(Protocol):
    """What a step needs of a model; `XTTS` and `JudgedVocoder` are such."""

    trainable_variables: list[tf.Variable]
    symbol_table: tf.Variable | None

    def create_variables(self) -> None: ...

    def named_weights(self) -> dict[str, tf.Variable]: ...

    def remembered(self) -> dict[str, tf.Variable]: ...


class TrainStep:
    """The compiled step with the state it changes: model, optimizer, moving average, step count.

    The optimizer works on one flat copy of all weights: a few large operations instead of dozens for each of some
    two hundred variables, which is most of the tracing time and a good part of the step.

    A batch is worked through in `parts` of equal size whose gradients are added: the same result in less memory.
    A step whose gradient is not finite changes nothing but the scale of the loss.
    """

    def __init__(self, model: Trainable, config: TrainingConfig):
        self.model, self.config, self.parts = model, config, config.grad_accum
        self._learns = _choose_learning(model, config.freeze)
        self.weights = tf.Variable(_flatten(model.trainable_variables), name="weights")
        self.average = tf.Variable(self.weights, trainable=False, name="average")
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._scaled = config.mixed_precision == "float16"
        self.scale = tf.Variable(FIRST_SCALE if self._scaled else 1.0, trainable=False, name="scale")
        self._good = tf.Variable(0.0, trainable=False, name="good")  # steps since the scale was changed
        self.optimizer = make_optimizer(config)
        self.optimizer.build([self.weights])
        self._gradient = Gradient(model, config, self._learns)
        self._update = tf.function(self._apply, autograph=False, jit_compile=True)  # one pass over all weights
        # Apart from it, because XLA takes seconds to compile so many results.
        self._give = tf.function(functools.partial(spread, self.weights, model.trainable_variables), autograph=False)

    def __call__(self, batch: AnyBatch, rate: tf.Tensor, schedule: Schedule) -> dict[str, tf.Tensor]:
        """Runs one step. Scalars must be tensors: a Python number would be traced anew each time."""
        return self.apply(*self.find_gradient(batch, schedule), rate)

    def find_gradient(self, batch: AnyBatch, schedule: Schedule) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """The flat gradient of a batch, and its losses."""
        # What XLA compiles wants even the handles of variables, which live with the host, on the device: not guarded.
        with nullcontext() if self.config.xla else guarded_copies():
            return self._gradient.of(batch, sizes_of(batch), schedule, self.scale.read_value(), self.parts)

    def apply(self, gradient: tf.Tensor, losses: dict[str, tf.Tensor], rate: tf.Tensor) -> dict[str, tf.Tensor]:
        """Moves the weights by a gradient."""
        skipped, bad = self._update(gradient, losses["loss"], rate)
        self._give()
        return {**losses, "skipped": skipped, "bad": bad}

    def learns(self, weight: tf.Variable) -> bool:
        """Whether a weight of the model is not frozen."""
        places = zip(self.model.trainable_variables, self._learns, strict=True)
        return next(learns for variable, learns in places if variable is weight)

    @property
    def traces(self) -> int:
        return self._gradient.traces

    def variables(self) -> dict[str, tf.Variable]:
        """Every variable of model, optimizer and moving average by name."""
        model = {f"model/{name}": v for name, v in self.model.named_weights().items()}
        remembered = {f"model/{name}": v for name, v in self.model.remembered().items()}
        optimizer = {f"optimizer/{v.path}": v for v in self.optimizer.variables}
        own = {v.name: v for v in (self.weights, self.average, self.count, self.scale, self._good)}
        return {**model, **remembered, **optimizer, **own}

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside the block the model has its averaged weights."""
        spread(self.average, self.model.trainable_variables)
        try:
            yield
        finally:
            spread(self.weights, self.model.trainable_variables)

    def _state(self) -> dict[str, tf.Variable]:
        slots = {f"optimizer/{number}": v for number, v in enumerate(self.optimizer.variables)}
        scale = {"scale": self.scale, "good": self._good} if self._scaled else {}
        own = {"weights": self.weights, "average": self.average, "step": self.count}
        return {**own, **self.model.remembered(), **scale, **slots}

    def arrays(self) -> dict[str, np.ndarray]:
        """All state as arrays on the host, copied: later steps do not change them."""
        return {name: variable.numpy().copy() for name, variable in self._state().items()}  # host sync

    def restore(self, arrays: dict[str, np.ndarray], optimizer: bool = True) -> None:
        """Takes back what `arrays` gave, with or without what the optimizer remembers.

        Raises:
            UsageError: they are of another model, or of one that was made small.
        """
        if "weights" not in arrays:
            raise UsageError("this checkpoint only speaks, it cannot be resumed; type --init-from instead of --resume")
        own = {name: v for name, v in self._state().items() if optimizer or not name.startswith(("optimizer/", "step"))}
        for name, variable in own.items():
            if name not in arrays or arrays[name].shape != tuple(variable.shape):
                found = arrays[name].shape if name in arrays else "nothing"
                raise UsageError(
                    f"the checkpoint does not fit this model: {name} has {found}, needed {tuple(variable.shape)}"
                )
            variable.assign(arrays[name])
        spread(self.weights, self.model.trainable_variables)

    def begin_from(self, arrays: dict[str, np.ndarray], symbols: int) -> None:
        """Starts with the averaged weights of a model that knew the first `symbols` symbols of this one."""
        table = self.model.symbol_table
        parts = _cut(arrays, self.model, {} if table is None else {id(table): (symbols, table.shape[1])})
        for variable, part in zip(self.model.trainable_variables, parts, strict=True):
            if table is not None and variable is table:
                part = np.concatenate([part, table.numpy()[symbols:]])
            variable.assign(part)
        if table is None or symbols == table.shape[0]:
            for name, variable in self.model.remembered().items():
                variable.assign(arrays[name])
        self.weights.assign(_flatten(self.model.trainable_variables))
        self.average.assign(self.weights)

    def _apply(self, gradient: tf.Tensor, loss: tf.Tensor, rate: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Moves the weights unless something is not finite.

        Returns:
            1.0 where the step was skipped; 1.0 where a smaller scale of the loss could not have helped either.
        """
        gradient = gradient / self.scale
        finite = tf.math.is_finite(loss) & tf.reduce_all(tf.math.is_finite(gradient))
        skipped = 1.0 - tf.cond(finite, lambda: self._move(gradient, rate), lambda: tf.constant(0.0))
        bad = skipped * tf.cast(self.scale <= 1.0, tf.float32)
        if self._scaled:
            grow = finite & (self._good + 1 >= GROW_AFTER)
            factor = tf.where(finite, tf.where(grow, 2.0, 1.0), 0.5)
            self._good.assign(tf.where(finite & ~grow, self._good + 1, 0.0))
            self.scale.assign(tf.clip_by_value(self.scale * factor, 1.0, MOST_SCALE))
        return skipped, bad

    def _move(self, gradient: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
        before = self.weights.read_value()
        self.optimizer.learning_rate.assign(rate)
        self.optimizer.apply_gradients([(gradient, self.weights)])
        if not all(self._learns):  # what is frozen does not decay either
            self.weights.assign(tf.where(_spread_flags(self._learns, self.model), self.weights, before))
        self.count.assign_add(1)
        done = tf.cast(self.count, tf.float32)
        keep = tf.minimum(self.config.ema_decay, (1.0 + done) / (10.0 + done))  # young averages forget faster
        self.average.assign_sub((1.0 - keep) * (self.average - self.weights))
        return tf.constant(1.0)


class Gradient:
    """The compiled gradient of one model's losses, flat, with a count of its traces.

    Args:
        model: whose weights.
        config: which losses count how much, and whether XLA compiles them.
        learns: for each weight whether it has a gradient at all.
    """

    def __init__(self, model: Trainable, config: TrainingConfig, learns: Sequence[bool]):
        self._model, self._objective, self._learns = model, objective_for(model, config), learns
        self.traces = 0
        self._compiled = tf.function(self._find, autograph=False, jit_compile=config.xla)

    def of(
        self, batch: AnyBatch, sizes: Sizes, schedule: Schedule, scale: tf.Tensor, parts: int
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Gradient and losses of a batch, found in so many parts; `sizes` are those of the batch it belongs to."""
        gradient, losses = self._compiled(batch, sizes, schedule, scale, tf.constant(0), parts)
        for part in range(1, parts):
            more, found = self._compiled(batch, sizes, schedule, scale, tf.constant(part), parts)
            gradient += more
            losses = {name: losses[name] + found[name] for name in losses}
        return gradient, losses

    def _find(
        self, whole: AnyBatch, sizes: Sizes, schedule: Schedule, scale: tf.Tensor, part: tf.Tensor, parts: int
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        self.traces += 1  # runs while tracing only
        model = self._model
        batch = _take_rows(whole, part, parts)
        learning = {id(v) for v, learns in zip(model.trainable_variables, self._learns, strict=True) if learns}
        with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
            tape.watch([v.value for v in model.trainable_variables if id(v) in learning])
            found = self._objective(model, batch, sizes, schedule)
            goals = [(goal.loss * scale, [v for v in goal.weights if id(v) in learning]) for goal in found.goals]
        gradients: dict[int, tf.Tensor] = {}
        for loss, weights in goals:
            gradients.update(zip(map(id, weights), tape.gradient(loss, weights), strict=True))
        flat = _flatten([gradients.get(id(v), tf.zeros(v.shape)) for v in model.trainable_variables])
        frames = tf.reduce_sum(tf.cast(batch.mel_lengths, tf.float32) * batch.weights)
        return flat, {**found.losses, "frames": frames}


def load_vocoder(vocoder: Any, arrays: dict[str, np.ndarray]) -> None:
    """Gives a vocoder its averaged weights out of a checkpoint, where its critics' follow them."""
    size = sum(math.prod(v.shape) for v in vocoder.trainable_variables)
    load_average(vocoder, {"average": arrays.get("average", np.zeros(0))[:size]})


def load_average(model: Any, arrays: dict[str, np.ndarray]) -> None:
    """Gives a model the averaged weights of a checkpoint, for speaking."""
    for variable, part in zip(model.trainable_variables, _cut(arrays, model, {}), strict=True):
        variable.assign(part)


def _cut(arrays: dict[str, np.ndarray], model: Any, other: dict[int, tuple[int, ...]]) -> list[np.ndarray]:
    """The averaged weights of a checkpoint in the shapes of a model's weights, or in `other` shapes where named."""
    shapes = [other.get(id(v), tuple(v.shape)) for v in model.trainable_variables]
    sizes = [math.prod(shape) for shape in shapes]
    flat = arrays.get("average", np.zeros(0)).astype(np.float32)
    if flat.size != sum(sizes):
        raise UsageError(
            f"the checkpoint is of another size: it holds {flat.size:,} weights, its configuration needs {sum(sizes):,}"
        )
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _choose_learning(model: Trainable, patterns: str) -> list[bool]:
    """For each weight whether it learns; patterns are separated by commas and match names like `text/embed/embeddings`.

    Raises:
        UsageError: a pattern matches nothing.
    """
    names = list(model.named_weights())
    frozen: set[str] = set()
    for pattern in (part.strip() for part in patterns.split(",") if part.strip()):
        matched = {name for name in names if fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")}
        if not matched:
            parts = ", ".join(dict.fromkeys(name.split("/")[0] for name in names))
            raise UsageError(f"--freeze {pattern}: no weight has such a name; the parts are {parts}")
        frozen |= matched
    if len(frozen) == len(names):
        raise UsageError(f"--freeze {patterns}: nothing is left to learn")
    return [name not in frozen for name in names]


def _take_rows(batch: AnyBatch, part: tf.Tensor, parts: int) -> AnyBatch:
    """One of so many equal parts of a batch."""
    if parts == 1:
        return batch
    rows = batch.weights.shape[0] // parts

    def take(x: tf.Tensor) -> tf.Tensor:
        taken = tf.slice(x, [part * rows] + [0] * (len(x.shape) - 1), [rows, *x.shape[1:]])
        return tf.ensure_shape(taken, [rows, *x.shape[1:]])

    return type(batch)(*[take(x) for x in batch])


def _flatten(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.concat([tf.reshape(t, [-1]) for t in tensors], axis=0)


def spread(flat: tf.Tensor, variables: Sequence[tf.Variable]) -> None:
    """Writes a flat vector back into the variables that `_flatten` would read in the same order."""
    parts = tf.split(flat, [math.prod(v.shape) for v in variables])
    for variable, part in zip(variables, parts, strict=True):
        variable.assign(tf.reshape(part, variable.shape))


def _spread_flags(flags: Sequence[bool], model: Trainable) -> tf.Tensor:
    """One flag for each weight of each variable, bool [weights]."""
    return tf.concat(
        [tf.fill([math.prod(v.shape)], f) for f, v in zip(flags, model.trainable_variables, strict=True)], 0
    )


class EvaluateStep:
    """Losses and outputs of a batch without changing anything."""

    def __init__(self, model: Trainable, config: TrainingConfig):
        self.model, self._objective = model, objective_for(model, config)
        self._compiled = tf.function(self._step, autograph=False)

    def __call__(self, batch: AnyBatch, schedule: Schedule) -> tuple[dict[str, tf.Tensor], Any]:
        return self._compiled(batch, schedule)

    def _step(self, batch: AnyBatch, schedule: Schedule) -> tuple[dict[str, tf.Tensor], Any]:
        found = self._objective(self.model, batch, sizes_of(batch), schedule)
        return found.losses, found.output
