"""The bounded buffer between the device that prepares and the device that trains.

In: items put by the producer thread.
Out: the same items in order, or the producer's exception.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
LOOK_SECONDS = 0.2  # between two looks at what ends a wait from outside


class Closed(Exception):
    """The other side has gone; there is nothing more to do."""


class Stalled(Exception):
    """Nothing came for too long."""


@dataclass(frozen=True)
class Waits:
    """Of so many items taken: how often the buffer was empty, how often full, and the least that it held."""

    taken: int
    empty: int
    full: int
    least: int


class BoundedBuffer(Generic[Item]):
    """A few slots; `put` waits while they are full, `get` while they are empty, and `close` wakes both.

    Args:
        slots: how many items may wait.
        now: tells the time in seconds, by which waits are called too long.
    """

    def __init__(self, slots: int, now: Callable[[], float] = time.perf_counter):
        self.slots, self._now = slots, now
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._found_full = self._found_empty = self._taken = 0
        self._least = slots
        self._error: BaseException | None = None
        self._wanted = False

    def __len__(self) -> int:
        return len(self._items)

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, item: Item) -> None:
        with self._changed:
            self._found_full += len(self._items) >= self.slots
            self._changed.wait_for(lambda: self._closed or len(self._items) < self.slots)
            if self._closed:
                raise Closed
            self._items.append(item)
            self._wanted = False
            self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Waits until an item could be put.

        Raises:
            Closed: nobody takes items any more.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self.slots)
            if self._closed:
                raise Closed

    def wait_for(self, count: int, seconds: float, stop: threading.Event) -> None:
        """Waits until so many items are there or no more will come.

        Raises:
            Stalled: that took longer than so many seconds.
            Closed: `stop` was set meanwhile.
            BaseException: the producer's own.
        """
        with self._changed:
            self._wait(lambda: len(self._items) >= min(count, self.slots), seconds, stop)

    def wait_until_wanted(self) -> None:
        """For a producer that makes nothing ahead: waits until `get` waits for an item.

        Raises:
            Closed: nobody will.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._wanted)
            if self._closed:
                raise Closed

    def get(self, seconds: float, stop: threading.Event) -> Item:
        """The next item. An error of the producer comes before the items that were made ahead of it.

        Raises:
            Stalled: nothing came for so many seconds.
            Closed: nothing more will come, or `stop` was set.
            BaseException: the producer's own.
        """
        with self._changed:
            self._taken += 1
            self._found_empty += not self._items
            self._least = min(self._least, len(self._items))
            self._wanted = True
            self._changed.notify_all()
            try:
                self._wait(lambda: bool(self._items), seconds, stop)
            finally:
                self._wanted = False
            if not self._items:
                raise Closed
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def _wait(self, done: Callable[[], bool], seconds: float, stop: threading.Event) -> None:
        """Waits for the condition; looks for `stop` now and then, because a signal handler cannot notify."""
        deadline = self._now() + seconds
        while not stop.is_set() and self._now() < deadline:
            if self._changed.wait_for(lambda: self._closed or done(), min(LOOK_SECONDS, seconds)):
                if self._error is not None:
                    raise self._error
                return
        raise Closed if stop.is_set() else Stalled

    def resize(self, slots: int) -> None:
        with self._changed:
            self.slots = slots
            self._changed.notify_all()

    @property
    def waits(self) -> Waits:
        """How often each side had to wait since `take_waits`."""
        with self._changed:
            return Waits(self._taken, self._found_empty, self._found_full, self._least)

    def take_waits(self) -> Waits:
        """How often each side had to wait since the last call, which starts anew."""
        with self._changed:  # reentrant
            waits = self.waits
            self._taken = self._found_empty = self._found_full = 0
            self._least = self.slots
        return waits

    def clear(self) -> None:
        """Lets go of what nobody will take."""
        with self._changed:
            self._items.clear()

    def close(self, error: BaseException | None = None) -> None:
        """No more items will come; what is already there can still be taken."""
        with self._changed:
            self._closed = True
            self._error = self._error or error
            self._changed.notify_all()
