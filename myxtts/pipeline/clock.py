"""Time spent in each stage, shared by trainer and profiler.

In: stages as `with clock.time("load"):` from any thread.
Out: seconds by stage since the last `take`.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class StageClock:
    """Sums of wall time by stage name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Adds the time of the block to a stage."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(stage, time.perf_counter() - begin)

    def add(self, stage: str, seconds: float) -> None:
        with self._lock:
            self._seconds[stage] += seconds

    def take(self) -> dict[str, float]:
        """Seconds by stage since the last call, which starts anew."""
        with self._lock:
            taken = dict(self._seconds)
            self._seconds.clear()
        return taken
