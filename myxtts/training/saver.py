"""Checkpoints written beside the loop, which goes on when one cannot be written.

In: checkpoints whose arrays are copies.
Out: folders as `checkpoint` writes them, or a notice.
"""

from functools import partial
from pathlib import Path

import numpy as np

from myxtts.checkpoint.folder import Checkpoint, validation_loss, write_checkpoint
from myxtts.checkpoint.weights import PARAMETERS, part_of
from myxtts.errors import RunError
from myxtts.training.background import BackgroundWorker
from myxtts.training.metrics import Event, Notice

TRIES = 3  # failures in a row that end the run


class Saver:
    """Writes into one run folder; `step` is the last one that it was given.

    `best` points at the lowest validation loss that is on the disk, or at the newest where no loss judges.
    """

    def __init__(self, run: Path, keep: int, worker: BackgroundWorker[Event], step: int, judged: bool):
        self.run, self.step = run, step
        self._judged, self._best_loss = judged, validation_loss(run / "best")
        self._keep, self._worker = keep, worker
        self._failures: list[str] = []

    def save(self, checkpoint: Checkpoint) -> None:
        """Gives a checkpoint to be written.

        Raises:
            RunError: the last few could not be written.
        """
        if len(self._failures) >= TRIES:
            raise RunError(f"{self._failures[-1]} ({TRIES} tries in a row); make room and `resume`")
        self.step = checkpoint.state.step
        self._worker.do(partial(self._write, checkpoint))

    @property
    def failed(self) -> bool:
        """Whether the last checkpoint that was tried is not on the disk."""
        return bool(self._failures)

    def require_saved(self) -> None:
        """To be called when all jobs are done.

        Raises:
            RunError: the last checkpoint is not on the disk.
        """
        if self._failures:
            raise RunError(self._failures[-1])

    def _write(self, checkpoint: Checkpoint) -> Notice | None:
        step, loss = checkpoint.state.step, checkpoint.state.loss
        best = not self._judged or (loss is not None and loss < self._best_loss)
        if not all(np.isfinite(array).all() for array in part_of(checkpoint.arrays, PARAMETERS).values()):
            self._failures += [
                f"the weights are no longer numbers at step {step}; earlier checkpoints in {self.run} are kept: "
                "resume from one with a lower `training.lr`"
            ] * TRIES
            return None
        try:
            write_checkpoint(self.run, checkpoint, self._keep, best)
        except RunError as error:
            self._failures.append(str(error))
            return Notice(step, f"{error}; training goes on and tries again at the next one")
        self._failures.clear()
        if best and loss is not None:
            self._best_loss = loss
        return None
