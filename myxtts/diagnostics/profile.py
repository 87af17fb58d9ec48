"""Measures the real pipeline: each stage by itself, and all of them overlapped.

In: a `Workload`: a source, features, a step and a device plan; the real ones, or stand-ins with known times.
Out: `Profile`: stage times, the overlapped run with its spans, the ways to use the devices, memory, what NVML tells.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import tensorflow as tf

from myxtts.batch import StepInput
from myxtts.devices import DevicePlan, memory_peaks, move, process_peak_mb, wait_for
from myxtts.diagnostics.advice import Measured, Way
from myxtts.diagnostics.gpu_monitor import CardReadings, GpuMonitor, find_link
from myxtts.diagnostics.stage_model import STAGES, Arrangement, StageTimes, predict
from myxtts.pipeline.clock import Span, StageClock
from myxtts.pipeline.feed import Features, Feed, FeedOptions, Source
from myxtts.pipeline.stages import Stage

Shape = tuple[int, ...]
FEWEST = 8  # batches of a pass
CALM = 4  # batches without a new shape that end the warm-up
ROUNDS = 3  # the passes take turns so often, because a machine drifts
LOAD_WORTH = 0.5  # of a step; slower loading is tried with more workers
MOST_WORKERS = 16
LOAD_BATCHES = 24  # a try of loading alone takes so many batches, or so many seconds
LOAD_SECONDS = 4.0


def pass_batches(steps: int) -> int:
    """How many batches a pass counts, of so many steps in all."""
    return max(FEWEST, -(-steps // ROUNDS))


@dataclass
class Workload:
    """What is profiled."""

    source: Source
    featurizer: Features
    step: Callable[[StepInput], tf.Tensor]  # begins one training step; its result can be waited for
    devices: DevicePlan
    arrangement: Arrangement
    traces: Callable[[], int]
    time_parts: Callable[[StepInput], dict[str, float]] = lambda batch: {}  # seconds of forward, backward, update
    gradient_bytes: int = 0  # that an all-reduce adds
    can_share: bool = True  # both devices could train, each on its part of a batch
    spare_gpu: bool = False  # there is a second GPU that the plan does not use
    transfer: Callable[[tf.Tensor, str], tf.Tensor] = move
    waited: list[tf.Tensor] = field(default_factory=list)  # seconds of each step from its gradient to the sum of all


@dataclass(frozen=True)
class Pass:
    """One run over the batches."""

    mode: str
    spans: tuple[Span, ...]
    levels: tuple[tuple[float, int], ...]
    shapes: tuple[Shape, ...]  # of each batch's mel
    counted: int  # number of the first batch that counts: before it, buffers fill
    cpu_seconds: float  # of the whole process, a batch
    waited: tuple[float, ...] = ()  # from a gradient to the sum of all, for the batches that count; in a cluster

    def seconds(self, stage: str) -> np.ndarray:
        """Of one stage, by batch, for the batches that count."""
        return np.array([s.seconds for s in self._of(stage)])

    def _of(self, stage: str) -> list[Span]:
        return sorted(s for s in self.spans if s.stage == stage and s.number >= self.counted)

    @property
    def intervals(self) -> np.ndarray:
        """Seconds from the end of a step to the end of the next."""
        ends = [span.end for span in sorted(s for s in self.spans if s.stage == Stage.TRAIN)]
        return np.diff(ends)[max(0, self.counted - self.first - 1) :]

    def by_shape(self) -> dict[Shape, list[float]]:
        """Those seconds by batch shape, without the first step of each, which may have been compiled for this pass."""
        intervals = self.intervals
        offset = len(self.shapes) - len(intervals)
        found: dict[Shape, list[float]] = {}
        for place, seconds in enumerate(intervals.tolist(), offset):
            if self.shapes[place] in self.shapes[:place]:
                found.setdefault(self.shapes[place], []).append(seconds)
        return found

    @property
    def first(self) -> int:
        return min((s.number for s in self.spans), default=0)


@dataclass(frozen=True)
class Profile:
    """Everything that was measured."""

    measured: Measured
    exact: tuple[Pass, ...]
    overlapped: tuple[Pass, ...]
    warm_up_seconds: float
    compile_seconds: float
    shapes: int
    traces: int
    batch_bytes: int
    memory_mb: Mapping[str, float | None]  # peak by device name; "host" is the process
    cards: Mapping[int, CardReadings]
    cards_reason: str
    device_names: tuple[str, str]  # that prepares, that trains
    virtual: int
    link: str = ""  # between the two cards
    step_parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def two_devices(self) -> bool:
        return self.device_names[0] != self.device_names[1]

    @property
    def gap_seconds(self) -> float:
        """Time between one step and the next in which the training device had nothing to do.

        A step is begun before it is awaited, so a span tells less than the step where a GPU works by itself; by itself
        it takes at least what it took alone.
        """
        alone = self.measured.times.mean(Stage.TRAIN)
        waits = [
            one.intervals - np.maximum(one.seconds(Stage.TRAIN)[-len(one.intervals) :], alone)
            for one in self.overlapped
        ]
        return float(np.maximum(np.concatenate(waits), 0).mean())


class Profiler:
    """Runs the passes of one workload."""

    def __init__(self, workload: Workload, steps: int, gpus: tuple[int, ...] = ()):
        self._work, self._steps, self._gpus = workload, steps, gpus
        self._lead = workload.arrangement.slots + 2

    def run(
        self,
        ways: bool = True,
        step_parts: bool = False,
        show: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> Profile:
        """Warms up, measures in turns, tries more workers where loading is slow, and compares the ways."""
        plan, mode = self._work.devices, self._work.arrangement.mode
        show("warm-up", 0, 1)
        warm, compiling = self._warm_up()
        each = pass_batches(self._steps)
        exact, overlapped = [], []
        with GpuMonitor(self._gpus) as monitor:
            for turn in range(ROUNDS):
                show("measuring", turn, ROUNDS)
                exact.append(self.measure_pass("sequential", plan, each, exact=True))
                overlapped.append(self.measure_pass(mode, plan, each))
        times = StageTimes(*(np.concatenate([one.seconds(stage) for one in exact]) for stage in STAGES))
        intervals = np.concatenate([one.intervals for one in overlapped])
        show("loading", 0, 1)
        load_cpu, load_seconds = self._try_loading(times, float(intervals.mean()))
        measured = Measured(
            times=times,
            arrangement=self._work.arrangement,
            step_seconds=float(intervals.mean()),
            variation=_variation(overlapped),
            load_cpu=load_cpu,
            cores=os.cpu_count() or 1,
            cpu_seconds=float(np.mean([one.cpu_seconds for one in overlapped])),
            load_seconds=load_seconds,
            spare_gpu=self._work.spare_gpu,
        )
        if ways:
            measured = replace(measured, ways=self._compare_ways(measured, overlapped, show))
        return Profile(
            measured=measured,
            exact=tuple(exact),
            overlapped=tuple(overlapped),
            warm_up_seconds=warm,
            compile_seconds=compiling,
            shapes=len({shape for one in overlapped for shape in one.shapes}),
            traces=self._work.traces(),
            batch_bytes=self._bytes,
            memory_mb={**memory_peaks(plan), "host": process_peak_mb()},
            cards=monitor.cards,
            cards_reason=monitor.reason,
            device_names=(plan.data_device, plan.model_device),
            virtual=plan.virtual,
            step_parts=self._time_parts(each) if step_parts else {},
            link=find_link(*self._gpus) if len(self._gpus) == 2 else "",
        )

    # Passes

    def _warm_up(self) -> tuple[float, float]:
        """Runs every shape twice; returns all seconds, and those of the first time, less the second: compiling."""
        begin = time.perf_counter()
        most = pass_batches(self._steps) + self._lead  # no pass goes further
        one = self.measure_pass("sequential", self._work.devices, most, exact=True, until_calm=True)
        first: dict[Shape, float] = {}
        later: dict[Shape, float] = {}
        for shape, pre, train in zip(one.shapes, one.seconds(Stage.PREPROCESS), one.seconds(Stage.TRAIN), strict=True):
            seconds = float(pre + train)
            if shape in first:
                later[shape] = min(later.get(shape, seconds), seconds)
            else:
                first[shape] = seconds
        compiling = sum(seconds - later.get(shape, 0.0) for shape, seconds in first.items())
        return time.perf_counter() - begin, compiling

    def measure_pass(
        self, mode: str, plan: DevicePlan, batches: int, exact: bool = False, until_calm: bool = False
    ) -> Pass:
        """One pass over so many batches; `exact` waits for the device after every stage."""
        lead = 0 if exact else self._lead
        total = batches + lead
        clock = StageClock(keep_spans=True)
        settings = self._work.arrangement
        source = self._work.source.loading(1, 0) if exact else self._work.source
        plan = replace(plan, pipeline=mode, data_device=plan.model_device if mode == "buffered" else plan.data_device)
        shapes: list[Shape] = []
        self._work.waited.clear()
        computed, result = 0.0, None  # overlapped, a GPU may be one step behind: it always has the next one to do
        with Feed(
            source,
            self._work.featurizer,
            plan,
            clock,
            FeedOptions(most=settings.slots, slots=settings.slots, exact=exact, transfer=self._work.transfer),
        ) as feed:
            for number, batch in zip(range(total), feed, strict=False):
                if number == lead:
                    computed = time.process_time()
                with clock.time(Stage.TRAIN, number), tf.device(plan.model_device):
                    previous, result = result, self._work.step(batch)
                    wait_for(result if exact or number == total - 1 or previous is None else previous)
                shapes.append(batch.mel_shape)
                self._bytes = _count_bytes(batch)
                if until_calm and set(shapes[-CALM:]) <= set(shapes[:-CALM]):
                    break
            cpu = (time.process_time() - computed) / max(1, len(shapes) - lead)
        spans = tuple(span for span in clock.spans if span.number < len(shapes))
        waited = tuple(float(seconds) for seconds in self._work.waited[lead:])
        return Pass(mode, spans, tuple(clock.levels), tuple(shapes), lead, cpu, waited)

    def _time_parts(self, batches: int) -> dict[str, float]:
        """Means over some batches of what a step consists of."""
        plan = replace(self._work.devices.alone(), pipeline="sequential")
        found: list[dict[str, float]] = []
        options = FeedOptions(transfer=self._work.transfer)
        with Feed(self._work.source, self._work.featurizer, plan, StageClock(), options) as feed:
            for _, batch in zip(range(batches), feed, strict=False):
                with tf.device(plan.model_device):
                    found.append(self._work.time_parts(batch))
        steady = found[len(found) // 3 :]  # the first ones are compiled
        return {part: float(np.mean([one[part] for one in steady])) for part in steady[0]}

    def _try_loading(self, times: StageTimes, step: float) -> tuple[float, dict[int, float]]:
        """The share of loading that computes, and seconds a batch by number of workers while nothing else runs."""
        workers = self._work.arrangement.workers
        seconds, cpu = self._load_alone(1, times.mean(Stage.LOAD))
        found = {1: seconds}
        if workers > 1:
            found[workers] = self._load_alone(workers, times.mean(Stage.LOAD))[0]
        tried = workers
        while found[tried] > LOAD_WORTH * step and 2 * tried <= MOST_WORKERS:
            tried *= 2
            found[tried] = self._load_alone(tried, times.mean(Stage.LOAD))[0]
            if found[tried] > 0.95 * found[tried // 2]:
                break
        return cpu, found

    def _load_alone(self, workers: int, alone: float) -> tuple[float, float]:
        """Seconds a batch in the long run, and the share of a worker's time in which it computes."""
        count = int(min(LOAD_BATCHES, max(4 * workers, LOAD_SECONDS * workers / max(alone, 1e-6))))
        lead = workers
        batches = iter(self._work.source.loading(workers, max(1, workers)).batches(0, 0, True))
        for _ in range(lead):
            next(batches)
        begin, computed = time.perf_counter(), time.process_time()
        for _ in range(count):
            next(batches)
        seconds, computed = time.perf_counter() - begin, time.process_time() - computed
        return seconds / count, min(1.0, computed / max(1e-9, seconds))

    def _compare_ways(
        self, measured: Measured, usual: Sequence[Pass], show: Callable[[str, int, int], None]
    ) -> dict[str, Way]:
        """Each way by running it over the same batches where the devices exist, else by the stage model."""
        now = measured.arrangement.mode
        ways = {now: Way(measured.step_seconds, True)}
        two, many = self._work.devices.two_devices, self._work.devices.shares_batches
        for place, name in enumerate(("sequential", "buffered", "split", "parallel")):
            show("comparing", place, 4)
            if many or name == now or (name == "parallel" and not self._work.can_share):
                continue
            if name in ("split", "parallel") and not two:
                other = predict(measured.times, replace(measured.arrangement, mode=name))
                ways[name] = Way(measured.step_seconds * other / predict(measured.times, measured.arrangement), False)
            else:
                done = self.measure_pass(name, self._work.devices, pass_batches(self._steps))
                ways[name] = Way(measured.step_seconds * _ratio(done, usual), True)
        return ways


