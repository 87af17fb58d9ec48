"""Only the names that users' code relies on."""

from contextlib import AbstractContextManager

from myxtts.devices import import_tensorflow, plan_devices


def get_device_context(device: str | None = None) -> AbstractContextManager:
    """A `tf.device` scope: the given device, else the first GPU, else the CPU."""
    return import_tensorflow().device(device or plan_devices().model_device)
