"""Runs side by side: how they compare, and how they scale with the batch.

In: run folders, or their `metrics.jsonl`.
Out: `Run`s with medians and intervals; comparisons in words; rows of a table.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from myxtts.errors import UsageError

WARM_LINES = 2  # log lines at the beginning that hold tracing
FEWEST_LINES = 5  # fewer say nothing about noise
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
}
PAYS = 0.05  # throughput that the next larger batch must add


@dataclass(frozen=True)
class Estimate:
    """A median and where it lies with 95 % certainty."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Run:
    """The log of one run, without the lines that a resumed run did again."""

    name: str
    about: dict[str, Any]  # settings, as the run wrote them down
    lines: tuple[dict[str, Any], ...]  # log lines after warm-up

    def values(self, key: str) -> np.ndarray:
        return np.array([line[key] for line in self.lines if line.get(key) is not None], float)

    def estimate(self, key: str) -> Estimate:
        return estimate(self.values(key))

    @cached_property
    def variation(self) -> float:
        """Deviation / mean of the step times of the log lines."""
        steps = self.values("step_ms")
        return float(steps.std() / steps.mean())

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


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a run's log; a resumed run's earlier tries at the same steps are left out.

    Raises:
        UsageError: there is no such log, or it holds something else.
    """
    file = path / "metrics.jsonl" if path.is_dir() else path
    try:
        texts = file.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        if not path.exists():
            raise UsageError(f"there is no {path}; name a folder that `myxtts train` wrote, or its log") from None
        raise UsageError(f"{path} holds no metrics.jsonl; name a folder that `myxtts train` wrote") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            if number == len(texts):
                break  # a killed run may leave half a line
            raise UsageError(f"{file}: line {number} is no JSON; is this the metrics.jsonl of a run?") from None
        if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
            raise UsageError(f"{file}: line {number} is no log line of a run")
        if wrong := next((key for key, least in NEEDED.get(line["kind"], {}).items() if not _is(line, key, least)), ""):
            raise UsageError(f"{file}: line {number} has {wrong} {line.get(wrong)!r:.40}; is this the log of a run?")
        if line["kind"] == "resumed":
            lines = [before for before in lines if before.get("step", 0) <= line["step"]]
        lines.append(line)
    return lines


def _is(line: dict[str, Any], key: str, least: float) -> bool:
    value = line.get(key)
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= least


def read_run(path: Path) -> Run:
    """A run from its folder or its log."""
    lines = read_lines(path)
    about: dict[str, Any] = next((line for line in reversed(lines) if line["kind"] == "run"), {})
    trained = [line for line in lines if line["kind"] == "train"]
    steady = trained[WARM_LINES:]
    if len(steady) < FEWEST_LINES:
        raise UsageError(
            f"{path}: {len(trained)} log lines, needed are {WARM_LINES + FEWEST_LINES}; train longer or log more often"
        )
    name = path.resolve().name if path.is_dir() else path.resolve().parent.name or path.name
    return Run(" ".join(name.split()), about, tuple(steady))


def run_advice(run: Run) -> list[str]:
    """What the log of a run gives reason to say."""
    found = []
    if (waited := 1 - run.busy) > WAITED:
        found.append(f"Training waited for data {waited:.0%} of the time: `myxtts profile` says for which stage.")
    if run.variation > VARIED:
        found.append(f"Step times vary by {run.variation:.0%}: close other programs, or try a larger --buffer-size.")
    if (padding := float(run.values("padding").mean())) > PADDED:
        found.append(f"{padding:.0%} of the frames are padding: more clips, or a smaller --batch-size, give less.")
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
    low: float
    high: float

    @property
    def differs(self) -> bool:
        return (self.low > 1 + SAME or self.high < 1 - SAME) and abs(self.ratio - 1) > SAME

    def words(self, more: str, less: str) -> str:
        """As "12 % slower (9 to 15 %)", or that there is nothing to tell."""
        if not self.differs:
            return "no difference beyond noise"
        ends = sorted(abs(end - 1) for end in (self.low, self.high))
        return f"{abs(self.ratio - 1):.0%} {more if self.ratio > 1 else less} ({ends[0]:.0%} to {ends[1]:.0%})"


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
    step_ms: Estimate
    clips_per_second: float
    frames_per_second: float
    memory_mb: float | None
    efficiency: float  # clips a second for each clip of a step, against the smallest step


def size_rows(runs: Sequence[tuple[str, Run]]) -> list[Size]:
    """The runs by clips a step, the smallest first.

    Raises:
        UsageError: a run does not tell how many clips its steps take.
    """
    for name, run in runs:
        if not isinstance(run.step_clips, int) or run.step_clips < 1:
            raise UsageError(f"{name}: its log does not say how many clips a step takes; it is of another version")
    rows: list[Size] = []
    for name, run in sorted(runs, key=lambda pair: pair[1].step_clips or 0):
        step, clips = run.estimate("step_ms"), run.step_clips or 0
        rate = 1e3 * clips / step.median
        efficiency = rate / rows[0].clips_per_second / (clips / rows[0].clips) if rows else 1.0
        frames = run.estimate("frames_per_second").median
        rows.append(Size(name, clips, step, rate, frames, run.memory_mb, efficiency))
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
    times = np.array([row.step_ms.median for row in rows])
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
