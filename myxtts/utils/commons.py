"""Only the names that users' code relies on."""

from contextlib import AbstractContextManager

from myxtts.devices import best_device
from myxtts.runtime import import_tensorflow


def get_device_context(device: str | None = None) -> AbstractContextManager:
    """A `tf.device` scope: the given device, else the first GPU, else the CPU.

    Raises:
        UsageError: there is no such device here.
    """
    return import_tensorflow().device(best_device(device))
