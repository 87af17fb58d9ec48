"""What several tests ask."""

import threading
import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # conftest needs this module before TensorFlow may start
    from myxtts.training.trainer import XTTSTrainer

WITHIN = 1800.0  # seconds; the last resort against what hangs, on however busy a machine


def running_feeds() -> int:
    return sum(thread.name == "feed" for thread in threading.enumerate())


def feeds_end() -> bool:
    """Whether every feed's thread of this process ends by itself."""
    deadline = time.monotonic() + WITHIN
    while running_feeds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not running_feeds()


def weights_of(trainer: "XTTSTrainer") -> np.ndarray:
    return trainer.step.arrays()["weights"]
