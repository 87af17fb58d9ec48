"""What profiling costs, and whether `profile` and `train` tell the same step time.

One trainer on two parts of the CPU goes over the same batches again and again. In each round, in changing order: an
overlapped pass as `profile` runs it (every stage noted, two stand-in cards read five times a second), the same pass
with neither, and `train` itself, whose own report tells its step time. Figures are medians of the rounds' ratios,
because a shared machine drifts. Exits 1 when profiling costs more than 2 % of a step, or when the step times of
`profile` and `train` differ by more than 5 %.

    python benchmarks/profiling.py [--rounds 9] [--batch-size 4] [--steps 60]
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from myxtts.config.load import build
from myxtts.demo.corpus import make_corpus
from myxtts.devices import plan_devices

COST, APART = 1.02, 0.05
CLIPS = 240


def make_config(home: Path, batch_size: int):
    corpus = make_corpus(home / "corpus", "espeak", CLIPS, seed=0).folder
    return build(
        {
            "data.train_data": str(corpus),
            "data.cache_dir": str(home / "cache"),
            "data.batch_size": batch_size,
            "data.val_clips": 0,
            "data.virtual_devices": 2,
            "data.data_gpu": 0,
            "data.model_gpu": 1,
            "data.model_start_delay": 0.0,
            "training.checkpoint_dir": str(home / "run"),
            "training.guide_steps": 0,
            "training.sample_every": 0,
        }
    )


def load_stand_in(home: Path) -> None:
    """Loads a driver that tells of two cards, under the name by which the bindings look for it."""
    source = Path(__file__).parent.parent / "tests" / "nvml_stand_in.c"
    library = home / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", library, source], check=True)
    os.environ["FAKE_GPUS"] = "2"
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


class Bench:
    def __init__(self, home: Path, batch_size: int, steps: int):
        config = make_config(home, batch_size)
        plan_devices(config.data)  # before TensorFlow starts
        from myxtts.diagnostics import profile
        from myxtts.diagnostics.gpu_monitor import GpuMonitor
        from myxtts.diagnostics.stage_model import Arrangement
        from myxtts.pipeline.clock import StageClock
        from myxtts.pipeline.feed import SLOTS
        from myxtts.training.trainer import XTTSTrainer

        self._module, self._noting, self._monitor = profile, profile.StageClock, lambda: GpuMonitor((0, 1))
        self._plain = lambda keep_spans: StageClock()
        self._trainer, self._steps = XTTSTrainer(config), steps
        run = self._trainer.run
        run.train_set = run.train_set.sample(steps)  # so many steps from anywhere see all of it
        self._step, self._begins = self._trainer.run.take_step, list[float]()
        self._trainer.run.take_step = self._timed  # type: ignore[method-assign]
        data = config.data
        work = profile.Workload(
            source=self._trainer.run.train_set,
            featurizer=self._trainer.run.featurizer,
            step=lambda batch: self._trainer.run.take_step(batch)["loss"],
            devices=self._trainer.run.devices,
            arrangement=Arrangement(workers=1, ahead=data.pipeline_buffer_size, slots=SLOTS, mode="split"),
            traces=lambda: 0,
        )
        self._profiler = profile.Profiler(work, steps)

    def _timed(self, batch):
        self._begins.append(time.perf_counter())
        return self._step(batch)

    def overlapped(self, noted: bool) -> float:
        """Milliseconds of a step, timed from outside."""
        self._module.StageClock = self._noting if noted else self._plain
        self._begins.clear()
        with self._monitor() if noted else nullcontext():
            self._profiler.measure_pass("split", self._trainer.run.devices, self._steps)
        return 1e3 * float(np.diff(self._begins)[-self._steps :].mean())

    def profiled(self) -> float:
        """Milliseconds of a step, as `profile` tells it."""
        self._module.StageClock = self._noting
        with self._monitor():
            done = self._profiler.measure_pass("split", self._trainer.run.devices, self._steps)
        return 1e3 * float(done.intervals.mean())

    def trained(self) -> float:
        """Milliseconds of a step, as the report of `train` tells it."""
        trainer = self._trainer
        trainer.state.step = trainer.state.batches = 0
        training = replace(trainer.config.training, max_steps=self._steps)
        trainer.config = replace(trainer.config, training=training)
        return trainer.train().mean_step_ms


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        load_stand_in(home)
        bench = Bench(home, options.batch_size, options.steps)
        kinds = {
            "noted": lambda: bench.overlapped(True),
            "plain": lambda: bench.overlapped(False),
            "profile": bench.profiled,
            "train": bench.trained,
        }
        for measure in kinds.values():
            measure()  # traces every shape
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for number in range(options.rounds):
            for kind in list(kinds)[:: 1 if number % 2 else -1]:
                found[kind].append(kinds[kind]())
            words = ", ".join(f"{kind} {values[-1]:.1f}" for kind, values in found.items())
            print(f"round {number + 1}: ms a step: {words}", flush=True)
    cost = float(np.median(np.divide(found["noted"], found["plain"])))
    apart = float(np.median(np.divide(found["profile"], found["train"])))
    good = cost <= COST and abs(apart - 1) <= APART
    print(
        f"{'✅' if good else '❌'} profiling costs x {cost:.3f} (limit {COST}); profile tells x {apart:.3f} of what "
        f"train tells (limit {1 - APART:.2f} to {1 + APART:.2f})"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
