"""One training step: forward, backward, update, moving average. The only place with a GradientTape.

In: Batch on the model device, learning rate and guidance.
Out: the named losses as scalars on the device, not read back.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.config.config import TrainingConfig
from myxtts.devices import guarded_copies
from myxtts.errors import UsageError
from myxtts.models.alignment import even_path, monotonic_search
from myxtts.models.layers import length_mask, stack_frames
from myxtts.models.xtts import XTTS, XTTSOutput
from myxtts.training.losses import speech_losses, total_loss
from myxtts.training.optimizer import make_optimizer


class TrainStep:
    """The compiled step with the state it changes: model, optimizer, moving average, step count.

    The optimizer works on one flat copy of all weights: a few large operations instead of dozens for each of some
    two hundred variables, which is most of the tracing time and a good part of the step.
    """

    def __init__(self, model: XTTS, config: TrainingConfig):
        self.model, self.config = model, config
        self.weights = tf.Variable(_flatten(model.trainable_variables), name="weights")
        self.average = tf.Variable(self.weights, trainable=False, name="average")
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self.optimizer = make_optimizer(config)
        self.optimizer.build([self.weights])
        self.traces = 0
        self._gradient = tf.function(self._find_gradient, autograph=False, jit_compile=config.xla)
        self._update = tf.function(self._apply, autograph=False, jit_compile=True)  # one pass over all weights

    def __call__(self, batch: Batch, rate: tf.Tensor, guidance: tf.Tensor) -> dict[str, tf.Tensor]:
        """Runs one step. Scalars must be tensors: a Python number would be traced anew each time."""
        # What XLA compiles wants even the handles of variables, which live with the host, on the device: not guarded.
        with nullcontext() if self.config.xla else guarded_copies():
            gradient, losses = self._gradient(batch, guidance)
        self._update(gradient, rate)
        return losses

    def variables(self) -> dict[str, tf.Variable]:
        """Every variable of model, optimizer and moving average by name."""
        model = {f"model/{v.path}": v for v in self.model.variables}
        optimizer = {f"optimizer/{v.path}": v for v in self.optimizer.variables}
        return {**model, **optimizer, "weights": self.weights, "average": self.average}

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside the block the model has its averaged weights."""
        _spread(self.average, self.model.trainable_variables)
        try:
            yield
        finally:
            _spread(self.weights, self.model.trainable_variables)

    def _state(self) -> dict[str, tf.Variable]:
        slots = {f"optimizer/{number}": v for number, v in enumerate(self.optimizer.variables)}
        guide = {"guide/means": self.model.guide.means, "guide/precisions": self.model.guide.precisions}
        return {"weights": self.weights, "average": self.average, "step": self.count, **guide, **slots}

    def arrays(self) -> dict[str, np.ndarray]:
        """All state as arrays on the host."""
        return {name: np.asarray(variable) for name, variable in self._state().items()}  # host sync

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes back what `arrays` gave."""
        for name, variable in self._state().items():
            if name not in arrays or arrays[name].shape != tuple(variable.shape):
                found = arrays[name].shape if name in arrays else "nothing"
                raise UsageError(
                    f"the checkpoint does not fit this model: {name} has {found}, needed {tuple(variable.shape)}"
                )
            variable.assign(arrays[name])
        _spread(self.weights, self.model.trainable_variables)

    def _find_gradient(self, batch: Batch, guidance: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        self.traces += 1  # runs while tracing only
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            losses = speech_losses(self.model(batch, guidance), batch.weights)
            loss = total_loss(losses, self.config)
        gradients = tape.gradient(loss, variables)
        frames = tf.reduce_sum(tf.cast(batch.mel_lengths, tf.float32) * batch.weights)
        return _flatten(gradients), {"loss": loss, **losses, "frames": frames}

    def _apply(self, gradient: tf.Tensor, rate: tf.Tensor) -> None:
        self.optimizer.learning_rate.assign(rate)
        self.optimizer.apply_gradients([(gradient, self.weights)])
        self.count.assign_add(1)
        done = tf.cast(self.count, tf.float32)
        keep = tf.minimum(self.config.ema_decay, (1.0 + done) / (10.0 + done))  # young averages forget faster
        self.average.assign_sub((1.0 - keep) * (self.average - self.weights))
        _spread(self.weights, self.model.trainable_variables)


def load_average(model: XTTS, arrays: dict[str, np.ndarray]) -> None:
    """Gives a model the averaged weights of a checkpoint, for speaking."""
    needed = sum(math.prod(v.shape) for v in model.trainable_variables)
    found = arrays.get("average", np.zeros(0)).size
    if found != needed:
        raise UsageError(
            f"the checkpoint is of another size: it holds {found:,} weights, its configuration needs {needed:,}"
        )
    _spread(tf.constant(arrays["average"]), model.trainable_variables)


def _flatten(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.concat([tf.reshape(t, [-1]) for t in tensors], axis=0)


def _spread(flat: tf.Tensor, variables: Sequence[tf.Variable]) -> None:
    """Writes a flat vector back into the variables that `_flatten` would read in the same order."""
    parts = tf.split(flat, [math.prod(v.shape) for v in variables])
    for variable, part in zip(variables, parts, strict=True):
        variable.assign(tf.reshape(part, variable.shape))


class EvaluateStep:
    """Losses and outputs of a batch without changing anything."""

    def __init__(self, model: XTTS, config: TrainingConfig):
        self.model, self.config = model, config
        self._compiled = tf.function(self._step)

    def __call__(self, batch: Batch, guidance: tf.Tensor) -> tuple[dict[str, tf.Tensor], XTTSOutput]:
        return self._compiled(batch, guidance)

    def _step(self, batch: Batch, guidance: tf.Tensor) -> tuple[dict[str, tf.Tensor], XTTSOutput]:
        output = self.model(batch, guidance)
        losses = speech_losses(output, batch.weights)
        return {"loss": total_loss(losses, self.config), **losses}, output


class FlatStart:
    """Statistics for the alignment guide, gathered batch by batch over a sweep."""

    def __init__(self, model: XTTS):
        self.model = model
        self._compiled = tf.function(self._statistics)
        self._sums: tuple[tf.Tensor, tf.Tensor, tf.Tensor] | None = None

    def add(self, batch: Batch, first: bool) -> None:
        """Aligns a batch (evenly in the first sweep) and adds what it says about each symbol."""
        found = self._compiled(batch, tf.constant(first))
        self._sums = found if self._sums is None else tuple(a + b for a, b in zip(self._sums, found, strict=True))

    def finish_sweep(self) -> None:
        """Turns the sums into new Gaussians."""
        if self._sums is None:
            raise ValueError("a sweep needs at least one batch")
        self.model.guide.estimate(*self._sums)
        self._sums = None

    def _statistics(self, batch: Batch, first: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        guide, step = self.model.guide, self.model.frames_per_step
        stacked, lengths = stack_frames(batch.mel, step), batch.mel_lengths // step
        frames, tokens = stacked.shape[1], batch.tokens.shape[1]
        mask = length_mask(lengths, frames)
        path = tf.cond(
            first,
            lambda: even_path(batch.text_lengths, lengths, tokens, frames),
            lambda: monotonic_search(guide(batch.tokens, stacked, mask), batch.text_lengths, lengths),
        )
        path *= batch.weights[:, None, None]
        return guide.statistics(batch.tokens, stacked, mask, path)
