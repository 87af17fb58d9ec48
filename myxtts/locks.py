"""One process at a time: a lock on a file that ends with the process that holds it.

In: the path of a lock file.
Out: whether it is held.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


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
            if not path.exists() or path.stat().st_ino != os.fstat(handle).st_ino:
                continue  # whoever held it has removed it
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)
