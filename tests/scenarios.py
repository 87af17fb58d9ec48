"""Forty pipelines whose stages, bottleneck and cure are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from myxtts.cli.flags import typed_flags
from myxtts.diagnostics.advice import advise
from myxtts.diagnostics.profile import Pass, Profile, Profiler
from tests.stand_ins import STAGES, Arrangement, Stages, make_workload
from tests.two_devices import PLAN

STEPS = 60
FLOOR = 0.5  # milliseconds by which what a stage does besides its work may vary
MOST_BESIDES = 5.0  # milliseconds that a batch may cost a stage besides its work
SHORT = 1.0  # milliseconds of a stage that does little
ROUNDS = 3  # before and after in turn, when a recommendation is applied
FIELDS = {"data.num_workers": "workers", "data.pipeline_buffer_size": "ahead", "data.prefetch": "slots",
          "data.pipeline": "mode"}  # fmt: skip


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


def check_times(scenario: Scenario, profile: Profile) -> None:
    """Each stage as the profile times it, against the stage's own watch and what a batch costs besides.

    The latter is measured too, with a short stage among others that work as they do. Medians, because a moment in
    which the machine does something else belongs into the profile, and is no fault of it.
    """
    for stage in STAGES:
        short = replace(scenario.stages, taken=[], **{stage: SHORT})
        work = make_workload(short, scenario.arrangement, PLAN)
        other = Profiler(work, STEPS).measure_pass("sequential", work.devices, STEPS // 3, exact=True)
        besides, _ = costs_besides(short, (other,), stage)
        assert besides <= MOST_BESIDES, f"a batch costs {stage} {besides:.2f} ms besides its work"
        found, own = costs_besides(scenario.stages, profile.exact, stage)
        known, off = own + besides, found - besides
        assert abs(off) <= max(0.05 * known, FLOOR), f"{stage} off by {off:.2f} ms, known {known:.2f}"


def costs_besides(stages: Stages, passes: Sequence[Pass], stage: str) -> tuple[float, float]:
    """Milliseconds that the profile finds more than the stage's own watch, and the mean of that watch."""
    spans = [span for one in passes for span in one.spans if span.stage == stage]
    own = np.array([stages.seconds_within(span) for span in spans])
    extra = np.array([span.seconds for span in spans]) - own
    return 1e3 * float(np.median(extra)), 1e3 * float(own.mean())


def measure(scenario: Scenario, arrangement: Arrangement) -> float:
    """Milliseconds of an overlapped step."""
    work = make_workload(scenario.stages, arrangement, PLAN)
    profiler = Profiler(work, STEPS)
    return 1e3 * float(profiler.measure_pass(arrangement.mode, work.devices, STEPS // 3).intervals.mean())


def run_scenario(name: str) -> str:
    """Profiles, checks times and bottleneck, applies the first recommendation; returns a line about it.

    Raises:
        AssertionError: something is not as it was built.
    """
    scenario = SCENARIOS[name]
    work = make_workload(scenario.stages, scenario.arrangement, PLAN)
    profile = Profiler(work, STEPS).run()
    check_times(scenario, profile)
    measured = profile.measured
    advice = advise(measured)
    assert advice.bottleneck == scenario.bottleneck, f"{name}: {advice.bottleneck}, {advice.evidence}"
    if not advice.recommendations:
        return f"{name}: {advice.bottleneck}, nothing to change"
    first = advice.recommendations[0]
    after = replace(scenario.arrangement, **{FIELDS[key]: value for key, value in first.settings.items()})
    pairs = [(measure(scenario, scenario.arrangement), measure(scenario, after)) for _ in range(ROUNDS)]
    before, then = np.median(pairs, axis=0)
    gain, expected = before - then, 1e3 * (first.now_seconds - first.expected_seconds)
    changed = typed_flags("train", first.settings)
    line = f"{name}: {advice.bottleneck}, {changed}: {before:.1f} → {then:.1f} ms, expected {-expected:.1f} ms"
    assert gain >= 0.8 * expected, line
    return line
