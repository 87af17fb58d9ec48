"""One self-contained HTML page: timeline, stage bars, curves over time, advice. It needs no network.

In: the JSON document of a profile and its trace events, or the lines of a run's `metrics.jsonl`.
Out: HTML.
"""

import html
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from myxtts.diagnostics.advice import BEST, IN_USE
from myxtts.diagnostics.gpu_monitor import MEASURES, CardReadings
from myxtts.diagnostics.stage_model import STAGES
from myxtts.pipeline.stages import WAIT, Stage

Series = dict[str, Any]  # {"name", "unit", "points": [[seconds, value], …]}
COLOURS = {
    Stage.LOAD: "#4f8fd0",
    Stage.PREPROCESS: "#58b08a",
    Stage.TRANSFER: "#d9a441",
    WAIT: "#b9b9b9",
    Stage.TRAIN: "#cf6a5b",
}
RUN_CURVES = (
    ("step_ms", "Step time", "ms"),
    ("frames_per_second", "Mel frames", "a second"),
    ("data_wait", "Waiting for data", "share"),
    ("buffer_fill", "Buffer", "share full"),
    ("padding", "Padding", "share"),
)


def make_page(document: Mapping[str, Any], events: Sequence[Mapping], cards: Mapping[int, CardReadings]) -> str:
    """The page of a profile."""
    bars = [{"name": stage, "colour": COLOURS[stage], **document["stages"][stage]} for stage in STAGES]
    bottleneck, best = document["bottleneck"], document["best_way"]
    mark = BEST if best != document["arrangement"]["mode"] else IN_USE
    facts = [
        ("Step, overlapped", f"{document['step_ms']:.1f} ms"),
        ("One stage after the other", f"{document['total_ms']:.1f} ms"),
        ("Variation", f"{document['variation']:.0%}"),
        ("Bottleneck", f"{bottleneck['words']} ({bottleneck['evidence']})"),
        *((f"Way: {name}", _way_words(way, mark if name == best else "")) for name, way in document["ways"].items()),
        *((finding["name"], finding["evidence"]) for finding in document["findings"]),
    ]
    if document["gpus_reason"]:
        facts.append(("GPU utilisation", f"not available: {document['gpus_reason']}"))
    if document["virtual_devices"]:
        facts.append(("Devices", f"{document['virtual_devices']} parts of the CPU stand in for GPUs"))
    advice = [
        {"why": one["why"], "command": one["command"], "effect": f"{one['now_ms']:.1f} → {one['expected_ms']:.1f} ms"}
        for one in document["recommendations"]
    ]
    return _page("Profile", facts, bars, [*_levels(events), *_card_series(cards)], advice, events)


def make_run_page(name: str, lines: Sequence[Mapping[str, Any]], advice: Sequence[str]) -> str:
    """The page of a training run, from its log lines; each line is a slice of the timeline."""
    steps = [line for line in lines if line["kind"] == "train"]
    series = [
        {"name": words, "unit": unit, "points": [[line["seconds"], line[key]] for line in steps]}
        for key, words, unit in RUN_CURVES
    ]
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "tid": 1, "args": {"name": "train"}},
        {"ph": "M", "name": "thread_name", "tid": 2, "args": {"name": "wait for data"}},
    ]
    for before, line in itertools.pairwise(steps):
        begin, seconds = before["seconds"], line["seconds"] - before["seconds"]
        words = f"steps {before['step'] + 1} to {line['step']}"
        slices = ((1, begin, seconds), (2, begin, seconds * line["data_wait"]))
        events += [
            {"ph": "X", "name": words, "tid": t, "ts": 1e6 * b, "dur": 1e6 * s, "args": {}} for t, b, s in slices
        ]
    last = steps[-1] if steps else {}
    facts = [("Run", name), ("Steps", str(last.get("step", 0))), ("Loss", f"{last.get('losses', {}).get('loss')}")]
    return _page(name, facts, [], series, [{"why": words, "command": "", "effect": ""} for words in advice], events)


def _way_words(way: Mapping[str, Any], mark: str) -> str:
    source = "measured" if way["measured"] else "by the stage model"
    return f"{way['step_ms']:.1f} ms a step, {source}{f', {mark}' if mark else ''}"


def _levels(events: Sequence[Mapping]) -> list[Series]:
    points = [[event["ts"] / 1e6, event["args"]["batches"]] for event in events if event["ph"] == "C"]
    return [{"name": "Batches ready", "unit": "batches", "points": points}] if points else []


def _card_series(cards: Mapping[int, CardReadings]) -> list[Series]:
    found = []
    for number, card in cards.items():
        for measure, unit in MEASURES.items():
            known = zip(card.seconds, card.values[measure], strict=True)
            points = [[seconds, value] for seconds, value in known if value is not None]
            if points:
                found.append({"name": f"GPU {number} {measure.replace('_', ' ')}", "unit": unit, "points": points})
    return found


def _page(
    title: str,
    facts: Sequence[tuple[str, str]],
    bars: Sequence[Mapping],
    series: Sequence[Series],
    advice: Sequence[Mapping],
    events: Sequence[Mapping],
) -> str:
    lanes = {event["tid"]: event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    slices = [
        [event["tid"], round(event["ts"] / 1e3, 3), round(event["dur"] / 1e3, 3), event["name"]]
        for event in events
        if event["ph"] == "X"
    ]
    coloured = [(lane, words, COLOURS[words.split()[0]]) for lane, words in lanes.items()]
    data = {"lanes": coloured, "slices": slices, "series": list(series), "bars": list(bars)}
    rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in facts)
    items = "".join(
        f"<li>{html.escape(one['why'])} <b>{html.escape(one['effect'])}</b>"
        + (f"<pre>{html.escape(one['command'])}</pre>" if one["command"] else "")
        + "</li>"
        for one in advice
    )
    template = (files("myxtts.diagnostics") / "page.html").read_text(encoding="utf-8")
    parts = {
        "$TITLE": html.escape(title),
        "$FACTS": rows,
        "$ADVICE": items or "<li>Nothing to change.</li>",
        "$DATA": json.dumps(data, allow_nan=False).replace("</", "<\\/"),
    }
    return re.sub(r"\$[A-Z]+", lambda found: parts[found[0]], template)
