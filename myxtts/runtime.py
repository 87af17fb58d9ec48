"""TensorFlow as every room gets it: quiet, its code kept between runs, its memory kept between steps.

In: nothing; the environment as the user set it.
Out: the module. It does not choose devices; `devices.py` does.
"""

import ctypes
import functools
import logging
import os
import sys
import tempfile
from types import ModuleType

from myxtts.compiled import keep_compiled


@functools.cache
def import_tensorflow() -> ModuleType:
    """TensorFlow without its start-up chatter on standard error; all of it is shown when the import fails."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _set_xla_flags()
    keep_compiled()
    keep_freed_memory()
    if sys.stderr is not None:
        sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as chatter:
        os.dup2(chatter.fileno(), 2)
        try:
            import tensorflow
        except Exception:
            chatter.seek(0)
            os.write(saved, chatter.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
    tensorflow.get_logger().addFilter(_is_news)
    return tensorflow


def _set_xla_flags() -> None:
    """Has XLA keep what is half precision in half precision, unless the user's own flags say otherwise.

    By itself it leaves out a rounding to bfloat16 that is followed by a widening, and then carries float32 from kernel
    to kernel: an eighth more bytes in a training step (`make gpu-code`).
    """
    flag, found = "--xla_allow_excess_precision", os.environ.get("XLA_FLAGS", "")
    if flag not in found:
        os.environ["XLA_FLAGS"] = f"{found} {flag}=false".strip()


def _is_news(record: logging.LogRecord) -> bool:
    """False for TensorFlow's advice on retracing: traces are few, and they are counted."""
    return "triggered tf.function retracing" not in record.getMessage()


def keep_freed_memory() -> None:
    """Lets glibc hand freed megabytes to the next tensor instead of back to the system.

    A step frees and allocates the same large buffers again and again; giving them back makes every step pay for
    fresh pages (benchmarks/memory.py prints how much). A flat vector of a larger model is beyond the highest threshold
    for memory of its own, so there is none. Other C libraries are left as they are.
    """
    trim_threshold, top_pad, mmap_max = -1, -2, -4  # names of mallopt(3)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_max, 0)
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(top_pad, 64 << 20)
