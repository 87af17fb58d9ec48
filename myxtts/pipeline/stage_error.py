"""Errors that say in which stage they happened.

In: the stage, the batch and its clips.
Out: one line of plain words instead of TensorFlow's text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import tensorflow as tf

from myxtts.compiled import explain_unwritten
from myxtts.errors import RunError, UsageError

SHOWN = 4  # clips named in a message


class StageError(RunError):
    """A stage failed on a batch."""

    def __init__(self, stage: str, number: int, clips: Sequence[str], cause: BaseException):
        self.stage, self.number, self.clips = stage, number, list(clips)
        unwritten = explain_unwritten(str(cause))  # a full disk is a resource that is exhausted, too
        self.out_of_memory = isinstance(cause, tf.errors.ResourceExhaustedError) and not unwritten
        super().__init__(f"{stage} failed on batch {number} (clips {some(self.clips)}): {unwritten or _plain(cause)}")


def some(names: Sequence[str]) -> str:
    """The first few of many names."""
    return ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")


@contextmanager
def naming_stage(stage: str, number: int, clips: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Turns any error of the block into a `StageError`; `clips` is asked only then."""
    try:
        yield
    except (StageError, UsageError):
        raise
    except Exception as error:
        try:
            names = clips()
        except Exception:
            names = ["unknown"]  # what went wrong first matters more
        raise StageError(stage, number, names, error) from error


def _plain(error: BaseException) -> str:
    """The last telling line of an error; TensorFlow puts whole tracebacks into its messages."""
    if isinstance(error, tf.errors.OpError):
        lines = [line for line in error.message.splitlines() if re.match(r"\w*(Error|Exception|Interrupt)\b", line)]
        return f"{type(error).__name__}: {lines[0] if lines else error.message.splitlines()[0]}"[:300]
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
