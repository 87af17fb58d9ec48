"""From measured stage times to what limits a run, and what to set.

In: `Measured`.
Out: the bottleneck, the findings with their evidence, and recommendations with the effect that the stage model expects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from myxtts.diagnostics.stage_model import STAGES, Arrangement, StageTimes, predict
from myxtts.pipeline.stages import Stage

LOAD_SHARE, TRANSFER_SHARE, TRAIN_SHARE, VARIATION = 0.20, 0.15, 0.50, 0.30  # thresholds of the findings
NEAR = 0.85  # stages within this of the slowest are as slow as it
LOST = 1.08  # a pipeline this much slower than its slowest stage loses time between the stages
WORTH = 0.03  # gains below this are noise
WAY_WORTH = 0.07  # between two ways that were measured one after the other, while the machine drifts
CPU_BOUND = 0.5  # share of loading that is computing, above which the disk is not what it waits for
RUNS = 0.35  # correlation of a batch's time with the one before, above which slow batches come in runs
MOST_SLOTS, MOST_AHEAD = 16, 400
WAYS = ("sequential", "buffered", "split", "parallel")

BEST, IN_USE = "best", "in use; none is better beyond noise"
SECOND_GPU = {"data.data_gpu": 0, "data.model_gpu": 1}
NAMES = {
    "disk": "loading waits for the disk",
    "decode": "loading computes on the host",
    Stage.PREPROCESS: "features on the data device",
    Stage.TRANSFER: "the copy between the devices",
    Stage.TRAIN: "the training step",
    "jitter": "times that vary from batch to batch",
    "buffer": "a buffer that is too small",
    "oscillation": "work that comes in bursts",
    "balanced": "nothing: the stages keep each other busy",
}


Settings = Mapping[str, int | str | bool]  # by configuration key


@dataclass(frozen=True)
class Way:
    """One way to use the devices."""

    step_seconds: float
    measured: bool  # by running it, not by the stage model


@dataclass(frozen=True)
class Measured:
    """What a profile has found."""

    times: StageTimes
    arrangement: Arrangement
    step_seconds: float  # in the overlapped pass
    variation: float  # deviation / mean of those steps, each against the mean of its batch shape
    load_cpu: float  # share of loading in which a core computes, 0 to 1
    cores: int
    cpu_seconds: float = 0.0  # that all cores together compute for a step
    load_seconds: Mapping[int, float] = field(default_factory=dict)  # a batch, by number of workers, by itself
    ways: Mapping[str, Way] = field(default_factory=dict)
    spare_gpu: bool = False  # there is a second one that was not used


@dataclass(frozen=True)
class Finding:
    """Something beyond a threshold."""

    name: str
    evidence: str


@dataclass(frozen=True)
class Recommendation:
    """What to set, why, and what a step would then take."""

    settings: Settings
    why: str
    now_seconds: float
    expected_seconds: float

    @property
    def gain(self) -> float:
        """The share of a step's time that is saved."""
        return 1 - self.expected_seconds / self.now_seconds if self.now_seconds else 0.0


@dataclass(frozen=True)
class Advice:
    """The whole answer."""

    bottleneck: str
    evidence: str
    findings: tuple[Finding, ...]
    recommendations: tuple[Recommendation, ...]
    best_way: str


def advise(measured: Measured) -> Advice:
    """Names what limits the run and what would help, best first."""
    bottleneck, evidence = find_bottleneck(measured)
    ways = [name for name in WAYS if name in measured.ways and measured.ways[name].measured]
    best_way = min(ways, key=lambda name: measured.ways[name].step_seconds, default=measured.arrangement.mode)
    return Advice(
        bottleneck, evidence, tuple(_findings(measured)), tuple(recommend(measured)), _prefer(measured, best_way)
    )


def _prefer(measured: Measured, best: str) -> str:
    """The best way, unless the one in use is as good."""
    now = measured.ways.get(measured.arrangement.mode)
    if now and measured.ways[best].step_seconds > (1 - WAY_WORTH) * now.step_seconds:
        return measured.arrangement.mode
    return best


# What limits it


