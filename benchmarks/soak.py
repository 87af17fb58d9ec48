"""A long run on two parts of the CPU: memory, threads and traces stay as they are.

Prints a line every minute; exits 1 when, after a fifth of the time, resident memory grows by more than 2 %, a thread is
added or something is traced anew.

    python benchmarks/soak.py [--minutes 30]
"""

import argparse
import sys
import tempfile
import threading
from pathlib import Path

from myxtts.config.load import build
from myxtts.demo.corpus import make_corpus
from myxtts.training.metrics import Metrics
from myxtts.training.trainer import XTTSTrainer

GROWTH = 1.02


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as home:
        folder = make_corpus(Path(home) / "corpus", "espeak", 600, seed=0).folder
        config = build(
            {
                "data.train_data": str(folder),
                "data.cache_dir": f"{home}/cache",
                "data.batch_size": 16,
                "data.virtual_devices": 2,
                "data.data_gpu": 0,
                "data.model_gpu": 1,
                "training.checkpoint_dir": f"{home}/run",
                "training.max_minutes": minutes,
                "training.val_every": 200,
                "training.save_every": 200,
                "training.sample_every": 400,
                "training.log_every": 20,
            }
        )
        trainer = XTTSTrainer(config)
        seen: list[tuple[float, float, int, int]] = []

        def show(event) -> None:
            if not isinstance(event, Metrics):
                return
            traces = trainer.run.step.traces + trainer.run.featurizer.traces
            seen.append((event.seconds / 60, resident_mb(), threading.active_count(), traces))
            if len(seen) == 1 or seen[-1][0] // 1 > seen[-2][0] // 1:
                print("minute {:.1f}: {:.0f} MB, {} threads, {} traces".format(*seen[-1]), flush=True)

        summary = trainer.train(show)
    steady = [entry for entry in seen if entry[0] > 0.2 * minutes]
    early, late = steady[: len(steady) // 4], steady[-len(steady) // 4 :]
    growth = max(mb for _, mb, _, _ in late) / max(mb for _, mb, _, _ in early)
    threads, traces = ({entry[column] for entry in steady} for column in (2, 3))
    good = growth <= GROWTH and len(threads) <= 2 and len(traces) == 1
    print(
        f"{'✅' if good else '❌'} {summary.steps} steps in {minutes:g} minutes: memory x {growth:.3f} after warm-up "
        f"(limit {GROWTH}), threads {sorted(threads)}, traces {sorted(traces)}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
