"""What watching costs: log lines, samples and checkpoints, against none of them.

One trainer goes over the same batches again and again, with and without watching in turn. To tell the cost from the
noise of a shared machine, everything is watched five times as often as by default (the cost at the default cadence is
a fifth of what that costs), and each step's time is its median over the rounds. A stall is what a step takes longer
with watching than the same step without. Exits 1 when the cost is above 3 % or a stall above one median step.
Validation is left out of both, as it stops the loop by design.

    python benchmarks/watching.py [--rounds 9] [--batch-size 4]
"""

import argparse
import functools
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from myxtts.config.config import TrainingConfig
from myxtts.config.load import build
from myxtts.demo.corpus import make_corpus
from myxtts.training.trainer import XTTSTrainer

USUAL = TrainingConfig()
OFTEN = 5
WITH = {name: getattr(USUAL, name) // OFTEN for name in ("log_every", "save_every", "sample_every")}
WITHOUT = {"log_every": 10**9, "save_every": 10**9, "sample_every": 0}
STEPS = WITH["sample_every"]  # a round sees each kind of work at least once
LEAD = 10  # steps around a round that are not counted: the buffer fills, the last checkpoint is written
LIMIT = 1.03


class Bench:
    def __init__(self, home: str, batch_size: int):
        folder = make_corpus(Path(home) / "corpus", "espeak", 300, seed=0).folder
        config = build(
            {
                "data.train_data": str(folder),
                "data.cache_dir": f"{home}/cache",
                "data.batch_size": batch_size,
                "data.val_clips": 0,
                "training.checkpoint_dir": f"{home}/run",
                "training.guide_steps": 0,
                "training.max_steps": STEPS,
                **{f"training.{name}": value for name, value in WITH.items()},
            }
        )
        self._trainer = XTTSTrainer(config)
        self._take_step, self._begins = self._trainer.run.take_step, list[float]()
        self._trainer.run.take_step = self._timed  # type: ignore[method-assign]
        # What speaks in the first run has compiled what it needs; it speaks in all others, too.
        make = functools.cache(self._trainer.run.make_generator)
        self._trainer.run.make_generator = make  # type: ignore[method-assign]

    def _timed(self, batch):
        self._begins.append(time.perf_counter())
        return self._take_step(batch)

    def measure(self, cadence: dict[str, int]) -> np.ndarray:
        """Seconds from each step to the next; the work of every cadence falls into the middle of them."""
        trainer, first = self._trainer, STEPS // 2
        trainer.state.step = trainer.state.batches = first
        training = replace(trainer.config.training, max_steps=first + STEPS + 2 * LEAD, **cadence)
        trainer.config = replace(trainer.config, training=training)
        self._begins.clear()
        trainer.train()
        return np.diff(self._begins)[LEAD : LEAD + STEPS]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=4)
    options = parser.parse_args()
    found: dict[str, list[np.ndarray]] = {"with": [], "without": []}
    kinds = {"with": WITH, "without": WITHOUT}
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(home, options.batch_size)
        bench.measure(WITH)  # traces every shape
        for number in range(options.rounds):
            for kind in list(kinds)[:: 1 if number % 2 else -1]:
                found[kind].append(bench.measure(kinds[kind]))
            ratio = found["with"][-1].sum() / found["without"][-1].sum()
            print(f"round {number + 1}: {found['without'][-1].sum():.1f} s, watched x {ratio:.3f}", flush=True)
    one, other = (np.median(found[kind], axis=0) for kind in kinds)
    often = float(one.sum() / other.sum())
    cost = 1 + (often - 1) / OFTEN
    stall = float(np.max(one - other) / np.median(other))
    good = cost <= LIMIT and stall <= 1
    print(
        f"{'✅' if good else '❌'} watching costs x {cost:.3f} at the default cadence (log {USUAL.log_every}, save "
        f"{USUAL.save_every}, sample {USUAL.sample_every}; limit {LIMIT}), x {often:.3f} {OFTEN} times as often; "
        f"longest stall {stall:.2f} median steps"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
