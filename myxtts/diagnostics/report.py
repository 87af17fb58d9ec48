"""A profile for people and programs: terminal lines, one JSON document, a trace for Perfetto.

In: a `Profile` and its `Advice`.
Out: text; plain values that JSON can hold.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from myxtts.diagnostics.advice import (
    BEST,
    IN_USE,
    LOAD_SHARE,
    NAMES,
    TRAIN_SHARE,
    TRANSFER_SHARE,
    VARIATION,
    WAY_WORDS,
    WAYS,
    Advice,
    Recommendation,
    Settings,
)
from myxtts.diagnostics.gpu_monitor import MEASURES, CardReadings
from myxtts.diagnostics.profile import Pass, Profile
from myxtts.diagnostics.stage_model import STAGES
from myxtts.pipeline.stages import WAIT, Stage

TITLES = {
    Stage.LOAD: "Data Load",
    Stage.PREPROCESS: "Preprocess",
    Stage.TRANSFER: "GPU Transfer",
    Stage.TRAIN: "Training",
}
NOT_AVAILABLE = "not available"


def terminal_lines(profile: Profile, advice: Advice, command: str, typed: Callable[[Settings], str]) -> Iterator[str]:
    """The report of the specification; `command` is what recommended settings are added to, as they are `typed`."""
    yield from timing_lines(profile)
    yield ""
    yield from device_lines(profile)
    yield ""
    yield "BOTTLENECK ANALYSIS"
    mark = "✅" if advice.bottleneck in ("balanced", Stage.TRAIN) else "⚠️"
    yield f"  {mark} {NAMES[advice.bottleneck]}: {advice.evidence}"
    for finding in advice.findings:
        yield f"  ⚠️ {finding.name}: {finding.evidence}"
    yield ""
    yield "RECOMMENDATIONS"
    yield from way_lines(profile, advice)
    if not advice.recommendations:
        yield "  ✅ nothing to change: no setting would save more than 3 % of a step"
    for number, one in enumerate(advice.recommendations, 1):
        yield f"  {number}. {one.why}: {expectation(one)}"
        yield f"     {command} {typed(one.settings)}"


def expectation(one: Recommendation) -> str:
    return f"{1e3 * one.now_seconds:.1f} → {1e3 * one.expected_seconds:.1f} ms a step ({-one.gain:.0%})"


def timing_lines(profile: Profile) -> Iterator[str]:
    times, measured = profile.measured.times, profile.measured
    yield "TIMING BREAKDOWN (each stage by itself, with its own synchronisation)"
    good = {
        Stage.LOAD: lambda share: share <= LOAD_SHARE,
        Stage.PREPROCESS: lambda share: True,
        Stage.TRANSFER: lambda share: share <= TRANSFER_SHARE,
        Stage.TRAIN: lambda share: share >= TRAIN_SHARE,
    }
    for stage in STAGES:
        share = times.mean(stage) / times.total if times.total else 0.0
        rate = f"  {transfer_rate(profile)}" if stage == Stage.TRANSFER else ""
        yield _row(TITLES[stage], times[stage], share, good[stage](share)) + rate
    totals = np.sum([times[stage] for stage in STAGES], axis=0)
    yield _row("Total", totals, 1.0, True)
    intervals = np.concatenate([one.intervals for one in profile.overlapped])
    gaps = profile.gap_seconds
    share = gaps / measured.step_seconds if measured.step_seconds else 0.0
    yield f"  {'Pipeline gaps':<14} {1e3 * gaps:8.1f} ms          {share:5.1%}  {'✅' if share <= 0.1 else '⚠️'}"
    yield ""
    saved = 1 - measured.step_seconds / times.total if times.total else 0.0
    step = f"{1e3 * measured.step_seconds:.1f} ± {1e3 * intervals.std():.1f} ms"
    yield (
        f"  Overlapped ({measured.arrangement.mode}): {step} a step, {saved:.0%} less than one stage after the other; "
        f"variation {measured.variation:.0%} "
        f"{'✅' if measured.variation <= VARIATION else '⚠️'}"
    )
    for part, seconds in profile.step_parts.items():
        yield f"    {part:<10} {1e3 * seconds:8.1f} ms"
    yield (
        f"  Warm-up {profile.warm_up_seconds:.1f} s, of it compiling {profile.compile_seconds:.1f} s: "
        f"batch shapes {profile.shapes}, traces {profile.traces}"
    )


def _row(title: str, seconds: np.ndarray, share: float, good: bool) -> str:
    mark = "✅" if good else "⚠️"
    return f"  {title:<14} {1e3 * seconds.mean():8.1f} ± {1e3 * seconds.std():5.1f} ms {share:6.1%}  {mark}"


def transfer_rate(profile: Profile) -> str:
    """Of the copy between two devices; virtual ones share the memory, so there is no copy to speak of."""
    if not profile.two_devices:
        return "(one device: nothing is copied)"
    if profile.virtual:
        return f"({profile.batch_bytes / 2**20:.1f} MB; virtual devices share the memory)"
    return f"({profile.batch_bytes / profile.measured.times.mean('transfer') / 1e9:.2f} GB/s)"


def device_lines(profile: Profile) -> Iterator[str]:
    yield "GPU UTILIZATION"
    if profile.cards_reason:
        yield f"  {NOT_AVAILABLE}: {profile.cards_reason}"
    for number, card in profile.cards.items():
        yield f"  GPU {number} {card.name}"
        for measure, unit in MEASURES.items():
            yield f"    {measure.replace('_', ' '):<14} {_statistics_text(card, measure, unit)}"
        if card.oscillation is not None:
            yield f"    {'oscillation':<14} {card.oscillation:.0%} {'✅' if card.oscillation <= 0.5 else '⚠️'}"
        for reason, count in card.throttled.items():
            yield f"    ⚠️ slowed down by {reason} in {count} of {len(card.seconds)} readings"
    if profile.link:
        yield f"  Link: {profile.link}"
    peaks = ", ".join(
        f"{name} {NOT_AVAILABLE if mb is None else f'{mb:.0f} MB'}" for name, mb in profile.memory_mb.items()
    )
    yield f"  Memory peak: {peaks}"


def _statistics_text(card: CardReadings, measure: str, unit: str) -> str:
    found = card.statistics(measure)
    if found is None:
        return f"{NOT_AVAILABLE} ({card.missing.get(measure, 'no reading')})"
    return f"{found.mean:.0f} ± {found.deviation:.0f} {unit} ({found.least:.0f} to {found.most:.0f})"


def way_lines(profile: Profile, advice: Advice) -> Iterator[str]:
    ways = profile.measured.ways
    if not ways:
        return
    yield "  Ways to use the devices:"
    marked = BEST if advice.best_way != profile.measured.arrangement.mode else IN_USE
    for name in WAYS:
        if name in ways:
            source = "measured" if ways[name].measured else "by the stage model"
            mark = f"← {marked}" if name == advice.best_way else ""
            words = WAY_WORDS[name].split(": ")[-1]
            yield f"    {name:<11} {1e3 * ways[name].step_seconds:8.1f} ms a step, {source:<18} {words} {mark}".rstrip()


# For programs


def json_document(profile: Profile, advice: Advice, command: str, typed: Callable[[Settings], str]) -> dict[str, Any]:
    """Everything that the report describes, as plain values; what could not be measured is null with a reason."""
    measured = profile.measured
    stages = {
        stage: {
            "mean_ms": 1e3 * measured.times.mean(stage),
            "deviation_ms": 1e3 * float(measured.times[stage].std()),
            "share": measured.times.mean(stage) / measured.times.total if measured.times.total else 0.0,
        }
        for stage in STAGES
    }
    return {
        "stages": stages,
        "total_ms": 1e3 * measured.times.total,
        "gap_ms": 1e3 * profile.gap_seconds,
        "step_ms": 1e3 * measured.step_seconds,
        "variation": measured.variation,
        "arrangement": vars(measured.arrangement),
        "load_ms_by_workers": {str(count): 1e3 * seconds for count, seconds in measured.load_seconds.items()},
        "warm_up_seconds": profile.warm_up_seconds,
        "compile_seconds": profile.compile_seconds,
        "shapes": profile.shapes,
        "traces": profile.traces,
        "step_parts_ms": {part: 1e3 * seconds for part, seconds in profile.step_parts.items()},
        "batch_bytes": profile.batch_bytes,
        "virtual_devices": profile.virtual,
        "memory_peak_mb": dict(profile.memory_mb),
        "gpus": {str(number): _card_document(card) for number, card in profile.cards.items()},
        "gpus_reason": profile.cards_reason,
        "link": profile.link,
        "ways": {
            name: {"step_ms": 1e3 * measured.ways[name].step_seconds, "measured": measured.ways[name].measured}
            for name in WAYS
            if name in measured.ways
        },
        "best_way": advice.best_way,
        "bottleneck": {"name": advice.bottleneck, "words": NAMES[advice.bottleneck], "evidence": advice.evidence},
        "findings": [vars(finding) for finding in advice.findings],
        "recommendations": [
            {
                "flags": typed(one.settings),
                "settings": dict(one.settings),
                "command": f"{command} {typed(one.settings)}",
                "why": one.why,
                "now_ms": 1e3 * one.now_seconds,
                "expected_ms": 1e3 * one.expected_seconds,
            }
            for one in advice.recommendations
        ],
    }


def _card_document(card: CardReadings) -> dict[str, Any]:
    statistics = {measure: card.statistics(measure) for measure in MEASURES}
    return {
        "name": card.name,
        "readings": len(card.seconds),
        "statistics": {name: vars(found) if found else None for name, found in statistics.items()},
        "missing": card.missing,
        "oscillation": card.oscillation,
        "throttled": card.throttled,
    }


def trace_events(
    passes: Sequence[Pass], lanes: dict[str, str], process: int = 1, name: str = "myxtts"
) -> list[dict[str, Any]]:
    """Chrome's trace format: one lane for each stage, batches as slices, the buffer's fill as a counter.

    Args:
        passes: laid out one after the other.
        lanes: what each stage's lane is called, with its device.
        process: number of the process, above all of whose lanes stands its name.
        name: of the process.
    """
    numbers = {stage: place for place, stage in enumerate(lanes, 1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}},
        *(
            {"ph": "M", "name": "thread_name", "pid": process, "tid": numbers[stage], "args": {"name": words}}
            for stage, words in lanes.items()
        ),
        *(
            {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": number, "args": {"sort_index": number}}
            for number in numbers.values()
        ),
    ]
    moved = 0.0  # what happened between two passes is no part of either
    for one in passes:
        begin = min((span.begin for span in one.spans), default=0.0) - moved
        for span in sorted(one.spans, key=lambda span: span.begin):
            if span.stage in numbers:
                events.append(
                    {
                        "ph": "X",
                        "name": f"batch {span.number}",
                        "cat": span.stage,
                        "pid": process,
                        "tid": numbers[span.stage],
                        "ts": 1e6 * (span.begin - begin),
                        "dur": 1e6 * span.seconds,
                        "args": {"batch": span.number, "stage": span.stage},
                    }
                )
        moved = max((span.end for span in one.spans), default=begin) - begin
        for moment, ready in one.levels:
            when = 1e6 * min(moment - begin, moved)
            events.append({"ph": "C", "name": "batches ready", "pid": process, "ts": when, "args": {"batches": ready}})
    return events


def lane_names(profile: Profile) -> dict[str, str]:
    """What runs where."""
    data, model = profile.device_names
    return {
        Stage.LOAD: "load (host)",
        Stage.PREPROCESS: f"preprocess ({data})",
        Stage.TRANSFER: f"transfer ({data} → {model})",
        WAIT: "wait for data (training thread)",
        Stage.TRAIN: f"train ({model})",
    }
