"""What a pipeline would do: stage times in, step times out, without running anything.

In: seconds of each stage for each batch, and how the stages are arranged.
Out: when each training step ends.
"""

from dataclasses import dataclass, replace

import numpy as np

from myxtts.pipeline.stages import Stage

STAGES = tuple(Stage)


@dataclass(frozen=True)
class StageTimes:
    """Seconds of each stage for each batch, float [batches]; `load` is the work of one worker."""

    load: np.ndarray
    preprocess: np.ndarray
    transfer: np.ndarray
    train: np.ndarray

    def __getitem__(self, stage: str) -> np.ndarray:
        return getattr(self, stage)

    def mean(self, stage: str) -> float:
        return float(np.mean(self[stage]))

    @property
    def total(self) -> float:
        """Seconds of a batch when nothing overlaps."""
        return sum(self.mean(stage) for stage in STAGES)

    def scaled(self, **factors: float) -> "StageTimes":
        """The same with some stages faster or slower."""
        return replace(self, **{stage: self[stage] * factor for stage, factor in factors.items()})


@dataclass(frozen=True)
class Arrangement:
    """How the stages work together."""

    workers: int = 1  # threads that load
    ahead: int = 50  # batches that the host may hold ready
    slots: int = 3  # batches that may wait before training
    mode: str = "split"  # sequential, buffered, split or parallel


@dataclass(frozen=True)
class Flow:
    """When what happened to each batch, float [batches]; seconds from the start."""

    got: np.ndarray
    ended: np.ndarray

    @property
    def step_seconds(self) -> float:
        """The time of a step in the long run: the first third fills the buffers and does not count."""
        skipped = len(self.ended) // 3
        return float((self.ended[-1] - self.ended[skipped]) / max(1, len(self.ended) - 1 - skipped))


def simulate(times: StageTimes, arrangement: Arrangement, batches: int = 0) -> Flow:
    """Lets batches flow through the stages; the measured times are repeated until there are enough of them.

    Split: loading, preparing and training each wait only for full or empty buffers. Buffered: one device prepares and
    trains, one after the other. Sequential: a batch is prepared when the one before has been trained on. Parallel: two
    devices prepare every other batch each, and train on half of every batch.
    """
    count = max(batches or 3 * len(times.train), 3)
    load, prepare, transfer, train = (np.resize(times[stage], count).tolist() for stage in STAGES)
    workers, ahead, slots = max(1, arrangement.workers), max(1, arrangement.ahead), max(1, arrangement.slots)
    mode = arrangement.mode
    if mode == "parallel":
        train = [(p + t) / 2 for p, t in zip(prepare, train, strict=True)]
    moved, taken, put, got, ended = ([0.0] * count for _ in range(5))

    def at(series: list[float], i: int) -> float:
        return series[i] if i >= 0 else 0.0

    for i in range(count):
        loaded = at(moved, i - workers) + load[i]  # a worker begins when the batch it had before is in the queue
        moved[i] = max(loaded, at(moved, i - 1), at(taken, i - ahead))
        if mode == "buffered":  # the same device does both
            taken[i] = max(moved[i], at(taken, i - 1), at(got, i - slots))
            got[i] = max(taken[i], at(ended, i - 1))
            ended[i] = got[i] + prepare[i] + train[i]
            continue
        taken[i] = max(moved[i], at(ended, i - 1) if mode == "sequential" else at(put, i - 1))
        put[i] = max(taken[i] + prepare[i] + transfer[i], at(got, i - slots))
        got[i] = max(put[i], at(ended, i - 1))
        ended[i] = got[i] + train[i]
    return Flow(np.array(got), np.array(ended))


def predict(times: StageTimes, arrangement: Arrangement) -> float:
    """Seconds of a step in the long run."""
    return simulate(times, arrangement, max(300, 3 * len(times.train))).step_seconds
