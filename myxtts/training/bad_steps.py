"""Steps that were not finite: counted, and the end of a run when there are too many in a row.

In: for each step of a window whether it was bad, and its batch.
Out: counts; the batches of the current row.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from myxtts.errors import RunError

DUMP = "bad_batches.json"


class BadSteps:
    """Counts over a run and the row that is going on."""

    def __init__(self, most_in_row: int, skipped: int = 0, row: Sequence[int] = ()):
        self._most, self.skipped = most_in_row, skipped
        self.row: list[int] = list(row)

    def add(self, first_batch: int, skipped: Sequence[bool], bad: Sequence[bool]) -> None:
        """Notes the steps of a window.

        Args:
            first_batch: the batch of the window's first step.
            skipped: which steps changed nothing.
            bad: which of those have no excuse; in float16 a loss that was scaled too high is one.
        """
        self.skipped += sum(skipped)
        for number, is_bad in enumerate(bad, first_batch):
            if len(self.row) >= self._most:
                return
            self.row = [*self.row, number] if is_bad else []

    def copy(self) -> "BadSteps":
        return BadSteps(self._most, self.skipped, self.row)

    @property
    def too_many(self) -> bool:
        return len(self.row) >= self._most

    def dump(self, folder: Path, names: Callable[[int], list[str]]) -> RunError:
        """Writes the row's batches with their clips and returns the error that ends the run."""
        batches = [{"batch": number, "clips": names(number)} for number in self.row]
        (folder / DUMP).write_text(json.dumps(batches, ensure_ascii=False, indent=1), encoding="utf-8")
        return RunError(
            f"{len(self.row)} steps in a row were not finite (batches {self.row[0]} to {self.row[-1]}); the weights "
            f"before them are saved. Their clips are in {folder / DUMP}: listen to them, or resume "
            "with a lower `training.lr`"
        )
