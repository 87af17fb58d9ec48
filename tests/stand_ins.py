"""A pipeline whose stages take known times: sleeping, or keeping a core busy."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import tensorflow as tf

from myxtts.batch import RawBatch, SpeechLayout, StepInput
from myxtts.data.dataset import in_threads, one_by_one
from myxtts.devices import DevicePlan, move
from myxtts.diagnostics.profile import Workload
from myxtts.diagnostics.stage_model import STAGES, Arrangement
from myxtts.pipeline.clock import Span

Milliseconds = Callable[[int], float]  # of the batch with that number
BLOCK = bytes(1 << 16)


def wait(milliseconds: float, spins: bool) -> None:
    """Lets time pass; spinning takes as much of a core and lets other threads run."""
    if not spins:
        time.sleep(milliseconds / 1e3)
        return
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        hashlib.sha256(BLOCK)


@dataclass(frozen=True)
class Stages:
    """Milliseconds of each stage, constant or by batch, and which of them spin; `taken` is what they really took."""

    load: float | Milliseconds = 1.0
    preprocess: float | Milliseconds = 1.0
    transfer: float | Milliseconds = 0.0
    train: float | Milliseconds = 1.0
    spins: frozenset[str] = field(default_factory=frozenset)
    taken: list[tuple[str, float, float]] = field(default_factory=list)  # stage, begin, end in seconds

    def pass_time(self, stage: str, number: int, share: float = 1.0) -> None:
        value = getattr(self, stage)
        begin = time.perf_counter()
        wait(share * (value(number) if callable(value) else value), stage in self.spins)
        self.taken.append((stage, begin, time.perf_counter()))

    def seconds_within(self, span: Span) -> float:
        """What the span's stage took in it, by its own watch."""
        mine = ((begin, end) for stage, begin, end in self.taken if stage == span.stage)
        return sum(end - begin for begin, end in mine if span.begin <= begin and end <= span.end)


class SlowSource:
    """Batches of a few zeros; loading takes its time in as many threads as it is told."""

    def __init__(self, stages: Stages, workers: int, ahead: int):
        self._stages, self._workers, self._ahead = stages, workers, ahead

    def loading(self, workers: int, ahead: int) -> "SlowSource":
        return SlowSource(self._stages, workers, ahead)

    def names(self, number: int, shuffle: bool) -> list[str]:
        return [f"clip {number}"]

    def batches(self, start: int, epochs: int, shuffle: bool) -> tf.data.Dataset:
        def load(number: np.ndarray) -> np.ndarray:
            self._stages.pass_time("load", int(number))
            return np.int32(number)

        def assemble(number: tf.Tensor) -> RawBatch:
            number = tf.numpy_function(load, [number], tf.int32)
            spans = tf.fill([2, 5], tf.cast(number, tf.int64))
            labels = tf.ones([2, 4 + 2 + 2], tf.int64)
            return RawBatch(tf.zeros([2, 8], tf.int16), spans, labels, labels[:, :4])

        numbers = tf.data.Dataset.range(start, tf.int64.max)
        if not self._ahead:
            return numbers.map(assemble).with_options(one_by_one())
        batches = numbers.map(assemble, num_parallel_calls=self._workers, deterministic=True)
        return batches.prefetch(self._ahead).with_options(in_threads(self._workers))


class SlowFeatures:
    layout, traces = SpeechLayout(1, 1, False), 1

    def __init__(self, stages: Stages):
        self._stages = stages

    def __call__(self, audio: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
        self._stages.pass_time("preprocess", int(spans[0, 2]))
        return tf.constant(int(spans[0, 2]), tf.float32, [2, 4])  # carries the number of the batch


def number_of(floats: tf.Tensor) -> int:
    return int(floats.numpy().flat[0])


def make_workload(stages: Stages, arrangement: Arrangement, plan: DevicePlan) -> Workload:
    """The stand-ins on two devices."""

    def transfer(floats: tf.Tensor, device: str) -> tf.Tensor:
        if not floats.backing_device.endswith(device.strip("/")):  # on one device there is nothing to copy
            stages.pass_time("transfer", number_of(floats), floats.shape[0] / 2)
        return move(floats, device)

    def step(batch: StepInput) -> tf.Tensor:
        floats = batch.shards[0].floats
        stages.pass_time("train", number_of(floats), 1 / len(batch.shards))
        return floats

    return Workload(
        source=SlowSource(stages, arrangement.workers, arrangement.ahead),
        featurizer=SlowFeatures(stages),
        step=step,
        devices=replace(plan, pipeline=arrangement.mode),
        arrangement=arrangement,
        traces=lambda: 1,
        transfer=transfer,
    )


__all__ = ["STAGES", "Arrangement", "Stages", "make_workload", "wait"]
