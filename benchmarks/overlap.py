"""What overlap is worth: the real feed and the real step on two parts of the CPU of one core each.

Prints, for three ratios of preparing (A) to training (B), the time a step takes in each mode, medians of alternating
runs in one process. Exits 1 when split takes more than 1.05 times the slower stage (1.15 with jitter), when buffered
on one device is slower than sequential, or when step times vary by more than 20 %. This proves order and overlap;
transfer between real cards is not measured here.

    python benchmarks/overlap.py [--repeats 5] [--batches 24]
"""

import argparse
import statistics
import sys
import time
from dataclasses import replace

import numpy as np

from myxtts.config.load import build
from myxtts.devices import plan_devices

CONFIG = build({"data.virtual_devices": 2, "data.data_gpu": 0, "data.model_gpu": 1})
PLAN = plan_devices(CONFIG.data)

import tensorflow as tf  # noqa: E402

from myxtts.batch import RawBatch  # noqa: E402
from myxtts.models.xtts import XTTS  # noqa: E402
from myxtts.pipeline.clock import StageClock  # noqa: E402
from myxtts.pipeline.featurize import Featurizer  # noqa: E402
from myxtts.pipeline.feed import Feed  # noqa: E402
from myxtts.training.step import TrainStep  # noqa: E402

ROWS, FRAMES, TOKENS = 4, 256, 64
WARM = 4  # batches of a run that are not counted: the buffer fills
LIMIT, JITTER_LIMIT, VARIATION = 1.05, 1.15, 0.20


class Repeated:
    """The same batch of noise again and again."""

    def __init__(self, count: int):
        rng = np.random.default_rng(0)
        samples = FRAMES * CONFIG.audio.hop_samples
        self._count = count
        self._raw = RawBatch(
            tf.constant(rng.integers(-9000, 9000, (ROWS, samples)).astype(np.int16)),
            tf.fill([ROWS], samples - 1),
            tf.constant(rng.integers(3, 60, (ROWS, TOKENS)), tf.int32),
            tf.fill([ROWS], TOKENS),
            tf.zeros([ROWS], tf.int32),
            tf.ones([ROWS]),
        )

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensors(self._raw).repeat(self._count)

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        return ["noise"]


class Slower(Featurizer):
    """Prepares each batch several times over; a list says how often for each."""

    repeats: list[int]

    def __call__(self, raw, seed):
        for _ in range(self.repeats[int(seed[0]) % len(self.repeats)]):
            batch = super().__call__(raw, seed)
        return batch


class Bench:
    def __init__(self, batches: int):
        self._batches = batches
        self._featurizer = Slower(CONFIG)
        with tf.device(PLAN.model_device):
            model = XTTS(CONFIG.model, 60, CONFIG.audio.n_mels)
            model.create_variables()
            self._step = TrainStep(model, CONFIG.training)
            self._scalars = tf.constant(1e-5), tf.constant(0.0)

    def train(self, batch, often: int) -> None:
        with tf.device(PLAN.model_device):
            for _ in range(often):
                results = self._step(batch, *self._scalars)
            results["loss"].numpy()

    def run(self, pipeline: str, prepare: list[int], train: int) -> list[float]:
        """Seconds between the ends of successive steps."""
        plan = replace(PLAN, pipeline=pipeline)
        if pipeline == "buffered":
            plan = replace(plan, data_device=plan.model_device)
        self._featurizer.repeats = prepare
        ends = []
        with Feed(Repeated(self._batches + WARM), self._featurizer, plan, StageClock()) as feed:
            for batch in feed:
                self.train(batch, train)
                ends.append(time.perf_counter())
        return list(np.diff(ends[WARM - 1 :]))

    def alone(self, prepare: list[int], train: int) -> tuple[float, float]:
        """Mean seconds of each stage by itself: A with loading and transfer, B on a ready batch."""
        self._featurizer.repeats = prepare
        with Feed(
            Repeated(self._batches + WARM), self._featurizer, replace(PLAN, pipeline="sequential"), StageClock()
        ) as feed:
            source = iter(feed)
            for _ in range(WARM):
                batch = next(source)
            begin = time.perf_counter()
            for batch in source:
                batch.mel.numpy()
            first = (time.perf_counter() - begin) / self._batches
        begin = time.perf_counter()
        for _ in range(self._batches):
            self.train(batch, train)
        return first, (time.perf_counter() - begin) / self._batches


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batches", type=int, default=24)
    options = parser.parse_args()
    bench = Bench(options.batches)
    one, step = bench.alone([4], 1)  # compiles
    one, step = bench.alone([4], 1)
    unit = max(1, round(step / (one / 4)))  # preparations that take as long as one step
    jitter = [int(n) for n in np.random.default_rng(1).integers(1, 2 * unit, 64)]
    scenarios = {
        "A:B about 1:1": ([unit], 1, LIMIT),
        "A:B about 1:3": ([max(1, unit // 3)], 1, LIMIT),
        "A:B about 3:1": ([3 * unit], 1, LIMIT),
        f"1:1, A varies by {np.std(jitter) / np.mean(jitter):.0%}": (jitter, 1, JITTER_LIMIT),
    }
    failed = False
    for name, (prepare, train, limit) in scenarios.items():
        alone, times = [], {"sequential": [], "buffered": [], "split": []}
        for _ in range(options.repeats):
            alone.append(bench.alone(prepare, train))
            for mode, measured in times.items():
                measured.append(bench.run(mode, prepare, train))
        a, b = (statistics.median(column) for column in zip(*alone, strict=True))
        means = {mode: statistics.median(float(np.mean(run)) for run in runs) for mode, runs in times.items()}
        slower = max(a, b)
        variation = statistics.median(float(np.std(run) / np.mean(run)) for run in times["split"])
        good = means["split"] <= limit * slower and means["buffered"] <= 1.02 * means["sequential"]
        good &= variation <= VARIATION or limit == JITTER_LIMIT
        failed |= not good
        print(
            f"{'✅' if good else '❌'} {name}: A {1e3 * a:.0f} ms, B {1e3 * b:.0f} ms; a step: sequential "
            f"{1e3 * means['sequential']:.0f}, buffered {1e3 * means['buffered']:.0f}, split "
            f"{1e3 * means['split']:.0f} ms = {means['split'] / slower:.3f} x the slower stage (limit {limit}), "
            f"variation {variation:.0%}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
