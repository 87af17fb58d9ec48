"""How far the host may run ahead of the device.

In: a result of each step, as soon as the step was begun.
Out: a wait, where too many steps are under way.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import tensorflow as tf

STEPS = 2


class RunAhead:
    """Keeps at most so many steps under way when the next one is begun; use it as a context manager.

    Nothing else holds the host back: a card takes launches as long as it has memory for them. A result is read by a
    thread of its own right after its step was begun, because TensorFlow reads only after all that was begun before the
    read, and a read by the loop itself would wait for the newest step too.
    """

    def __init__(self, steps: int = STEPS):
        self._steps = steps
        self._under_way: deque[Future] = deque()
        self._reader = ThreadPoolExecutor(1, "run ahead")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._reader.shutdown(cancel_futures=True)

    def add(self, result: tf.Tensor) -> None:
        """Notes that a step was begun, by one of its scalars; waits for the step so many before it."""
        self._under_way.append(self._reader.submit(result.numpy))  # host sync, in that thread
        while len(self._under_way) > self._steps:
            self._under_way.popleft().result()
