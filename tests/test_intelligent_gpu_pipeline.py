"""The feed between two devices. Runs as `python -m unittest tests.<this> -v` too."""

import random
import threading
import time
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.two_devices import PLAN  # isort: skip (sets the devices up)

import tensorflow as tf

from myxtts.batch import RawBatch
from myxtts.config.load import build
from myxtts.pipeline import feed as feed_module
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import SLOTS, Feed
from myxtts.pipeline.stage import StageError
from tests.helpers import feeds_end

CONFIG = build({"model.reference_frames": 16})
ROWS, FRAMES = 2, 32
FAULTS = 50


class Source:
    """Batches of noise; the number at which loading breaks, if any."""

    def __init__(self, count: int, fault_at: int = -1):
        self._count, self._fault_at = count, fault_at
        samples = FRAMES * CONFIG.audio.hop_samples
        noise = np.random.default_rng(0).integers(-9000, 9000, (ROWS, samples)).astype(np.int16)
        self._raw = RawBatch(
            tf.constant(noise), tf.fill([ROWS], samples - 1), tf.ones([ROWS, 8], tf.int32), tf.fill([ROWS], 8),
            tf.constant(noise[:, : CONFIG.model.reference_frames * CONFIG.audio.hop_samples]),
            tf.fill([ROWS], CONFIG.model.reference_frames * CONFIG.audio.hop_samples), tf.ones([ROWS]),
        )  # fmt: skip

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(start, self._count)
        fault, raw = self._fault_at, self._raw

        def check(number):
            if number == fault:
                raise OSError("the disk is gone")
            return number

        def load(number):
            with tf.control_dependencies([tf.numpy_function(check, [number], tf.int64)]):
                return RawBatch(*[tf.identity(part) for part in raw])

        return numbers.map(load)

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        return [f"clip-{number}"]


class Breaking(Featurizer):
    fault_at = -1

    def __call__(self, raw, seed):
        if int(seed[0]) == self.fault_at:
            raise FloatingPointError("no such number")
        return super().__call__(raw, seed)


class IntelligentPipeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.featurizer = Breaking(CONFIG)
        with Feed(Source(1), cls.featurizer, PLAN, StageClock()) as feed:
            list(feed)  # compiled: what is timed below is only the pipeline

    def setUp(self):
        self.featurizer.fault_at = -1

    def test_features_are_made_on_one_device_and_arrive_on_the_other(self):
        with Feed(Source(5), self.featurizer, PLAN, StageClock()) as feed:
            places = [batch.mel.backing_device for batch in feed]
        self.assertEqual(len(places), 5)
        self.assertTrue(all(place.endswith("CPU:1") for place in places))

    def test_never_more_batches_wait_than_there_are_slots(self):
        with Feed(Source(40), self.featurizer, PLAN, StageClock()) as feed:
            time.sleep(1.0)
            self.assertEqual(feed.ready, SLOTS)

    def test_preparing_goes_on_while_a_step_runs(self):
        """Two sleeps of the same length, one on each side, take little more than one.

        On a busy machine a try can be slow; without overlap no try could be quick.
        """

        class Sleepy(Featurizer):
            def __call__(self, raw, seed):
                time.sleep(0.05)
                return super().__call__(raw, seed)

        def measure(mode: str) -> float:
            with Feed(Source(20), featurizer, replace(PLAN, pipeline=mode), StageClock()) as feed:
                source = iter(feed)
                next(source)
                begin = time.perf_counter()
                for _ in source:
                    time.sleep(0.05)
                return time.perf_counter() - begin

        featurizer, tries = Sleepy(CONFIG), []
        quickest = measure("sequential")
        self.assertGreater(quickest, 19 * 0.1)
        while len(tries) < 5 and (not tries or tries[-1] >= 0.75 * quickest):
            quickest = min(quickest, measure("sequential"))
            tries.append(measure("split"))
        self.assertLess(tries[-1], 0.75 * quickest, tries)

    def test_faults_in_any_stage_surface_with_their_stage(self):
        chance = random.Random(5)
        for _ in range(FAULTS):
            at, stage = chance.randrange(12), chance.choice(["load", "preprocess", "transfer"])
            self.featurizer.fault_at = at if stage == "preprocess" else -1
            original = feed_module.move
            calls = [0]

            def breaking_move(tensor, device, for_xla=False, at=at, calls=calls, original=original):
                if device == PLAN.model_device and tensor.dtype == tf.float32 and tensor.shape.rank == 3:
                    calls[0] += 1
                    if calls[0] == 3 * at + 1:  # mel, noise and reference of each batch
                        raise ConnectionError("the cable is loose")
                return original(tensor, device, for_xla)

            if stage == "transfer":
                feed_module.move = breaking_move
            begin = time.perf_counter()
            try:
                with (
                    self.assertRaisesRegex(StageError, rf"^{stage} failed on batch {at} \(clips clip-{at}\)"),
                    Feed(Source(20, at if stage == "load" else -1), self.featurizer, PLAN, StageClock()) as feed,
                ):
                    for _ in feed:
                        pass
            finally:
                feed_module.move = original
            self.assertLess(time.perf_counter() - begin, 5.0)
            self.assertTrue(feeds_end())

    def test_five_hundred_starts_and_stops_leave_nothing_behind(self):
        source, clock = Source(10_000), StageClock()

        def start_and_stop(times: int) -> None:
            for number in range(times):
                with Feed(source, self.featurizer, PLAN, clock) as feed:
                    if number % 5 == 0:
                        next(iter(feed))

        start_and_stop(100)
        before, threads = resident(), threading.active_count()
        start_and_stop(500)
        self.assertEqual(threading.active_count(), threads)
        self.assertLess(resident(), 1.05 * before)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


if __name__ == "__main__":
    unittest.main()
