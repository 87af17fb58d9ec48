"""The bounded buffer between the device that prepares and the device that trains.

In: items put by the producer thread.
Out: the same items in order, or the producer's exception.
"""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


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
    """A few slots; `put` waits while they are full, `get` while they are empty, and `close` wakes both."""

    def __init__(self, slots: int):
        self.slots = slots
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._found_full = self._found_empty = self._taken = 0
        self._least = slots
        self._error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        with self._changed:
            self._found_full += len(self._items) >= self.slots
            self._changed.wait_for(lambda: self._closed or len(self._items) < self.slots)
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def wait_for(self, count: int, seconds: float) -> None:
        """Waits until so many items are there, or no more will come, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) >= min(count, self.slots), seconds)

    def get(self, seconds: float | None = None) -> Item:
        """The next item; once the buffer is closed and empty, the producer's error or `Closed`.

        Raises:
            Stalled: nothing came for so many seconds.
        """
        with self._changed:
            self._taken += 1
            self._found_empty += not self._items
            self._least = min(self._least, len(self._items))
            if not self._changed.wait_for(lambda: self._closed or self._items, seconds):
                raise Stalled
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            raise self._error or Closed

    def resize(self, slots: int) -> None:
        with self._changed:
            self.slots = slots
            self._changed.notify_all()

    def take_waits(self) -> "Waits":
        """How often each side had to wait since the last call, which starts anew."""
        with self._changed:
            waits = Waits(self._taken, self._found_empty, self._found_full, self._least)
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
