"""What is done, and what is to be typed, when memory runs out.

In: the batch that did not fit, settings and in how many parts a batch is worked through.
Out: a notice that smaller parts are tried, or an error with the flags that help.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from myxtts.batch import StepInput
from myxtts.config.config import XTTSConfig
from myxtts.errors import RunError
from myxtts.pipeline.stage_error import StageError, some


def make_room(batch: StepInput, config: XTTSConfig, parts: int, too_large: str) -> tuple[int, str]:
    """How many more parts, smaller ones, are tried, and a notice of it; `too_large` advises where rows are single.

    Raises:
        RunError: that is not wanted or not possible.
    """
    held = batch.shards[0]  # what one device works on
    rows = held.rows // parts
    shape = f"{batch.mel_shape[1]} frames"
    shape = f"{held.tokens} tokens x {shape}" if held.tokens else shape
    found = f"out of memory with `data.batch_size={config.device_clips // parts}` at the bucket of {shape}"
    if rows == 1:
        raise RunError(f"{found}; {too_large}")
    times = next(factor for factor in range(2, rows + 1) if rows % factor == 0)  # parts stay of equal size
    smaller = f"`data.batch_size={config.device_clips // parts // times}` `training.grad_accum={times * parts}`"
    if not config.training.auto_batch:
        raise RunError(
            f"{found}; set {smaller} (the same result in less memory), add `training.auto_batch`, "
            "or lower `data.prefetch` and `data.pipeline_buffer_size`"
        )
    return times, f"{found}; continues with {smaller}"


@contextmanager
def explaining_memory(config: XTTSConfig, parts: Callable[[], int]) -> Iterator[None]:
    """Adds what to type to a stage's error when its cause is memory."""
    try:
        yield
    except StageError as error:
        if not error.out_of_memory:
            raise
        rows = config.device_clips // parts()
        buffers = "`data.prefetch` or `data.pipeline_buffer_size`"
        advice = f"lower `data.batch_size={rows}`, `training.grad_accum={parts()}`, {buffers}"
        raise RunError(
            f"out of memory: {error.stage} on batch {error.number} ({some(error.clips)}); {advice}"
        ) from error
