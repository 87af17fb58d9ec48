"""`myxtts compare`."""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from myxtts.cli.settings import require_writable
from myxtts.diagnostics.plot import draw_panels
from myxtts.diagnostics.runs import Estimate, Run, compare, read_run
from myxtts.errors import UsageError

MEASURES = (("step_ms", "slower", "faster"), ("frames_per_second", "more frames", "fewer frames"))


def run(options: argparse.Namespace) -> int:
    """Reads the runs, prints a table and each run against the first."""
    if len(options.runs) < 2:
        raise UsageError("name at least two runs to compare")
    require_writable("--plot", options.plot, ".png")
    runs = [read_run(Path(path)) for path in options.runs]
    names = unique_names(runs, options.runs)
    against = [{key: compare(runs[0].values(key), other.values(key)) for key, _, _ in MEASURES} for other in runs[1:]]
    if options.plot:
        panels = {
            title: {name: _points(one, key) for name, one in zip(names, runs, strict=True)}
            for key, title in (("step_ms", "step time, ms"), ("frames_per_second", "mel frames a second"))
        }
        draw_panels(Path(options.plot), panels, "seconds")
    if options.json:
        print(json.dumps(_document(names, runs, against)))
        return 0
    console = Console()
    table = Table(title="Runs")
    for column in ("run", "steps", "time", "step ms (95 %)", "variation", "frames/s (95 %)", "busy", "memory"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for name, one in zip(names, runs, strict=True):
        table.add_row(
            escape(name),
            str(one.steps),
            f"{one.seconds / 60:.1f} min",
            interval_text(one.estimate("step_ms")),
            f"{one.variation:.0%}",
            interval_text(one.estimate("frames_per_second")),
            f"{one.busy:.0%}",
            "not recorded" if one.memory_mb is None else f"{one.memory_mb:.0f} MB",
        )
    console.print(table)
    for name, found in zip(names[1:], against, strict=True):
        words = {key: found[key].words(more, less) for key, more, less in MEASURES}
        console.print(
            f"{name} against {names[0]}: step time: {words['step_ms']}; throughput: {words['frames_per_second']}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    return 0


def unique_names(runs: list[Run], paths: list[str]) -> list[str]:
    """Folder names where they differ, else the paths as they were typed."""
    names = [one.name for one in runs]
    return names if len(set(names)) == len(names) else [" ".join(path.split()) for path in paths]


def interval_text(found: Estimate) -> str:
    return f"{found.median:.1f} ({found.low:.1f} to {found.high:.1f})"


def _points(one: Run, key: str) -> list[tuple[float, float]]:
    return [(line["seconds"], line[key]) for line in one.lines]


def _document(names: list[str], runs: list[Run], against: list) -> dict:
    return {
        "runs": [
            {
                "name": name,
                "steps": one.steps,
                "seconds": one.seconds,
                "step_ms": vars(one.estimate("step_ms")),
                "frames_per_second": vars(one.estimate("frames_per_second")),
                "variation": one.variation,
                "busy": one.busy,
                "memory_mb": one.memory_mb,
                "about": one.about,
            }
            for name, one in zip(names, runs, strict=True)
        ],
        "against_first": [
            {
                "name": name,
                **{
                    key: {**vars(found[key]), "differs": found[key].differs, "words": found[key].words(more, less)}
                    for key, more, less in MEASURES
                },
            }
            for name, found in zip(names[1:], against, strict=True)
        ],
    }
