"""Forty pipelines whose stages, bottleneck and cure are known."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from myxtts.diagnostics.advice import FLAGS, advise
from myxtts.diagnostics.profile import Profiler
from tests.stand_ins import STAGES, Arrangement, Stages, make_workload
from tests.two_devices import PLAN

STEPS = 60
FLOOR = 1.0  # milliseconds by which what a stage does besides its work may vary
ROUNDS = 3  # before and after in turn, when a recommendation is applied
FIELDS = {"data.num_workers": "workers", "data.pipeline_buffer_size": "ahead", "data.prefetch": "slots",
          "data.pipeline": "mode"}  # fmt: skip
assert set(FIELDS) == set(FLAGS)


@dataclass(frozen=True)
class Scenario:
    """Stages, how they are arranged, and what limits them."""

    bottleneck: str
    stages: Stages
    arrangement: Arrangement = Arrangement()  # noqa: RUF009 (frozen)


def cycle(*milliseconds: float):
    """A stage's times, again and again."""
    return lambda number: milliseconds[number % len(milliseconds)]


def scattered(low: float, high: float, share: float, seed: int):
    """Mostly `low`, at random `high`."""
    values = np.where(np.random.default_rng(seed).random(20) < share, high, low)
    return cycle(*values.tolist())


def spinning(**values) -> Stages:
    return Stages(**values, spins=frozenset(name for name in values if name in ("preprocess", "train")))


def spinning_load(**values) -> Stages:
    return Stages(**values, spins=frozenset({"load"}))


SLOW, FAST = {"mode": "sequential"}, {"mode": "buffered"}
SCENARIOS = {
    "disk": Scenario("disk", Stages(60, 5, 1, 20)),
    "disk, two workers": Scenario("disk", Stages(120, 5, 1, 20), Arrangement(workers=2)),
    "disk, deep": Scenario("disk", Stages(90, 3, 1, 25)),
    "disk and features": Scenario("disk", Stages(80, 30, 1, 20)),
    "disk and step": Scenario("disk", Stages(90, 5, 1, 40)),
    "decode": Scenario("decode", spinning_load(load=40, preprocess=3, transfer=1, train=15)),
    "decode, long": Scenario("decode", spinning_load(load=60, preprocess=3, transfer=1, train=20)),
    "decode and transfer": Scenario("decode", spinning_load(load=60, preprocess=3, transfer=20, train=20)),
    "features": Scenario("preprocess", Stages(2, 40, 1, 20)),
    "features, spinning": Scenario("preprocess", spinning(load=2, preprocess=40, transfer=1, train=20)),
    "features, long": Scenario("preprocess", Stages(2, 60, 2, 15)),
    "features and transfer": Scenario("preprocess", Stages(2, 40, 15, 20)),
    "features and disk": Scenario("preprocess", Stages(20, 50, 1, 20)),
    "transfer": Scenario("transfer", Stages(2, 5, 40, 20)),
    "transfer, long": Scenario("transfer", Stages(2, 3, 70, 25)),
    "transfer and features": Scenario("transfer", Stages(2, 15, 40, 20)),
    "transfer and step": Scenario("transfer", Stages(2, 3, 60, 40)),
    "step": Scenario("train", Stages(2, 5, 1, 40)),
    "step, spinning": Scenario("train", spinning(load=2, preprocess=10, transfer=1, train=40)),
    "step, long": Scenario("train", Stages(2, 10, 1, 70)),
    "step and features": Scenario("train", Stages(2, 25, 1, 50)),
    "step and disk": Scenario("train", Stages(20, 5, 1, 40)),
    "step and transfer": Scenario("train", Stages(2, 5, 20, 45)),
    "balanced": Scenario("balanced", Stages(2, 30, 1, 30)),
    "balanced, spinning": Scenario("balanced", spinning(load=1, preprocess=30, transfer=1, train=31)),
    "balanced, by transfer": Scenario("balanced", Stages(2, 15, 15, 31)),
    "balanced, long": Scenario("balanced", Stages(2, 58, 1, 60)),
    "jitter": Scenario("jitter", Stages(2, scattered(2, 102, 0.25, 3), 1, 27)),
    "jitter, rare": Scenario("jitter", Stages(2, scattered(2, 202, 0.1, 5), 1, 24)),
    "jitter of the copy": Scenario("jitter", Stages(2, 2, scattered(2, 122, 0.2, 3), 27)),
    "small buffer": Scenario("buffer", Stages(cycle(*[3.0] * 9, 250), 2, 1, 29), Arrangement(ahead=1, slots=2)),
    "small buffer, long": Scenario("buffer", Stages(cycle(*[3.0] * 19, 400), 2, 1, 25), Arrangement(ahead=2)),
    "small buffer, short": Scenario("buffer", Stages(cycle(*[3.0] * 9, 230), 2, 1, 27), Arrangement(ahead=1, slots=1)),
    "oscillation": Scenario("oscillation", Stages(2, cycle(*[2.0] * 12, *[60.0] * 8), 1, 26)),
    "oscillation, long": Scenario("oscillation", Stages(2, cycle(*[2.0] * 10, *[50.0] * 10), 1, 27)),
    "oscillation of the copy": Scenario("oscillation", Stages(2, 2, cycle(*[2.0] * 14, *[70.0] * 6), 24)),
    "sequential features": Scenario("preprocess", Stages(2, 40, 1, 30), Arrangement(**SLOW)),
    "sequential step": Scenario("train", Stages(2, 20, 1, 40), Arrangement(**SLOW)),
    "buffered step": Scenario("train", Stages(2, 10, 1, 40), Arrangement(**FAST)),
    "buffered disk": Scenario("disk", Stages(60, 5, 1, 20), Arrangement(**FAST)),
}
assert len(SCENARIOS) == 40


