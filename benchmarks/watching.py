"""What watching costs: log lines, pictures, samples and checkpoints at their default cadence, against none of them.

Trains the same steps with and without, in turn, in one process, and prints the median of the ratios and the longest
stall: the longest interval between two steps less the median one. Exits 1 when the cost is above 3 % or a stall above
one median step. Validation is left out of both, as it stops the loop by design.

    python benchmarks/watching.py [--steps 1020] [--rounds 3]
"""

import argparse
import statistics
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

NEVER = 10**9
LIMIT = 1.03
WARM = 200  # steps in which shapes are traced and the sampler is made


def measure(trainer: XTTSTrainer) -> tuple[float, float]:
    """Seconds of the steps after the warm ones, and the longest stall in median steps of the same shape."""
    begins, shapes = [], []
    original = trainer._take_step

    def timed(batch, rate):
        begins.append(time.perf_counter())
        shapes.append(batch.mel.shape[1])
        return original(batch, rate)

    trainer._take_step = timed
    trainer.train()
    intervals, shape = np.diff(begins)[WARM:], np.array(shapes[WARM:-1])
    stalls = [float(np.max(intervals[shape == s]) / np.median(intervals[shape == s])) - 1 for s in set(shape)]
    return float(intervals.sum()), max(stalls)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1020)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    usual = TrainingConfig()
    found: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as home:
        folder = make_corpus(Path(home) / "corpus", "espeak", 300, seed=0).folder
        config = build(
            {
                "data.train_data": str(folder),
                "data.cache_dir": f"{home}/cache",
                "data.batch_size": 4,
                "data.val_clips": 0,
                "training.max_steps": options.steps,
            }
        )
        for number in range(options.rounds):
            for kind, measured in found.items():
                training = replace(config.training, checkpoint_dir=f"{home}/{kind}-{number}")
                if kind == "without":
                    training = replace(training, log_every=NEVER, save_every=NEVER, sample_every=0)
                measured.append(measure(XTTSTrainer(replace(config, training=training))))
                print(f"{kind}: {measured[-1][0]:.1f} s, longest stall {measured[-1][1]:.2f} steps", flush=True)
    ratio = statistics.median(one[0] / other[0] for one, other in zip(found["with"], found["without"], strict=True))
    stall, usual_stall = (statistics.median(s for _, s in found[kind]) for kind in ("with", "without"))
    good = ratio <= LIMIT and stall <= max(1.0, usual_stall)
    print(
        f"{'✅' if good else '❌'} watching (log {usual.log_every}, save {usual.save_every}, sample "
        f"{usual.sample_every}) costs x {ratio:.3f} (limit {LIMIT}); longest stall {stall:.2f} median steps, "
        f"{usual_stall:.2f} without"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
