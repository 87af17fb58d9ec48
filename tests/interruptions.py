"""Runs that are stopped and killed at random moments, beside one that is not."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint
from tests.helpers import PATIENCE

SAVE_EVERY = 3


@contextmanager
def ended_by(number: int, command: list[str]) -> Iterator[Iterator[int]]:
    """Runs a training for as long as the block takes, ends it by a signal; gives the steps as they are printed."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")
        yield (int(line.split()[1]) for line in lines if line.startswith("step "))
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), errors


def interrupt_again_and_again(
    corpus: Path, config: Path, home: Path, times: int, steps: int, seed: int, sample_every: int
) -> list[signal.Signals]:
    """Ends a run `times` times by SIGTERM or kill -9, resumes it each time, and compares the weights after `steps`.

    No run comes near a limit of its own: it could be over before the signal comes, and the limit leads the learning
    rate. The last one, and the one beside, are stopped once the checkpoint to compare has been handed over.

    Returns:
        The signals that ended it.

    Raises:
        AssertionError: a checkpoint cannot be read, a run cannot go on, or the weights differ.
    """
    assert steps % SAVE_EVERY == 0
    chance = random.Random(seed)
    common = [
        "--train-data", corpus, "--config", config, "--cache-dir", home / "cache", "--max-steps", 100_000,
        "--save-every", SAVE_EVERY, "--keep", 100_000, "--val-every", 20, "--sample-every", sample_every,
        "--log-every", 1,
    ]  # fmt: skip

    def command(run: Path) -> list[str]:
        resume = ["--resume"] if (run / "latest").exists() else []
        return [sys.executable, "-m", "myxtts", *map(str, ["train", "--checkpoint-dir", run, *common, *resume])]

    broken, kinds = home / "broken", []
    while len(kinds) < times:
        kinds.append(chance.choice([signal.SIGTERM, signal.SIGKILL]))
        with ended_by(kinds[-1], command(broken)) as printed:
            for _ in range(chance.randrange(1, max(2, steps // times))):
                next(printed)
            time.sleep(chance.uniform(0, 0.1))  # somewhere in a step, or while it saves
        if (broken / "latest").is_symlink():
            for name in ("latest", "best"):
                if (broken / name).is_symlink():
                    read_checkpoint(find_checkpoint(broken, (name,)))
    for run in (broken, home / "whole"):
        with ended_by(signal.SIGTERM, command(run)) as printed:
            assert any(step > steps for step in printed)
    one, other = (read_checkpoint(home / name / f"step-{steps:08d}") for name in ("whole", "broken"))
    assert one.state.step == other.state.step == steps
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)
    print(f"{len(kinds)} interruptions, {kinds.count(signal.SIGKILL)} of them kill -9: equal weights")
    return kinds
