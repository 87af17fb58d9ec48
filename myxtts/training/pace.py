"""How fast the loop runs: since the last log line, and over the whole run.

In: every step's batch shape and results, which stay on the device until a log line needs them.
Out: the numbers of `Metrics` and `Summary`.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.devices import plain_name
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.stages import WAIT


@dataclass
class Times:
    """Mean and squared deviations of the times of one batch shape, without the times themselves (Welford 1962)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    compiled: bool = False  # whether the first step, which compiles, has passed

    def add(self, seconds: float) -> None:
        if not self.compiled:
            self.compiled = True
            return
        self.count += 1
        distance = seconds - self.mean
        self.mean += distance / self.count
        self.squares += distance * (seconds - self.mean)


class Pace:
    """A window of steps between two log lines, and the sums of all windows."""

    def __init__(self, clock: StageClock, seconds_before: float = 0.0):
        self.begin = time.perf_counter() - seconds_before
        self._clock = clock
        self._results: list[dict[str, tf.Tensor]] = []
        self._window_begin = self._step_begin = time.perf_counter()
        self._padded = 0
        self._times: dict[tuple[int, ...], Times] = defaultdict(Times)
        self._waited = self._trained = self._frames = 0.0

    @property
    def seconds(self) -> float:
        """Since the run began, with what it had before it was resumed."""
        return time.perf_counter() - self.begin

    def add(self, shape: tuple[int, ...], results: dict[str, tf.Tensor]) -> None:
        """Notes that a step on a mel batch of that shape was begun; its time is that since the one before.

        A device may still be at work on it. Where steps queue up they follow each other at the device's own pace, so
        these times are right on average, while the time of the call alone would not be.
        """
        now = time.perf_counter()
        self._times[shape].add(now - self._step_begin)
        self._step_begin = now
        self._results.append(results)
        self._padded += shape[0] * shape[1]

    def open_flags(self) -> dict[str, list[bool]]:
        """For each step since the last log line whether it was skipped or bad; read back for a checkpoint."""
        values = _read(self._results)
        return {name: [bool(value[name]) for value in values] for name in ("skipped", "bad")}

    def close_window(self) -> tuple[dict[str, Any], dict[str, list[bool]]]:
        """Reads the window's results back.

        Returns:
            The window's means, of finite steps where there are any, and for each step whether it was skipped or bad.
        """
        values = _read(self._results)
        flags = {name: [bool(value.pop(name)) for value in values] for name in ("skipped", "bad")}
        frames, rate = sum(value.pop("frames") for value in values), [value.pop("rate") for value in values][-1]
        waited = sum(value.pop("waited", 0.0) for value in values)
        counted = [value for value, skipped in zip(values, flags["skipped"], strict=True) if not skipped] or values
        means = {name: float(np.mean([value[name] for value in counted])) for name in counted[0]}
        elapsed = time.perf_counter() - self._window_begin
        wait = self._clock.take().get(WAIT, 0.0)
        self._waited, self._trained, self._frames = self._waited + wait, self._trained + elapsed, self._frames + frames
        measured = {
            "losses": means,
            "learning_rate": rate,
            "step_ms": 1e3 * elapsed / len(values),
            "steps_per_second": len(values) / elapsed,
            "frames_per_second": frames / elapsed,
            "data_wait": min(1.0, wait / elapsed),
            "padding": 1.0 - frames / self._padded,
            "exchange": min(1.0, waited / elapsed),
        }
        self._results, self._padded, self._window_begin = [], 0, time.perf_counter()
        return measured, flags

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens in the block (validation, saving) is not step time."""
        begin = time.perf_counter()
        yield
        passed = time.perf_counter() - begin
        self._window_begin += passed
        self._step_begin += passed

    def summary(self) -> dict[str, Any]:
        """The numbers of `Summary`; the first step of each shape is its compilation and does not count."""
        steady = [times for times in self._times.values() if times.count]
        count = max(1, sum(times.count for times in steady))
        mean = sum(times.count * times.mean for times in steady) / count
        squares = sum(times.squares + times.count * (times.mean - mean) ** 2 for times in steady)
        relative = sum(times.squares / times.mean**2 for times in steady)  # each step against its own shape's mean
        return {
            "seconds": self.seconds,
            "mean_step_ms": 1e3 * mean,
            "deviation_step_ms": 1e3 * (squares / count) ** 0.5,
            "variation": (relative / count) ** 0.5,
            "frames_per_second": self._frames / self._trained if self._trained else 0.0,
            "data_wait": min(1.0, self._waited / self._trained) if self._trained else 0.0,
            "shapes": len(self._times),
        }


def _read(results: list[dict[str, tf.Tensor]]) -> list[dict[str, float]]:
    """The scalars of some steps, brought to the host in one copy."""
    if not results:
        return []
    scalars = [value for result in results for value in result.values()]
    with tf.device(plain_name(scalars[0].backing_device)):
        values = iter(tf.stack(scalars).numpy().tolist())  # host sync
    return [{name: next(values) for name in result} for result in results]
