"""Runs side by side: how they compare, and how they scale with the batch.

In: run folders, their `metrics.jsonl`, or what `train` printed.
Out: `Run`s with averages, medians and intervals; comparisons in words; rows of a table.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.diagnostics.printed_log import decode, parse_log
from myxtts.errors import UsageError

WARM_LINES = 2  # log lines at the beginning that hold tracing; of a short run a third of its lines
FEWEST_LINES = 5  # after these; fewer say nothing about noise
MORE_LINES = "log more often, as with `training.log_every=10`, or train longer"
DRAWS, SURE = 2000, 95  # of the bootstrap; percent
SAME = 0.01  # a difference below this is none
WAITED, VARIED, PADDED = 0.1, 0.3, 0.25  # shares above which a run is advised
TINY = 1e-9
NEEDED: dict[str, dict[str, float]] = {  # numbers that a line must have, and the least that they can be
    "train": {
        "step": 1,
        "seconds": 0,
        "step_ms": TINY,
        "frames_per_second": 0,
        "data_wait": 0,
        "buffer_fill": 0,
        "padding": 0,
    },
    "resumed": {"step": 0},
    "run": {"step": 0},
    "summary": {"steps": 0, "mean_step_ms": 0, "variation": 0},
}
PAYS = 0.05  # throughput that the next larger batch must add


@dataclass(frozen=True)
class Estimate:
    """A median and where it lies with 95 % certainty."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Report:
    """The performance report of a run, or of what followed when it was resumed."""

    steps: int  # that it covers
    mean_step_ms: float
    variation: float


@dataclass(frozen=True)
class Run:
    """The log of one run, without the lines that a resumed run did again."""

    name: str
    about: dict[str, Any]  # settings, as the run wrote them down
    lines: tuple[dict[str, Any], ...]  # log lines after warm-up
    reports: tuple[Report, ...] = ()  # those that cover most of the run, or none

    @property
    def tells_noise(self) -> bool:
        """Whether there are enough log lines to tell a difference from noise."""
        return len(self.lines) >= FEWEST_LINES

    def values(self, key: str) -> np.ndarray:
        return np.array([line[key] for line in self.lines if line.get(key) is not None], float)

    def estimate(self, key: str) -> Estimate:
        return estimate(self.values(key))

    @property
    def average_step_ms(self) -> float:
        """The mean of single steps without compilation where it was reported, else the median of the log lines."""
        if self.reports:
            return _average([report.mean_step_ms for report in self.reports], self.reports)
        return float(np.median(self.values("step_ms")))

    @cached_property
    def variation(self) -> float | None:
        """Deviation / mean of the step times: of single steps where it was reported, else of enough log lines."""
        if self.reports:
            return math.sqrt(_average([report.variation**2 for report in self.reports], self.reports))
        if not self.tells_noise:
            return None
        steps = self.values("step_ms")
        return float(steps.std() / steps.mean())

    @property
    def gpu_utilisation(self) -> dict[str, float]:
        """Mean share by the GPU's id; empty where it was not sampled."""
        sampled: dict[str, list[float]] = {}
        for line in self.lines:
            for card, share in (line.get("gpu_utilisation") or {}).items():
                sampled.setdefault(card, []).append(share)
        return {card: float(np.mean(shares)) for card, shares in sampled.items()}

    @property
    def busy(self) -> float:
        """The share of the time in which the training device did not wait for data."""
        return 1 - float(self.values("data_wait").mean())

    @property
    def memory_mb(self) -> float | None:
        found = self.values("memory_mb")
        return float(found.max()) if len(found) else None

    @property
    def seconds(self) -> float:
        return float(self.lines[-1]["seconds"])

    @property
    def steps(self) -> int:
        return int(self.lines[-1]["step"])

    @property
    def step_clips(self) -> int | None:
        return self.about.get("step_clips")