def capacities(measured: Measured) -> dict[str, float]:
    """Seconds a batch for each part that works by itself: the host, the thread that prepares, the step."""
    times, arrangement = measured.times, measured.arrangement
    return {
        Stage.LOAD: measured.load_seconds.get(arrangement.workers, times.mean(Stage.LOAD) / arrangement.workers),
        "prepare": times.mean(Stage.PREPROCESS) + times.mean(Stage.TRANSFER),
        Stage.TRAIN: times.mean(Stage.TRAIN),
    }


def find_bottleneck(measured: Measured) -> tuple[str, str]:
    """The name of what limits the run, out of `NAMES`, and the numbers that show it."""
    found = capacities(measured)
    slowest = max(found, key=lambda name: found[name])
    if measured.arrangement.mode != "split":  # what does not overlap adds up, but the host reads ahead all the same
        if found[Stage.LOAD] > found["prepare"] + found[Stage.TRAIN]:
            slowest = Stage.LOAD
        else:
            slowest = max((Stage.PREPROCESS, Stage.TRANSFER, Stage.TRAIN), key=measured.times.mean)
        seconds = found[Stage.LOAD] if slowest == Stage.LOAD else measured.times.mean(slowest)
        return _stage_name(slowest, measured), f"{slowest} takes {1e3 * seconds:.1f} ms of a batch"
    lost = measured.step_seconds / found[slowest]
    if lost > LOST and (name := _lost_between(measured, found[slowest])):
        words = f"steps take {1e3 * measured.step_seconds:.1f} ms, {lost:.2f} times the slowest stage"
        return name, f"{words} ({slowest}, {1e3 * found[slowest]:.1f} ms on average)"
    if min(found["prepare"], found[Stage.TRAIN]) >= NEAR * found[slowest] and slowest != Stage.LOAD:
        pair = f"preparing {1e3 * found['prepare']:.1f} ms, training {1e3 * found['train']:.1f} ms"
        return "balanced", pair
    if slowest == "prepare":
        slowest = max((Stage.PREPROCESS, Stage.TRANSFER), key=measured.times.mean)
        return slowest, f"{1e3 * measured.times.mean(slowest):.1f} ms a batch, training {1e3 * found['train']:.1f} ms"
    others = ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in found.items() if name != slowest)
    return _stage_name(slowest, measured), f"{slowest} {1e3 * found[slowest]:.1f} ms a batch, {others}"


def _stage_name(stage: str, measured: Measured) -> str:
    if stage != Stage.LOAD:
        return stage
    return "decode" if measured.load_cpu > CPU_BOUND else "disk"


def _lost_between(measured: Measured, floor: float) -> str:
    """Why steps take longer than every stage does on average; empty when the stage model sees no reason."""
    now = _modelled(measured)
    if now < LOST * floor:
        return ""
    usual = replace(measured.arrangement, slots=max(3, measured.arrangement.slots), ahead=50)
    if usual != measured.arrangement:
        healed = predict(_loaded_by(measured, usual.workers), usual)
        if now - healed > 0.5 * (now - floor):
            return "buffer"
    return "oscillation" if persistence(measured.times) > RUNS else "jitter"


def persistence(times: StageTimes) -> float:
    """How much a batch's time is like the one before it, in the stage that varies most; 0 for pure chance."""
    stage = max(STAGES, key=lambda name: float(times[name].std()))
    centred = times[stage] - times.mean(stage)
    power = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / power if power else 0.0


# What to say about it


def _findings(measured: Measured) -> Iterator[Finding]:
    times = measured.times
    shares = {stage: times.mean(stage) / times.total if times.total else 0.0 for stage in STAGES}
    words = {stage: f"{1e3 * times.mean(stage):.1f} ms, {shares[stage]:.0%} of a batch" for stage in STAGES}
    if shares[Stage.LOAD] > LOAD_SHARE:
        yield Finding("data loading > 20 %", f"{words[Stage.LOAD]} by one worker")
    if shares[Stage.TRANSFER] > TRANSFER_SHARE:
        yield Finding("transfer > 15 %", words[Stage.TRANSFER])
    if shares[Stage.TRAIN] < TRAIN_SHARE:
        yield Finding("training < 50 %", words[Stage.TRAIN])
    if measured.variation > VARIATION:
        yield Finding("variation > 30 %", f"steps vary by {measured.variation:.0%} around the mean of their shape")


