"""`myxtts compare`."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from myxtts.cli.display import elapsed_text
from myxtts.cli.flags import in_flags
from myxtts.cli.settings import require_writable
from myxtts.diagnostics.plot import draw_panels
from myxtts.diagnostics.runs import MORE_LINES, Run, Size, compare_runs, read_run
from myxtts.errors import UsageError

MEASURES = (("step_ms", "slower", "faster"), ("frames_per_second", "more frames", "fewer frames"))
FILE_COLUMNS = 200  # of a table that is written to a file or a pipe, which has no width of its own


def run(options: argparse.Namespace) -> int:
    """Reads the runs, prints a table and each run against the first."""
    if len(options.runs) < 2:
        raise UsageError("name at least two runs to compare")
    require_writable("--plot", options.plot, ".png")
    runs = [read_run(Path(path)) for path in options.runs]
    names = unique_names(runs, options.runs)
    against = [{key: compare_runs(runs[0], other, key) for key, _, _ in MEASURES} for other in runs[1:]]
    if options.plot:
        panels = {
            title: {name: _points(one, key) for name, one in zip(names, runs, strict=True)}
            for key, title in (("step_ms", "step time, ms"), ("frames_per_second", "mel frames a second"))
        }
        draw_panels(Path(options.plot), panels, "seconds")
    if options.json:
        print(json.dumps(_document(names, runs, against)))
        return 0
    console = table_console()
    rows = {
        "steps": [str(one.steps) for one in runs],
        **five_measures(runs),
        "median step time, ms (95 %)": [_interval_text(one, "step_ms") for one in runs],
        "mel frames a second (95 %)": [_interval_text(one, "frames_per_second") for one in runs],
        "not waiting for data": [f"{one.busy:.0%}" for one in runs],
    }
    console.print(measures_table("Runs", names, rows))
    for name, found in zip(names[1:], against, strict=True):
        words = {key: found[key].words(more, less) for key, more, less in MEASURES}
        console.print(
            f"{name} against {names[0]}: step time: {words['step_ms']}; throughput: {words['frames_per_second']}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    say_what_is_noise(console, {name: one.tells_noise for name, one in zip(names, runs, strict=True)})
    return 0


# Also of `myxtts scaling`


def unique_names(runs: list[Run], paths: list[str]) -> list[str]:
    """Names of folders or logs where they differ, else the paths as they were typed."""
    names = [one.name for one in runs]
    return names if len(set(names)) == len(names) else [" ".join(path.split()) for path in paths]


def table_console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=FILE_COLUMNS)


def measures_table(title: str, names: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Table:
    """A column for each run, a row for each measure."""
    table = Table("", *(Column(escape(name), justify="right") for name in names), title=title)
    for measure, texts in rows.items():
        table.add_row(measure, *texts)
    return table


def five_measures(runs: Sequence[Run | Size]) -> dict[str, list[str]]:
    """The rows that both tables have."""
    return {
        "average step time": [f"{one.average_step_ms:.1f} ms" for one in runs],
        "timing stability (std / mean)": [
            "too few log lines" if one.variation is None else f"{one.variation:.1%}" for one in runs
        ],
        "GPU utilisation": [_utilisation_text(one.gpu_utilisation) for one in runs],
        "memory": ["not measured" if one.memory_mb is None else f"{one.memory_mb:.0f} MB" for one in runs],
        "total time": [elapsed_text(one.seconds) for one in runs],
    }


def _utilisation_text(by_card: Mapping[str, float]) -> str:
    return ", ".join(f"GPU {card} {share:.0%}" for card, share in by_card.items()) or "not sampled"


def say_what_is_noise(console: Console, tells_noise: Mapping[str, bool]) -> None:
    """Names the runs whose log lines are too few to tell a small difference from noise."""
    if few := [name for name, enough in tells_noise.items() if not enough]:
        more = in_flags(MORE_LINES, "train")
        line = f"⚠️ too few log lines to tell small differences from noise: {', '.join(few)}; {more}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _interval_text(one: Run, key: str) -> str:
    found = one.estimate(key)
    return f"{found.median:.1f} ({found.low:.1f} to {found.high:.1f})" if one.tells_noise else f"{found.median:.1f}"


def _points(one: Run, key: str) -> list[tuple[float, float]]:
    return [(line["seconds"], line[key]) for line in one.lines]


def _document(names: list[str], runs: list[Run], against: list) -> dict:
    return {
        "runs": [
            {
                "name": name,
                "steps": one.steps,
                "seconds": one.seconds,
                "average_step_ms": one.average_step_ms,
                "step_ms": vars(one.estimate("step_ms")),
                "frames_per_second": vars(one.estimate("frames_per_second")),
                "variation": one.variation,
                "gpu_utilisation": one.gpu_utilisation or None,
                "busy": one.busy,
                "memory_mb": one.memory_mb,
                "log_lines": len(one.lines),
                "tells_noise": one.tells_noise,
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
