"""What a run tells: metrics to a file, to TensorBoard and to whoever shows them.

In: `Metrics` at each log point, validation results and pictures.
Out: `metrics.jsonl` and TensorBoard events in the run folder; the same Metrics to a display.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Self

import tensorflow as tf

from myxtts.audio.picture import colour
from myxtts.training.metrics import Event, Metrics, Primed, Resized, Validation


class Logbook:
    """Writes beside the checkpoints; `show` displays each event."""

    def __init__(self, folder: Path, show: Callable[[Event], None]):
        folder.mkdir(parents=True, exist_ok=True)
        self._show = show
        self._lines = (folder / "metrics.jsonl").open("a", encoding="utf-8")
        self._board = tf.summary.create_file_writer(str(folder / "tensorboard"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._lines.close()
        self._board.close()

    def record(self, metrics: Metrics) -> None:
        self._write({"kind": "train", **dataclasses.asdict(metrics)})
        with self._board.as_default(step=metrics.step):
            for name, value in metrics.losses.items():
                tf.summary.scalar(f"train/{name}", value)
            for name in ("learning_rate", "step_ms", "frames_per_second", "data_wait", "buffer_fill", "padding"):
                tf.summary.scalar(f"run/{name}", getattr(metrics, name))
        self._show(metrics)

    def record_validation(self, validation: Validation) -> None:
        self._write({"kind": "validation", "step": validation.step, "losses": validation.losses})
        with self._board.as_default(step=validation.step):
            for name, value in validation.losses.items():
                tf.summary.scalar(f"validation/{name}", value)
            for name in ("target", "spoken"):
                tf.summary.image(f"mel/{name}", colour(getattr(validation, name).T, 2)[None])
            tf.summary.image("alignment", colour(validation.path, 4)[None])
        self._show(validation)

    def record_event(self, event: Primed | Resized) -> None:
        self._write({"kind": type(event).__name__.lower(), **dataclasses.asdict(event)})
        self._show(event)

    def _write(self, line: dict) -> None:
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()
