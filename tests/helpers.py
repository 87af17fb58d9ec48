"""What several tests ask."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from myxtts.checkpoint.weights import AVERAGE, part_of

if TYPE_CHECKING:  # conftest needs this module before TensorFlow may start
    from selenium.webdriver.remote.webdriver import WebDriver

    from myxtts.training.trainer import XTTSTrainer

PATIENCE = 1800.0  # seconds; ends a test that hangs. No machine is so slow, so that this measures nothing


def _feeds() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "feed"]


def running_feeds() -> int:
    return len(_feeds())


def feeds_end() -> bool:
    """Whether every feed's thread of this process ends by itself."""
    for thread in _feeds():
        thread.join(PATIENCE)
    return not running_feeds()


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether the condition holds in the end; for what cannot be waited for otherwise."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


def open_page(browser: "WebDriver", page: Path) -> None:
    """Returns when the page has loaded; a browser that starts cold may show a part of it first."""
    browser.get(page.as_uri())
    browser.execute_async_script(
        "const done = arguments[0];"
        "if (document.readyState === 'complete') done(); else window.addEventListener('load', () => done());"
    )


def flat(arrays: Mapping[str, np.ndarray], part: str = "parameters") -> np.ndarray:
    """All arrays of one part of a checkpoint, one behind the other."""
    return np.concatenate([array.ravel() for name, array in arrays.items() if name.startswith(f"{part}/")])


def begins_with(trainer: "XTTSTrainer", arrays: Mapping[str, np.ndarray]) -> None:
    """Raises AssertionError unless a trainer's weights are the averaged ones of a checkpoint."""
    average = part_of(arrays, AVERAGE)
    assert average.keys() == trainer.run.step.named_weights().keys()
    for name, weight in trainer.run.step.named_weights().items():
        np.testing.assert_array_equal(weight, average[name].astype(np.float32), err_msg=name)


def weights_of(trainer: "XTTSTrainer") -> np.ndarray:
    return flat(trainer.run.step.arrays())


LISTENER = f"""#!{sys.executable}
import json, sys
job = json.load(sys.stdin)
clip = {{"dnsmos": 3.0}}
if "cer" in job["measures"]: clip["heard"] = "good day"
if "similarity" in job["measures"]: clip["similarity"] = 0.5
if "pesq" in job["measures"]: clip |= {{"pesq": 2.5, "stoi": 0.9}}
print(json.dumps({{"clips": [clip] * len(job["clips"]), "missing": {{}}}}))
"""


def make_listener(folder: Path) -> Path:
    """A stand-in for the Python that has the measuring packages, which are large and fetch their models."""
    path = folder / "listener"
    path.write_text(LISTENER)
    path.chmod(0o755)
    return path
