"""Time spent in each stage, shared by trainer and profiler.

In: stages as `with clock.time("load", number):` from any thread.
Out: seconds by stage since the last `take`; each single span too, where they are kept.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Span(NamedTuple):
    """One stage of one batch; times are of the clock's `now`."""

    stage: str
    number: int
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class StageClock:
    """Sums of wall time by stage name.

    Args:
        keep_spans: also keep every span; a long run would fill the memory with them.
        now: tells the time in seconds; who is given the clock measures its own waits by it too.
    """

    def __init__(self, keep_spans: bool = False, now: Callable[[], float] = time.perf_counter) -> None:
        self.now = now
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = defaultdict(float)
        self._keep_spans = keep_spans
        self.spans: list[Span] = []
        self.levels: list[tuple[float, int]] = []  # when, and how many batches stood ready

    @contextmanager
    def time(self, stage: str, number: int) -> Iterator[None]:
        """Adds the time of the block to a stage."""
        begin = self.now()
        try:
            yield
        finally:
            self.add(Span(stage, number, begin, self.now()))

    def add(self, span: Span) -> None:
        with self._lock:
            self._seconds[span.stage] += span.seconds
            if self._keep_spans:
                self.spans.append(span)

    def note_level(self, ready: int) -> None:
        """Notes how many batches stand ready now, where spans are kept."""
        if self._keep_spans:
            self.levels.append((self.now(), ready))

    def take(self) -> dict[str, float]:
        """Seconds by stage since the last call, which starts anew."""
        with self._lock:
            taken = dict(self._seconds)
            self._seconds.clear()
        return taken