def recommend(measured: Measured) -> list[Recommendation]:
    """Changes that the stage model expects to be worth it, the best first."""
    now, settings = measured.step_seconds, measured.arrangement
    model_now = _modelled(measured)
    found: list[Recommendation] = []

    def consider(changed: Mapping[str, int | str], why: str, expected: float, worth: float = WORTH) -> None:
        if expected < (1 - worth) * now:
            found.append(Recommendation(changed, why, now, expected))

    busy = measured.cpu_seconds / measured.cores  # no setting makes the cores compute less
    for other in _changes(measured):
        expected = now * predict(_loaded_by(measured, other.workers), other) / model_now
        consider(*_describe(settings, other), max(expected, busy))
    for name in WAYS:
        if name == settings.mode or name not in measured.ways:
            continue
        way, changed = measured.ways[name], {"data.pipeline": name}
        if way.measured:
            consider(changed, f"{WAY_WORDS[name]} (measured)", way.step_seconds, WAY_WORTH)
        elif measured.spare_gpu:
            why = f"{WAY_WORDS[name]} (by the stage model, the copy between the cards not counted)"
            consider({**SECOND_GPU, **changed}, why, max(way.step_seconds, busy), WAY_WORTH)
    found.sort(key=lambda one: (round(one.expected_seconds / now, 2), len(one.settings)))
    return _first_of_each(found)


WAY_WORDS = {
    "sequential": "do not overlap: one device, one batch at a time",
    "buffered": "do not split: one device prepares and trains",
    "split": "one device prepares, the other trains",
    "parallel": "do not split: both devices train, half of each batch each",
}


def _first_of_each(found: list[Recommendation]) -> list[Recommendation]:
    """Of recommendations that change the same flags only the best."""
    kept: dict[frozenset[str], Recommendation] = {}
    for one in found:
        kept.setdefault(frozenset(one.settings), one)
    best = list(kept.values())
    return [  # more flags that gain no more are left out
        one
        for place, one in enumerate(best)
        if not any(set(other.settings) < set(one.settings) for other in best[:place])
    ]


def _changes(measured: Measured) -> Iterator[Arrangement]:
    """Arrangements worth a thought: one lever moved, or loading and its buffer together."""
    settings = measured.arrangement
    workers = [count for count in measured.load_seconds if count > settings.workers]
    ahead = [size for size in (10, 50, 100, 200, MOST_AHEAD) if size > settings.ahead]
    slots = [count for count in (2, 3, 4, 8, MOST_SLOTS) if count > settings.slots]
    for count in workers:
        yield replace(settings, workers=count)
    for size in ahead:
        yield replace(settings, ahead=size)
    if settings.mode == "split":
        for count in slots:
            yield replace(settings, slots=count)
    for count in workers:
        for size in ahead:
            yield replace(settings, workers=count, ahead=size)


def _describe(now: Arrangement, other: Arrangement) -> tuple[dict[str, int | str], str]:
    changed: dict[str, int | str] = {}
    why = []
    if other.workers != now.workers:
        changed["data.num_workers"] = other.workers
        why.append(f"load with {other.workers} threads instead of {now.workers}")
    if other.ahead != now.ahead:
        changed["data.pipeline_buffer_size"] = other.ahead
        why.append(f"hold {other.ahead} batches ready on the host instead of {now.ahead}")
    if other.slots != now.slots:
        changed["data.prefetch"] = other.slots
        why.append(f"hold {other.slots} batches ready on the device instead of {now.slots}")
    return changed, ", ".join(why)


def _loaded_by(measured: Measured, workers: int) -> StageTimes:
    """The stage times with the work of one of so many workers, as it was measured for that many."""
    alone = measured.times.mean(Stage.LOAD)
    known = measured.load_seconds.get(workers)
    if known is None or not alone:
        return measured.times
    return measured.times.scaled(load=known * workers / alone)


def _modelled(measured: Measured) -> float:
    """Seconds of a step by the stage model, with the settings in use."""
    return predict(_loaded_by(measured, measured.arrangement.workers), measured.arrangement)
