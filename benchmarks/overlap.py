"""What overlap is worth: the real feed and the real step on two parts of the CPU of one core each.

Prints, for three ratios of preparing (A) to training (B) and for an A that varies, the time a step takes in each
mode. Every round measures all modes in turn, each by the median of its batches (the mean where A varies), and both
stages alone right before and right after split; the figures are medians over the rounds, and the ratio to the slower
stage is taken within each round, because a shared machine drifts. Exits 1 when split takes more than 1.05 times the
slower stage (1.15 where A varies), when buffered on one device is slower than sequential, or when step times vary by
more than 20 %.

Both stages are compiled by XLA here, so each keeps one core busy and no more. This proves order and overlap; transfer
between real cards is not measured.

    python benchmarks/overlap.py [--rounds 9] [--batches 8]
"""

import argparse
import statistics
import sys
import time
from dataclasses import replace

import numpy as np

from myxtts.config.load import build
from myxtts.devices import plan_devices

CONFIG = build({"data.virtual_devices": 2, "data.data_gpu": 0, "data.model_gpu": 1, "training.guide_steps": 0})
PLAN = plan_devices(CONFIG.data, xla="on")

import tensorflow as tf  # noqa: E402

from myxtts.batch import HEAD, SPANS, RawBatch  # noqa: E402
from myxtts.models.xtts import XTTS  # noqa: E402
from myxtts.pipeline.clock import StageClock  # noqa: E402
from myxtts.pipeline.featurize import Featurizer  # noqa: E402
from myxtts.pipeline.feed import Feed  # noqa: E402
from myxtts.training.step import TrainStep  # noqa: E402
from myxtts.training.targets.speech import SpeechObjective  # noqa: E402

ROWS, FRAMES, TOKENS = 2, 192, 48
WARM = 4  # batches of a run that are not counted: the buffer fills
LIMIT, JITTER_LIMIT, VARIATION = 1.05, 1.15, 0.20
SLACK = 1.02  # "not slower" on a machine that is not quiet


class Repeated:
    """The same batch of noise again and again."""

    def __init__(self, count: int):
        rng = np.random.default_rng(0)
        samples = (FRAMES + CONFIG.model.reference_frames) * CONFIG.audio.hop_samples
        labels = rng.integers(3, 60, (ROWS, HEAD + TOKENS + FRAMES))
        labels[:, :HEAD] = TOKENS, FRAMES, CONFIG.model.reference_frames, 1
        spans = np.zeros((count, ROWS, SPANS), np.int64)
        spans[:] = FRAMES, CONFIG.model.reference_frames, 0, 0, 0
        spans[:, :, 2] = np.arange(count)[:, None]
        self._audio = rng.integers(-9000, 9000, (ROWS, samples)).astype(np.int16)
        self._spans, self._labels = spans, labels

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        audio, labels = tf.constant(self._audio), tf.constant(self._labels)
        return tf.data.Dataset.from_tensor_slices(self._spans).map(
            lambda spans: RawBatch(audio, spans, labels, labels[:, :HEAD])
        )

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        return ["noise"]


class Slower(Featurizer):
    """Prepares each batch several times over; a list says how often for each."""

    repeats: list[int]

    def __call__(self, audio, spans):
        for _ in range(self.repeats[int(spans[0, 2]) % len(self.repeats)]):
            floats = super().__call__(audio, spans)
        return floats


