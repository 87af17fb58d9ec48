"""`myxtts train`."""

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from myxtts.cli.devices import configured_lines, model_lines, pipeline_lines
from myxtts.cli.display import clock_text, training_display
from myxtts.cli.prepare import prepare_and_report
from myxtts.cli.settings import configure, describe, make_folder
from myxtts.data.cache import require_clips
from myxtts.devices import plan_devices, select_gpus
from myxtts.errors import RunError, UsageError
from myxtts.training.metrics import Summary


def run(options: argparse.Namespace) -> int:
    """Prepares the data where needed, trains, reports."""
    resume = _find_resumed(options)
    config, origin = configure(options, resume / "config.yaml" if resume else None)
    if not config.data.train_data:
        raise UsageError("no training data; add --train-data DIR")
    if resume and "training.checkpoint_dir" not in origin:  # the run goes on where it lies now
        config = replace(config, training=replace(config.training, checkpoint_dir=str(resume.resolve().parent)))
    run_folder = Path(config.training.checkpoint_dir)
    if (run_folder / "latest").exists():
        if resume is None:
            raise UsageError(
                f"{run_folder} already holds a run; add --resume to go on with it or choose another --checkpoint-dir"
            )
        if resume.resolve().parent != run_folder.resolve():
            raise UsageError(f"{run_folder} holds another run than {resume}; choose another --checkpoint-dir")
    if run_folder.exists() and not run_folder.is_dir():
        raise UsageError(f"{run_folder} is a file; choose another --checkpoint-dir")
    select_gpus(config.data)
    console = Console()

    def say(*lines: str) -> None:
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    say(*(f"   {line}" for line in describe(config, origin)))
    require_clips(prepare_and_report(Path(config.data.train_data), config, console), config)
    if config.data.val_data and not len(prepare_and_report(Path(config.data.val_data), config, console)):
        raise RunError(f"{config.data.val_data}: no clip can be used for validation")

    make_folder(run_folder, "choose another --checkpoint-dir")

    plan = plan_devices(config.data)
    say(*configured_lines(plan, config.data), *pipeline_lines(plan, config.data), *model_lines(plan))
    from myxtts.training.trainer import XTTSTrainer

    trainer = XTTSTrainer(config, resume_checkpoint=resume)
    if plan.two_devices:
        say(f"🕐 Multi-GPU Mode: Waiting {config.data.model_start_delay:.1f}s for data pipeline to warm up...")
    with stop_on_signals() as (stop, received), training_display(console) as show:
        summary = trainer.train(show, stop)
    say(*summary_lines(summary), f"✅ Saved in {run_folder / 'latest'}")
    return 128 + received[0] if received else 0


def _find_resumed(options: argparse.Namespace) -> Path | None:
    """The checkpoint that `--resume` means; without a name, the newest of --checkpoint-dir."""
    if options.resume is None:
        return None
    from myxtts.training.checkpoint import find_checkpoint

    folder = options.resume or configure(options)[0].training.checkpoint_dir
    return find_checkpoint(Path(folder), ("latest",))


@contextmanager
def stop_on_signals() -> Iterator[tuple[threading.Event, list[int]]]:
    """Ctrl-C and SIGTERM ask the loop to finish its step and save; the second one interrupts."""
    stop = threading.Event()
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop, received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summary_lines(summary: Summary) -> list[str]:
    """The performance report at the end of a run."""
    lines = [
        f"{summary.steps} steps in {clock_text(summary.seconds)}, {summary.shapes} shapes, {summary.traces} traces",
        f"step time {summary.mean_step_ms:.0f} ± {summary.deviation_step_ms:.0f} ms, variation {summary.variation:.0%}",
        f"{summary.frames_per_second:.0f} mel frames/s, data wait {summary.data_wait:.1%}",
    ]
    if summary.variation > 0.3:
        lines.append("⚠️ step times vary by more than 30 %: close other programs, or try a larger --buffer-size")
    return lines