@functools.cache
def empty_stages() -> dict[str, float]:
    """Milliseconds that a stage takes when it does nothing."""
    times = Profiler(make_workload(Stages(0, 0, 0, 0), Arrangement(), PLAN), STEPS).run(ways=False).measured.times
    return {stage: 1e3 * float(np.median(times[stage])) for stage in STAGES}


def measure(scenario: Scenario, arrangement: Arrangement) -> float:
    """Milliseconds of an overlapped step."""
    work = make_workload(scenario.stages, arrangement, PLAN)
    profiler = Profiler(work, STEPS)
    return 1e3 * float(profiler._pass(arrangement.mode, work.devices, STEPS // 3).intervals.mean())


def run_scenario(name: str) -> str:
    """Profiles, checks times and bottleneck, applies the first recommendation; returns a line about it.

    Raises:
        AssertionError: something is not as it was built.
    """
    scenario = SCENARIOS[name]
    work = make_workload(scenario.stages, scenario.arrangement, PLAN)
    measured = Profiler(work, STEPS).run().measured
    for stage in STAGES:
        known = scenario.stages.mean(stage, range(STEPS // 3)) + empty_stages()[stage]
        found = 1e3 * measured.times.mean(stage)
        slack = max(0.05 * known, FLOOR)
        assert abs(found - known) <= slack, f"{name}: {stage} {found:.2f} ms, known {known:.2f}"
    advice = advise(measured)
    assert advice.bottleneck == scenario.bottleneck, f"{name}: {advice.bottleneck}, {advice.evidence}"
    if not advice.recommendations:
        return f"{name}: {advice.bottleneck}, nothing to change"
    first = advice.recommendations[0]
    after = replace(scenario.arrangement, **{FIELDS[key]: value for key, value in first.settings.items()})
    pairs = [(measure(scenario, scenario.arrangement), measure(scenario, after)) for _ in range(ROUNDS)]
    before, then = np.median(pairs, axis=0)
    gain, expected = before - then, 1e3 * (first.now_seconds - first.expected_seconds)
    line = f"{name}: {advice.bottleneck}, {first.flags}: {before:.1f} → {then:.1f} ms, expected {-expected:.1f} ms"
    assert gain >= 0.8 * expected, line
    return line
