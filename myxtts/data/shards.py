"""A dataset prepared in several shards, by jobs that know nothing of each other, on one machine or on many.

In: which shard of how many.
Out: a folder for each with what `build` writes of its lines; `prepare` joins those that it finds, and the pack is byte
     for byte that of one run.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from myxtts.errors import UsageError
from myxtts.files import lock, sync, write_whole

DONE = "done.json"  # written last: a folder without it is not whole
MOST = 100_000


class Shard(NamedTuple):
    """One of `of` parts of a metadata file, numbered from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, word: str) -> "Shard":
        """Reads `3/16`.

        Raises:
            UsageError: it names no shard.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", word)
        shard = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= shard.number <= shard.of <= MOST:
            raise UsageError(f"{word!r} names no shard; give its number and how many there are, such as 3/16")
        return shard

    def rows(self, total: int) -> range:
        """The lines of the metadata file, out of so many, that belong to it."""
        return range((self.number - 1) * total // self.of, self.number * total // self.of)


@dataclass(frozen=True)
class FinishedShard:
    """The folder of a shard that is whole, and the lines that it holds."""

    folder: Path
    rows: range


def shard_folder(root: Path, dataset: str, shard: Shard, key: str) -> Path:
    """Where a shard of a dataset is built; `key` is that of its content."""
    return root / f".shard-{dataset}-{shard.number}-{shard.of}-{key}"


def shard_lock(root: Path, key: str) -> Path:
    """Held by whoever works on the shard of that content."""
    return root / f".lock-shard-{key}"


def finish(folder: Path, accepted: int) -> None:
    """Marks a shard as whole."""
    write_whole(folder / DONE, json.dumps({"accepted": accepted}))
    sync(folder)


def accepted_in(folder: Path) -> int | None:
    """How many clips of a whole shard were accepted; None where it is not whole."""
    try:
        return int(json.loads((folder / DONE).read_text(encoding="utf-8"))["accepted"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_shards(root: Path, dataset: str, total: int, key_of: Callable[[range], str]) -> list[FinishedShard]:
    """The whole shards of just this content, in the order of their lines; of two that overlap the first.

    Args:
        root: the cache folder.
        dataset: the name of the dataset in it.
        total: lines of the metadata file.
        key_of: the content key of some of them, as they are now.
    """
    found: list[FinishedShard] = []
    for folder, shard, key in sorted(_folders(root, dataset), key=lambda one: one[1].rows(total).start):
        rows = shard.rows(total)
        fits = not found or found[-1].rows.stop <= rows.start
        if rows and fits and accepted_in(folder) is not None and key_of(rows) == key:
            found.append(FinishedShard(folder, rows))
    return found


def remove_shards(root: Path, dataset: str) -> None:
    """Deletes what was joined, and what belongs to an earlier state of the dataset."""
    for folder, _, key in _folders(root, dataset):
        with lock(shard_lock(root, key), None) as ours:
            if ours:  # nobody works on it
                shutil.rmtree(folder, ignore_errors=True)


def _folders(root: Path, dataset: str) -> Iterator[tuple[Path, Shard, str]]:
    for folder in root.glob(f".shard-{dataset}-*"):
        number, of, key = folder.name.rsplit("-", 3)[1:]
        yield folder, Shard(int(number), int(of)), key
