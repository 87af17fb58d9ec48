"""How a run looks: a live line on a terminal, ordinary log lines on a pipe.

In: events from the trainer; done/total from preparation.
Out: text on standard output, which `diagnostics/printed_log.py` reads back from a file.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from myxtts.cli.flags import in_flags, typed_flags
from myxtts.diagnostics.startup import PoorSetting
from myxtts.training.metrics import (
    EvaluationResult,
    Event,
    Metrics,
    Notice,
    NoticeKind,
    Primed,
    Resized,
    RunFacts,
    Sample,
    Summary,
    Validation,
)

NOTICE_MARKS: dict[NoticeKind, str] = {"warning": "⚠️", "saved": "💾", "clear": "👂"}


def clock_text(seconds: float) -> str:
    """4:07 or 1:02:33."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def elapsed_text(seconds: float) -> str:
    """4:07.3 or 1:02:33.0."""
    tenths = round(10 * seconds)
    return f"{clock_text(tenths // 10)}.{tenths % 10}"


def event_line(event: Event) -> str:
    """The log line of the specification."""
    if isinstance(event, RunFacts):
        settings = dataclasses.asdict(event)
        words = " | ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items() if name != "step")
        return f"📋 Run from step {event.step} | {words}"
    if isinstance(event, Primed):
        return "✅ Model training starting now"
    if isinstance(event, Resized):
        return f"🔧 Buffer now {event.slots} batches (step {event.step}): {event.reason}"
    if isinstance(event, Notice):
        return f"{NOTICE_MARKS[event.kind]} {in_flags(event.text, 'train')} (step {event.step})"
    if isinstance(event, Sample):
        return f"🔊 Sample audio of step {event.step}: {event.folder}"
    if isinstance(event, EvaluationResult):
        scores = " ".join(f"{name} {value:.3f}" for name, value in event.scores.items())
        return f"🎓 Evaluation at step {event.step} | {scores}"
    if isinstance(event, Summary):
        return "\n".join(("📊 Performance so far", *summary_lines(event)))
    losses = " ".join(f"{name} {value:.3f}" for name, value in event.losses.items())
    if isinstance(event, Validation):
        return f"validation at step {event.step} | {losses}"
    skipped = f" skipped {event.skipped}" if event.skipped else ""
    exchange = f" exchange {event.exchange:.0%} slowest {event.slowest}" if event.slowest else ""
    utilisation = "".join(f" GPU {card} {share:.0%}" for card, share in event.gpu_utilisation.items())
    return (
        f"step {event.step} | {losses} | {event.step_ms:.1f} ms/step {event.steps_per_second:.2f} steps/s "
        f"{event.frames_per_second:.0f} frames/s | data wait {event.data_wait:.1%} "
        f"buffer {event.buffer_fill:.0%} padding {event.padding:.0%}{exchange}{skipped} "
        f"| memory {event.memory_mb:.0f} MB{utilisation} "
        f"| elapsed {elapsed_text(event.seconds)} left {clock_text(event.seconds_left)}"
    )


def report_lines(summary: Summary) -> list[str]:
    """The performance report under its title, as a run's end prints it."""
    return ["📊 Performance of the run", *summary_lines(summary)]


def summary_lines(summary: Summary) -> list[str]:
    """The performance report."""
    lines = [
        f"{summary.steps} steps in {elapsed_text(summary.seconds)}, {summary.shapes} shapes, {summary.traces} traces",
        f"step time {summary.mean_step_ms:.1f} ± {summary.deviation_step_ms:.1f} ms, variation {summary.variation:.1%}",
        f"{summary.frames_per_second:.0f} mel frames/s, data wait {summary.data_wait:.1%}",
    ]
    if summary.skipped:
        lines.append(f"⚠️ {summary.skipped} steps were not finite and changed nothing")
    if summary.variation > 0.3:
        lines.append("⚠️ step times vary by more than 30 %: close other programs, or try a larger --buffer-size")
    return lines


def poor_setting_lines(found: Sequence[PoorSetting]) -> list[str]:
    """One block of advice before the first step; nothing where there is nothing to say."""
    if not found:
        return []
    lines = ["💡 Known to be poor for this machine and this data:"]
    for poor in found:
        lines.append(f"   - {poor.what}; type {typed_flags('train', poor.instead)}")
    return [*lines, "   `myxtts profile` measures where the time goes."]


@contextmanager
def training_display(console: Console) -> Iterator[Callable[[Event], None]]:
    """Yields a function that shows each event."""
    if not console.is_terminal:

        def show_line(event: Event) -> None:
            console.print(event_line(event), highlight=False, markup=False, soft_wrap=True)

        yield show_line
        return
    columns = [
        TextColumn("step {task.fields[step]}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn(
            "loss [bold]{task.fields[loss]}[/]  {task.fields[speed]} steps/s  "
            "data wait {task.fields[wait]}  left {task.fields[left]}"
        ),
    ]
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("train", total=1.0, step=0, loss="…", speed="…", wait="…", left="…")

        def show(event: Event) -> None:
            if not isinstance(event, Metrics):
                progress.console.print(event_line(event), highlight=False, markup=False)
                return
            progress.update(
                task,
                completed=event.progress,
                step=event.step,
                loss=f"{event.losses['loss']:.3f}",
                speed=f"{event.steps_per_second:.2f}",
                wait=f"{event.data_wait:.1%}",
                left=clock_text(event.seconds_left),
            )

        yield show


@contextmanager
def counting_display(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function for (what is done, done, total): a bar on a terminal, nothing on a pipe."""
    if not console.is_terminal:
        yield lambda what, done, total: None
        return
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total or None)
            progress.update(tasks[what], completed=done)

        yield show