class Bench:
    def __init__(self, batches: int):
        self._batches = batches
        self._featurizer = Slower(CONFIG)
        with tf.device(PLAN.model_device):
            model = XTTS(CONFIG.model, 60, CONFIG.audio.n_mels)
            model.create_variables()
            self._step = TrainStep(model, SpeechObjective(CONFIG.training), CONFIG.training, PLAN.compiled)

    def train(self, batch) -> None:
        with tf.device(PLAN.model_device):
            self._step(batch)["loss"].numpy()

    def run(self, pipeline: str, prepare: list[int]) -> list[float]:
        """Seconds between the ends of successive steps."""
        plan = replace(PLAN, pipeline=pipeline)
        if pipeline == "buffered":
            plan = replace(plan, data_device=plan.model_device)
        self._featurizer.repeats = prepare
        ends = []
        with Feed(Repeated(self._batches + WARM), self._featurizer, plan, StageClock()) as feed:
            for batch in feed:
                self.train(batch)
                ends.append(time.perf_counter())
        return list(np.diff(ends[WARM - 1 :]))

    def alone(self, prepare: list[int]) -> tuple[list[float], list[float]]:
        """Seconds of each stage by itself for each batch: A with loading and transfer, B on a ready batch."""
        self._featurizer.repeats = prepare
        with Feed(
            Repeated(self._batches + WARM), self._featurizer, replace(PLAN, pipeline="sequential"), StageClock()
        ) as feed:
            source = iter(feed)
            for _ in range(WARM):
                batch = next(source)
            ends = [time.perf_counter()]
            for batch in source:
                batch.floats.numpy()
                ends.append(time.perf_counter())
        prepared, ends = list(np.diff(ends)), [time.perf_counter()]
        for _ in range(self._batches):
            self.train(batch)
            ends.append(time.perf_counter())
        return prepared, list(np.diff(ends))

    def round(self, prepare: list[int]) -> dict[str, float]:
        """Every measurement once."""
        middle = np.median if len(prepare) == 1 else np.mean
        before = self.alone(prepare)
        times = {"split": self.run("split", prepare)}
        after = self.alone(prepare)  # right before and right after, because the machine drifts by more than the limit
        a, b = (float(np.mean([middle(one), middle(other)])) for one, other in zip(before, after, strict=True))
        times |= {mode: self.run(mode, prepare) for mode in ("buffered", "sequential")}
        middles = {mode: float(middle(found)) for mode, found in times.items()}
        variation = float(np.std(times["split"]) / np.mean(times["split"]))
        return {"a": a, "b": b, **middles, "ratio": middles["split"] / max(a, b), "variation": variation}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batches", type=int, default=8)
    options = parser.parse_args()
    bench = Bench(options.batches)
    bench.alone([4])  # compiles
    one, step = bench.alone([20])
    unit = max(3, round(20 * np.median(step) / np.median(one)))  # preparations that take as long as one step
    spread = np.random.default_rng(1).uniform(1 - 3**0.5 / 2, 1 + 3**0.5 / 2, 64)  # deviation 50 % of the mean
    scenarios = {
        "A:B about 1:1": ([unit], LIMIT),
        "A:B about 1:3": ([unit // 3], LIMIT),
        "A:B about 3:1": ([3 * unit], LIMIT),
        "1:1, A varies by 50 %": ([max(1, round(unit * float(x))) for x in spread], JITTER_LIMIT),
    }
    failed = False
    for name, (prepare, limit) in scenarios.items():
        rounds = [bench.round(prepare) for _ in range(options.rounds)]
        middle = {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}
        good = middle["ratio"] <= limit and middle["buffered"] <= SLACK * middle["sequential"]
        good &= middle["variation"] <= VARIATION or limit == JITTER_LIMIT
        failed |= not good
        print(
            f"{'✅' if good else '❌'} {name}: A {1e3 * middle['a']:.0f} ms, B {1e3 * middle['b']:.0f} ms; a step: "
            f"sequential {1e3 * middle['sequential']:.0f}, buffered {1e3 * middle['buffered']:.0f}, split "
            f"{1e3 * middle['split']:.0f} ms = {middle['ratio']:.3f} x the slower stage (limit {limit}; rounds "
            f"{min(r['ratio'] for r in rounds):.2f} to {max(r['ratio'] for r in rounds):.2f}), "
            f"variation {middle['variation']:.0%}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
