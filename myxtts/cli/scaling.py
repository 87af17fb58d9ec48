"""`myxtts scaling`."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from myxtts.cli.compare import five_measures, measures_table, say_what_is_noise, table_console, unique_names
from myxtts.cli.settings import require_writable
from myxtts.diagnostics.plot import draw_panels
from myxtts.diagnostics.runs import Size, fit_scaling, read_run, size_rows

LINE = 0.2  # how far, as a share, a step time may be off the line through all of them


def run(options: argparse.Namespace) -> int:
    """Reads runs at several batch sizes and shows how throughput and memory scale."""
    require_writable("--plot", options.plot, ".png")
    runs = [read_run(Path(path)) for path in options.runs]
    rows = size_rows(list(zip(unique_names(runs, options.runs), runs, strict=True)))
    scaling = fit_scaling(rows)
    if options.plot:
        memory = [(row.clips, row.memory_mb) for row in rows if row.memory_mb is not None]
        panels = {"clips a second": {"": [(row.clips, row.clips_per_second) for row in rows]}}
        panels |= {"memory, MB": {"": memory}} if memory else {}
        draw_panels(Path(options.plot), panels, "clips a step", markers=True)
    if options.json:
        print(json.dumps({"runs": [_document(row) for row in rows], **vars(scaling)}))
        return 0
    console = table_console()
    cells = {
        "clips a step": [str(row.clips) for row in rows],
        **five_measures(rows),
        "clips a second": [f"{row.clips_per_second:.1f}" for row in rows],
        "mel frames a second": [f"{row.frames_per_second:.0f}" for row in rows],
        "efficiency": [f"{row.efficiency:.0%}" for row in rows],
    }
    console.print(measures_table("Scaling with the batch", [row.name for row in rows], cells))
    words = (
        f"beyond {scaling.best} clips a doubling adds less than 5 % throughput"
        if scaling.best < rows[-1].clips
        else f"throughput still grows at {scaling.best} clips a step"
    )
    cost = f"A step costs {scaling.fixed_ms:.1f} ms and {scaling.clip_ms:.2f} ms a clip"
    if scaling.off > LINE:
        cost = f"The step times do not lie on a line (off by up to {scaling.off:.0%}): other things differ too"
    line = f"{cost}; {words}."
    console.print(line, highlight=False, soft_wrap=True)
    say_what_is_noise(console, {row.name: row.tells_noise for row in rows})
    return 0


def _document(row: Size) -> dict[str, Any]:
    return {**dataclasses.asdict(row), "gpu_utilisation": row.gpu_utilisation or None}
