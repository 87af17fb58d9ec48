"""Which device prepares the data and which one trains. The only module that knows device names.

In: what TensorFlow finds on this machine.
Out: a DevicePlan whose names every other module passes on.
"""

import ctypes
import os
import sys
import tempfile
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class DevicePlan:
    """Names of the two roles; equal when one device does both."""

    data_device: str
    model_device: str


def import_tensorflow() -> ModuleType:
    """TensorFlow without its start-up chatter on standard error; all of it is shown when the import fails."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _keep_freed_memory()
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as chatter:
        os.dup2(chatter.fileno(), 2)
        try:
            import tensorflow
        except BaseException:
            chatter.seek(0)
            os.write(saved, chatter.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
    return tensorflow


def _keep_freed_memory() -> None:
    """Lets glibc hand freed megabytes to the next tensor instead of back to the system.

    A step frees and allocates the same large buffers again and again; giving them back makes every step pay for
    fresh pages (benchmarks/memory.py prints how much). Other C libraries are left as they are.
    """
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # names of mallopt(3)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_threshold, 32 << 20)
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(top_pad, 64 << 20)


def plan_devices() -> DevicePlan:
    """Both roles on the first GPU, or on the CPU where there is none."""
    tf = import_tensorflow()
    name = "/GPU:0" if tf.config.list_physical_devices("GPU") else "/CPU:0"
    return DevicePlan(name, name)
