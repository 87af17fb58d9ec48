"""Work on many items in threads, results in order, and only so far ahead that memory stays flat.

In: a function and items.
Out: an iterator over the results.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 4  # results that may wait, for each worker


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, ahead: int = AHEAD
) -> Iterator[Result]:
    """Yields `function(item)` for each item, at most `ahead` results a worker early.

    Leaving the loop early cancels what has not begun.
    """
    source = iter(items)
    pool = ThreadPoolExecutor(workers)
    try:
        waiting: deque[Future[Result]] = deque(pool.submit(function, item) for item in islice(source, ahead * workers))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(function, item) for item in islice(source, 1))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)
