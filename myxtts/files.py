"""Files that survive a kill: a lock that ends with the process that holds it, and content that is on the disk.

In: the path of a lock file, or of what was written.
Out: whether the lock is held.
"""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from myxtts.errors import UsageError


@contextmanager
def lock(path: Path, waiting: Callable[[], None] | None) -> Iterator[bool]:
    """Holds a lock that dies with the process. With `waiting` None it does not wait; yields whether it is held."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting is None:
                    yield False
                    return
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                ours = path.stat().st_ino == os.fstat(handle).st_ino
            except FileNotFoundError:
                ours = False
            if not ours:
                continue  # whoever held it has removed it
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Writes a file that is at any moment the old one or the new one, never a part of it."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as file:
        unfinished = Path(file.name)
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


def sync(path: Path) -> None:
    """Returns when a file's content, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cache_home() -> Path:
    """The folder for all that can be made again."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "myxtts"
    try:
        return Path.home() / ".cache" / "myxtts"
    except RuntimeError:
        raise UsageError("this user has no home folder; set XDG_CACHE_HOME to a folder for caches") from None