def _average(values: Sequence[float], reports: Sequence[Report]) -> float:
    return float(np.average(values, weights=[report.steps for report in reports]))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's log; a resumed run's earlier tries at the same steps are left out.

    Raises:
        UsageError: there is no such log, or it holds something else.
    """
    file = path / "metrics.jsonl" if path.is_dir() else path
    try:
        text = decode(file.read_bytes())
    except FileNotFoundError:
        if not path.exists():
            raise UsageError(f"there is no {path}; name a folder that `myxtts train` wrote, or its log") from None
        raise UsageError(f"{path} holds no metrics.jsonl; name a folder that `myxtts train` wrote") from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a run's folder, or its log") from None
    is_json = path.is_dir() or text.lstrip().startswith("{")
    found = _parse_json_lines(text, file) if is_json else [(str(file), line) for line in parse_log(text, str(file))]
    lines: list[dict[str, Any]] = []
    for place, line in found:
        if wrong := _find_wrong(line):
            raise UsageError(f"{place} has {wrong} {line.get(wrong)!r:.40}; is this the log of a run?")
        if line["kind"] == "resumed":
            lines = [before for before in lines if before.get("step", before.get("steps", 0)) <= line["step"]]
        lines.append(line)
    return lines


def _parse_json_lines(text: str, file: Path) -> list[tuple[str, dict[str, Any]]]:
    """The lines of a `metrics.jsonl`, each with its place for errors."""
    texts, lines = text.splitlines(), []
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError, OverflowError):
            if number == len(texts):
                break  # a killed run may leave half a line
            raise UsageError(f"{file}: line {number} is no JSON; is this the metrics.jsonl of a run?") from None
        if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
            raise UsageError(f"{file}: line {number} is no log line of a run")
        lines.append((f"{file}: line {number}", line))
    return lines


def _find_wrong(line: dict[str, Any]) -> str:
    """The first key of a line whose value cannot be; empty where all can."""
    for key, least in NEEDED.get(line["kind"], {}).items():
        if not _is_number(line.get(key), least):
            return key
    if line.get("memory_mb") is not None and not _is_number(line["memory_mb"], 0):
        return "memory_mb"
    cards = line.get("gpu_utilisation") or {}
    usable = isinstance(cards, dict) and all(_is_number(share, 0) for share in cards.values())
    return "" if usable else "gpu_utilisation"


def _is_number(value: Any, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= least


def read_run(path: Path) -> Run:
    """A run from its folder or its log.

    Raises:
        UsageError: there is no such log, or it holds no log line of a run.
    """
    lines = read_lines(path)
    about: dict[str, Any] = next((line for line in reversed(lines) if line["kind"] == "run"), {})
    trained = [line for line in lines if line["kind"] == "train"]
    if not trained:
        raise UsageError(
            f"{path}: found 0 log lines, needed is one; let it train for as many steps as `training.log_every`"
        )
    steady = trained[min(WARM_LINES, (len(trained) + 1) // 3) :]
    file = path.resolve()
    name = file.parent.name if file.name == "metrics.jsonl" else file.name
    return Run(" ".join(name.split()), about, tuple(steady), _reports(lines, trained[-1]["step"]))


def _reports(lines: Sequence[dict[str, Any]], steps: int) -> tuple[Report, ...]:
    """The last report after each start of the run; none where they cover less than half of the steps in `lines`."""
    found: dict[int, Report] = {}
    begun = 0
    steps -= next((line["step"] for line in lines if line["kind"] == "run"), 0)  # a resumed run may have its own log
    for line in lines:
        if line["kind"] == "run":
            begun = line["step"]
        elif line["kind"] == "summary" and line["steps"] > begun and line["mean_step_ms"] > 0:
            found[begun] = Report(line["steps"] - begun, line["mean_step_ms"], line["variation"])
    return tuple(found.values()) if 2 * sum(report.steps for report in found.values()) >= steps else ()


def run_advice(run: Run) -> list[str]:
    """What the log of a run gives reason to say."""
    found = []
    if (waited := 1 - run.busy) > WAITED:
        found.append(f"Training waited for data {waited:.0%} of the time: `myxtts profile` says for which stage.")
    if run.variation is not None and run.variation > VARIED:
        more = "close other programs, or try a larger `data.pipeline_buffer_size`"
        found.append(f"Step times vary by {run.variation:.0%}: {more}.")
    if (padding := float(run.values("padding").mean())) > PADDED:
        found.append(f"{padding:.0%} of the frames are padding: more clips, or a smaller `data.batch_size`, give less.")
    return found


# Noise


def estimate(values: np.ndarray) -> Estimate:
    """The median with its interval, by drawing blocks: neighbouring lines of a log are alike."""
    if not len(values):
        return Estimate(float("nan"), float("nan"), float("nan"))
    medians = _draw_medians(values, np.random.default_rng(0))
    low, high = np.percentile(medians, [(100 - SURE) / 2, (100 + SURE) / 2])
    return Estimate(float(np.median(values)), float(low), float(high))


def _draw_medians(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    count = len(values)
    block = max(1, round(count ** (1 / 3)))
    starts = rng.integers(0, count - block + 1, (DRAWS, -(-count // block)))
    places = (starts[:, :, None] + np.arange(block)).reshape(DRAWS, -1)[:, :count]
    return np.median(values[places], axis=1)


@dataclass(frozen=True)
class Comparison:
    """One measure of a run against the first run."""

    ratio: float
    low: float | None  # None with too few log lines to tell a difference from noise
    high: float | None

    @property
    def differs(self) -> bool | None:
        """None where that cannot be told."""
        if self.low is None or self.high is None:
            return None
        return (self.low > 1 + SAME or self.high < 1 - SAME) and abs(self.ratio - 1) > SAME

    def words(self, more: str, less: str) -> str:
        """As "12 % slower (9 to 15 %)", or that there is nothing to tell."""
        found = f"{abs(self.ratio - 1):.0%} {more if self.ratio > 1 else less}"
        if self.low is None or self.high is None:
            return f"{found}, but too few log lines to tell it from noise"
        if not self.differs:
            return "no difference beyond noise"
        ends = sorted(abs(end - 1) for end in (self.low, self.high))
        return f"{found} ({ends[0]:.0%} to {ends[1]:.0%})"


def compare_runs(one: Run, other: Run, key: str) -> Comparison:
    """A measure of the second run against the first, by their log lines where these are enough.

    Else step times differ where they are apart by more than single steps deviate from the mean, which is far more than
    a mean does; a smaller difference and other measures are left open.
    """
    if one.tells_noise and other.tells_noise:
        return compare(one.values(key), other.values(key))
    if key != "step_ms":
        first, second = (float(np.median(run.values(key))) for run in (one, other))
        return Comparison(second / first if first else 1.0, None, None)
    ratio, (v, w) = other.average_step_ms / one.average_step_ms, (run.variation for run in (one, other))
    if v is not None and w is not None and max(v, w) < 1:
        found = Comparison(ratio, ratio * (1 - w) / (1 + v), ratio * (1 + w) / (1 - v))
        if found.differs:
            return found
    return Comparison(ratio, None, None)


def compare(one: np.ndarray, other: np.ndarray) -> Comparison:
    """The ratio of the second median to the first, with its interval."""
    rng = np.random.default_rng(0)
    ratios = _draw_medians(other, rng) / _draw_medians(one, rng)
    low, high = np.percentile(ratios, [(100 - SURE) / 2, (100 + SURE) / 2])
    return Comparison(float(np.median(other) / np.median(one)), float(low), float(high))


# Scaling


@dataclass(frozen=True)
class Size:
    """A run as a point of the curve."""

    name: str
    clips: int  # a step
    average_step_ms: float
    clips_per_second: float
    frames_per_second: float
    efficiency: float  # clips a second for each clip of a step, against the smallest step
    variation: float | None
    gpu_utilisation: dict[str, float]
    memory_mb: float | None
    seconds: float
    tells_noise: bool


def size_rows(runs: Sequence[tuple[str, Run]]) -> list[Size]:
    """The runs by clips a step, the smallest first.

    Raises:
        UsageError: a run does not tell how many clips its steps take.
    """
    for name, run in runs:
        if not isinstance(run.step_clips, int) or run.step_clips < 1:
            raise UsageError(
                f"{name}: its log does not say how many clips a step takes, as that of another version; train anew"
            )
    rows: list[Size] = []
    for name, run in sorted(runs, key=lambda pair: pair[1].step_clips or 0):
        clips = run.step_clips or 0
        rate = 1e3 * clips / run.average_step_ms
        rows.append(
            Size(
                name=name,
                clips=clips,
                average_step_ms=run.average_step_ms,
                clips_per_second=rate,
                frames_per_second=float(np.median(run.values("frames_per_second"))),
                efficiency=rate / rows[0].clips_per_second / (clips / rows[0].clips) if rows else 1.0,
                variation=run.variation,
                gpu_utilisation=run.gpu_utilisation,
                memory_mb=run.memory_mb,
                seconds=run.seconds,
                tells_noise=run.tells_noise,
            )
        )
    return rows


@dataclass(frozen=True)
class Scaling:
    """Throughput by clips a step: `fixed_ms` of each step do not depend on them."""

    fixed_ms: float
    clip_ms: float
    best: int  # beyond it a larger step does not pay
    off: float  # the largest distance of a step time from that line, as a share of it


def fit_scaling(rows: Sequence[Size]) -> Scaling:
    """A line through the step times, and the size beyond which throughput grows by less than 5 % a doubling."""
    sizes = np.array([row.clips for row in rows], float)
    times = np.array([row.average_step_ms for row in rows])
    if len(set(sizes)) < 2:
        raise UsageError(f"all runs take {sizes[0]:.0f} clips a step; scaling needs at least two sizes")
    clip, fixed = (float(part) for part in np.polyfit(sizes, times, 1))
    if clip < 0:  # neither part can be less than nothing
        clip, fixed = 0.0, float(times.mean())
    elif fixed < 0:
        clip, fixed = float(sizes @ times / (sizes @ sizes)), 0.0
    off = float(np.max(np.abs(fixed + clip * sizes - times) / times))
    best = next(row for place, row in enumerate(rows) if not any(_pays(row, larger) for larger in rows[place + 1 :]))
    return Scaling(fixed, clip, best.clips, off)


def _pays(row: Size, larger: Size) -> bool:
    doublings = float(np.log2(larger.clips / row.clips))
    return doublings > 0 and larger.clips_per_second / row.clips_per_second - 1 >= PAYS * doublings
