"""What several tests ask."""

import threading
import time

import numpy as np

from myxtts.training.trainer import XTTSTrainer

WITHIN = 60.0  # seconds; a thread that was told to end may first have to finish compiling, on a busy machine


def running_feeds() -> int:
    return sum(thread.name == "feed" for thread in threading.enumerate())


def feeds_end() -> bool:
    """Whether every feed's thread of this process ends by itself."""
    deadline = time.monotonic() + WITHIN
    while running_feeds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not running_feeds()


def weights_of(trainer: XTTSTrainer) -> np.ndarray:
    return trainer.step.arrays()["weights"]
