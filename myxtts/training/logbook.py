"""What a run tells: metrics to a file, to TensorBoard and to whoever shows them.

In: `Metrics` at each log point, validation results and pictures, samples, notices.
Out: `metrics.jsonl` and TensorBoard events in the run folder; the same Metrics to a display.
"""

import dataclasses
import json
import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import tensorflow as tf

from myxtts.audio.picture import colour
from myxtts.errors import RunError
from myxtts.training.metrics import (
    EvaluationResult,
    Event,
    Metrics,
    Notice,
    Primed,
    Resized,
    RunFacts,
    Sample,
    Summary,
    Validation,
)


class Logbook:
    """Writes beside the checkpoints; `show` displays each event. What cannot be written is shown all the same.

    Args:
        folder: the run folder.
        show: told every event.
        resumed: the step that a resumed run goes on from; readers forget lines of later steps that stand before.
    """

    def __init__(self, folder: Path, show: Callable[[Event], None], resumed: int = 0):
        folder.mkdir(parents=True, exist_ok=True)
        self._display, self._lost = show, set[str]()
        path = folder / "metrics.jsonl"
        try:
            _drop_torn_line(path)
            self._lines = path.open("a", encoding="utf-8")
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}; move it away or free the disk") from None
        if resumed:
            self._write({"kind": "resumed", "step": resumed})
        self._board_folder = folder / "tensorboard"
        self._board: Any = None  # made when there is something to write

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):  # what stands in its buffer was already reported as lost
            self._lines.close()
        self._close_board()

    def record_run(self, facts: RunFacts) -> None:
        self._write({"kind": "run", **dataclasses.asdict(facts)})
        self._show(facts)

    def record(self, metrics: Metrics) -> None:
        self._write({"kind": "train", **dataclasses.asdict(metrics)})

        def draw() -> None:
            for name, value in metrics.losses.items():
                tf.summary.scalar(f"train/{name}", value)
            for name in ("learning_rate", "step_ms", "frames_per_second", "data_wait", "buffer_fill", "padding"):
                tf.summary.scalar(f"run/{name}", getattr(metrics, name))

        self._on_board(metrics.step, draw)
        self._show(metrics)

    def record_validation(self, validation: Validation) -> None:
        self._write({"kind": "validation", "step": validation.step, "losses": validation.losses})

        def draw() -> None:
            for name, value in validation.losses.items():
                tf.summary.scalar(f"validation/{name}", value)
            for name in ("target", "spoken"):
                tf.summary.image(f"mel/{name}", colour(getattr(validation.pictures, name).T, 2)[None])
            if validation.pictures.path is not None:
                tf.summary.image("alignment", colour(validation.pictures.path, 4)[None])

        self._on_board(validation.step, draw)
        self._show(validation)

    def record_sample(self, sample: Sample) -> None:
        self._write({"kind": "sample", "step": sample.step, "folder": sample.folder})

        def draw() -> None:
            for number, wave in enumerate(sample.waves, 1):
                tf.summary.audio(f"sample/{number}", wave[None, :, None], sample.rate)

        self._on_board(sample.step, draw)
        self._show(sample)

    def record_evaluation(self, evaluated: EvaluationResult) -> None:
        self._write({"kind": "evaluation", **dataclasses.asdict(evaluated)})

        def draw() -> None:
            for name, value in evaluated.scores.items():
                tf.summary.scalar(f"evaluation/{name}", value)

        self._on_board(evaluated.step, draw)
        self._show(evaluated)

    def record_event(self, event: Primed | Resized | Notice | Summary) -> None:
        self._write({"kind": type(event).__name__.lower(), **dataclasses.asdict(event)})
        self._show(event)

    def record_end(self, summary: Summary) -> None:
        """Written only: whoever started the run shows the report once everything is saved."""
        self._write({"kind": "summary", **dataclasses.asdict(summary)})

    def _show(self, event: Event) -> None:
        """A display that is gone (a closed pipe, a full disk under a log file) does not end a run."""
        with suppress(OSError):
            self._display(event)

    def _write(self, line: dict) -> None:
        try:
            self._lines.write(json.dumps(_without_infinity(line), allow_nan=False) + "\n")
            self._lines.flush()
        except OSError as error:
            self._tell_lost("metrics.jsonl", str(error.strerror), line.get("step", 0))

    def _on_board(self, step: int, draw: Callable[[], None]) -> None:
        try:
            if self._board is None:
                self._board = tf.summary.create_file_writer(str(self._board_folder))
            with self._board.as_default(step=step):
                draw()
        except tf.errors.OpError as error:
            self._close_board()  # what follows a torn record in a file cannot be read: a new file then
            self._tell_lost("tensorboard", error.message.splitlines()[0].rsplit("; ", 1)[-1], step)

    def _close_board(self) -> None:
        with suppress(tf.errors.OpError):
            if self._board is not None:
                self._board.close()
        self._board = None

    def _tell_lost(self, name: str, reason: str, step: int) -> None:
        if name not in self._lost:
            self._lost.add(name)
            self._show(Notice(step, f"{name} cannot be written: {reason}; what comes now is lost until it can"))


def _drop_torn_line(path: Path) -> None:
    """Cuts off a last line without its end, which a killed run may leave."""
    if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)


def _without_infinity(value: Any) -> Any:
    """JSON knows no NaN and no infinity: they become null."""
    if isinstance(value, dict):
        return {name: _without_infinity(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
