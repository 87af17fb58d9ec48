"""Slow work beside the loop: a thread that does one job after another.

In: jobs from the training thread.
Out: what they report, for the training thread to take when it has time.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Self, TypeVar

Report = TypeVar("Report")
WAITING = 2  # jobs that may wait before `do` waits itself: each holds a copy of the weights


class BackgroundWorker(Generic[Report]):
    """Use it as a context manager: leaving it waits for the jobs that were given, or after an error for one only."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], Report | None] | None] = queue.Queue(WAITING)
        self._reports: deque[Report] = deque()
        self._error: BaseException | None = None
        self._drops = False
        self._thread = threading.Thread(target=self._work, name="background worker", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        self._drops = kind is not None
        self._jobs.put(None)
        self._thread.join()

    def do(self, job: Callable[[], Report | None]) -> None:
        """Gives a job; what it returns is its report."""
        self._jobs.put(job)

    def take_reports(self) -> list[Report]:
        """What finished jobs have reported since the last call.

        Raises:
            Exception: a job's own; jobs report what can go wrong, so this is a mistake in one of them.
        """
        if self._error is not None:
            raise self._error
        return [self._reports.popleft() for _ in range(len(self._reports))]

    def finish(self) -> list[Report]:
        """Waits for all jobs and takes their reports."""
        self._jobs.join()
        return self.take_reports()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                report = None if self._drops else job()
                if report is not None:
                    self._reports.append(report)
            except BaseException as error:  # raised by `take_reports` in the training thread
                self._error = error
            finally:
                self._jobs.task_done()
