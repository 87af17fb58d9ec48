"""Runs that are stopped and killed at random moments, beside one that is not."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from myxtts.training.checkpoint import find_checkpoint, read_checkpoint


def interrupt_again_and_again(corpus: Path, config: Path, home: Path, times: int, steps: int, seed: int) -> None:
    """Ends a run `times` times by SIGTERM or kill -9, resumes it each time, and compares the weights at the end.

    Samples are spoken every 30 steps, so runs of fewer steps need not compile what speaks them.

    Raises:
        AssertionError: a checkpoint cannot be read, a run cannot go on, or the weights differ.
    """
    chance = random.Random(seed)
    common = [
        "--train-data", corpus, "--config", config, "--cache-dir", home / "cache", "--max-steps", steps,
        "--save-every", 3, "--val-every", 20, "--sample-every", 30, "--log-every", 1,
    ]  # fmt: skip

    def command(run: Path) -> list[str]:
        resume = ["--resume"] if (run / "latest").exists() else []
        return [sys.executable, "-m", "myxtts", *map(str, ["train", "--checkpoint-dir", run, *common, *resume])]

    subprocess.run(command(home / "whole"), check=True, capture_output=True)
    broken, kinds = home / "broken", []
    while len(kinds) < times:
        number = chance.choice([signal.SIGTERM, signal.SIGKILL])
        with subprocess.Popen(command(broken), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            wanted = chance.randrange(1, max(2, steps // times))
            lines = (line for line in iter(process.stdout.readline, "") if line.startswith("step "))
            for _ in range(wanted):
                next(lines, None)
            time.sleep(chance.uniform(0, 0.1))  # somewhere in a step, or while it saves
            process.send_signal(number)
            _, errors = process.communicate(timeout=120)
        kinds.append(number)
        assert process.returncode in (-signal.SIGKILL, 128 + signal.SIGTERM), errors
        if (broken / "latest").is_symlink():
            for name in ("latest", "best"):
                if (broken / name).is_symlink():
                    read_checkpoint(find_checkpoint(broken, (name,)))
    subprocess.run(command(broken), check=True, capture_output=True)
    one, other = (read_checkpoint(home / name / "latest") for name in ("whole", "broken"))
    assert one.state.step == other.state.step == steps
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)
    print(f"{len(kinds)} interruptions, {kinds.count(signal.SIGKILL)} of them kill -9: equal weights")
