"""`myxtts profile`."""

import argparse
import json
import shlex
from pathlib import Path

from rich.console import Console

from myxtts.cli.display import counting_display
from myxtts.cli.settings import configure, require_parent
from myxtts.config.config import XTTSConfig
from myxtts.config.load import flatten
from myxtts.devices import plan_devices, select_gpus, watched_gpus
from myxtts.errors import UsageError

FEWEST_STEPS = 12
SHOWN = {  # settings that a recommended command repeats
    "data.train_data": "--train-data",
    "data.batch_size": "--batch-size",
    "model.size": "--model-size",
    "data.data_gpu": "--data-gpu",
    "data.model_gpu": "--model-gpu",
    "data.virtual_devices": "--virtual-devices",
    "training.grad_accum": "--grad-accum",
    "training.mixed_precision": "--mixed-precision",
    "data.num_workers": "--num-workers",
    "data.pipeline_buffer_size": "--buffer-size",
    "data.prefetch": "--prefetch",
    "data.pipeline": "--pipeline",
}


def run(options: argparse.Namespace) -> int:
    """Measures, advises, reports; writes what was asked for."""
    require_parent(options.trace)
    require_parent(options.html)
    if options.run:
        return show_run(options)
    config, _ = configure(options)
    if options.num_steps < FEWEST_STEPS:
        raise UsageError(f"--num-steps is {options.num_steps}; fewer than {FEWEST_STEPS} say nothing")
    select_gpus(config.data)
    plan_devices(config.data)
    from myxtts.diagnostics.advice import advise
    from myxtts.diagnostics.page import make_page
    from myxtts.diagnostics.profile import Profiler
    from myxtts.diagnostics.report import json_document, lane_names, terminal_lines, trace_events
    from myxtts.diagnostics.workload import real_workload

    console = Console(stderr=bool(options.json))
    gpus = watched_gpus(config.data)
    with real_workload(config, options.num_steps) as workload, counting_display(console) as show:
        profile = Profiler(workload, options.num_steps, gpus).run(show=show, step_parts=options.step_parts)
    advice, command = advise(profile.measured), command_line(config)
    document = json_document(profile, advice, command)
    if options.json:
        print(json.dumps(document))
    else:
        for line in terminal_lines(profile, advice, command):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    events = trace_events(profile.overlapped, lane_names(profile))
    if options.trace:
        Path(options.trace).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
    if options.html:
        Path(options.html).write_text(make_page(document, events, profile.cards), encoding="utf-8")
    return 0


def show_run(options: argparse.Namespace) -> int:
    """The page of a training run, from what it has logged."""
    from myxtts.diagnostics.page import make_run_page
    from myxtts.diagnostics.runs import read_lines, read_run, run_advice

    if not options.html or options.json or options.trace:
        raise UsageError("--run goes with --html FILE and nothing else; a run's log holds no single batches")
    one = read_run(Path(options.run))
    page = make_run_page(one.name, read_lines(Path(options.run)), run_advice(one))
    Path(options.html).write_text(page, encoding="utf-8")
    return 0


def command_line(config: XTTSConfig) -> str:
    """The `train` command that uses the profiled settings."""
    values, usual = flatten(config), flatten(XTTSConfig())
    words = ["myxtts", "train"]
    for key, flag in SHOWN.items():
        if values[key] != usual[key] or key == "data.train_data":
            words += [flag, "DIR" if values[key] == "" else str(values[key])]
    return shlex.join(words)