def _count_bytes(batch: StepInput) -> int:
    """What a transfer moves."""
    parts = [part for shard in batch.shards for part in (shard.floats, shard.labels)]
    return sum(int(np.prod(part.shape)) * part.dtype.size for part in parts)


def _ratio(done: Pass, usual: Sequence[Pass]) -> float:
    """Seconds of a step against those in the usual passes, on the shapes that both have, as frequent as there.

    One standard error is added: better to promise too little.
    """
    theirs, ours = done.by_shape(), _intervals_by_shape(usual)
    both = [shape for shape in theirs if shape in ours]
    if not both:  # no shape comes twice
        return float(done.intervals.mean() / np.concatenate([one.intervals for one in usual]).mean())
    mean = {shape: float(np.mean(ours[shape])) for shape in both}
    relative = np.array([seconds / mean[shape] for shape in both for seconds in theirs[shape]])
    weights = np.array([len(ours[shape]) * mean[shape] / len(theirs[shape]) for shape in both for _ in theirs[shape]])
    ratio = float(np.average(relative, weights=weights))
    return ratio + float(relative.std()) / len(relative) ** 0.5


def _variation(passes: list[Pass]) -> float:
    """Of the steps, each against the mean of its own shape: a longer batch is not a slower machine."""
    relative = [t / np.mean(ts) for ts in _intervals_by_shape(passes).values() for t in ts]
    return float(np.std(relative)) if relative else 0.0


def _intervals_by_shape(passes: Sequence[Pass]) -> dict[Shape, list[float]]:
    found: dict[Shape, list[float]] = {}
    for one in passes:
        for shape, seconds in zip(one.shapes[-len(one.intervals) :], one.intervals.tolist(), strict=True):
            found.setdefault(shape, []).append(seconds)
    return found
