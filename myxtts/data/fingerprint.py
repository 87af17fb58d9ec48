"""The content of recordings as hashes, read again only where a file may have changed.

In: paths.
Out: SHA-256 of each file's bytes; a small file in the cache folder remembers them between runs.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from myxtts.data.parallel import map_in_order
from myxtts.files import write_whole

SETTLED_SECONDS = 2.0  # a file younger than this may change again without a new time stamp
Signature = list[int]


def signature(path: Path) -> Signature | None:
    """What changes when a file is written, replaced or renamed (the change time cannot be set); None without one."""
    try:
        facts = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        return None
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]


class Fingerprints:
    """Hashes of the files of one dataset. A context manager: what was learned is kept on the way out."""

    def __init__(self, folder: Path, cache_root: Path):
        name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
        self._memory = cache_root / f"hashes-{name}.json"
        self._known: dict[str, list] = {}  # path: [signature, hash]
        self._changed = False

    def __enter__(self) -> Self:
        self._known = self._read()
        return self

    def _read(self) -> dict[str, list]:
        try:
            known = json.loads(self._memory.read_text(encoding="utf-8"))
            return {path: [list(seen), str(content)] for path, (seen, content) in known.items()}
        except (FileNotFoundError, ValueError, TypeError, AttributeError):
            return {}  # it only saves time: now every file is read

    def __exit__(self, *_error: object) -> None:
        if self._changed:
            write_whole(self._memory, json.dumps({**self._read(), **self._known}))  # others may have added theirs

    def hash_files(self, paths: Sequence[Path], workers: int) -> Iterator["Fingerprint"]:
        """What each path held, in order."""
        for path, found in zip(paths, map_in_order(self._look_up, paths, workers), strict=True):
            if found.settled and self._known.get(str(path)) != [found.signature, found.content]:
                self._known[str(path)] = [found.signature, found.content]
                self._changed = True
            yield found

    def _look_up(self, path: Path) -> "Fingerprint":
        before = signature(path)
        if before is None:
            return Fingerprint("missing", None)
        known = self._known.get(str(path))
        if known and known[0] == before:
            return Fingerprint(known[1], before)
        begin = time.time()
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return Fingerprint("unreadable", before)  # `examine` says why
        return Fingerprint(content, before, max(before[1], before[2]) < (begin - SETTLED_SECONDS) * 1e9)


class Fingerprint(NamedTuple):
    """A file's SHA-256, or a word where it could not be read, and what its file system said before that."""

    content: str
    signature: Signature | None
    settled: bool = False
