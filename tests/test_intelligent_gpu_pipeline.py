"""The feed between two devices. Runs as `python -m unittest tests.<this> -v` too."""

import json
import random
import subprocess
import sys
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


COPIES = """
import collections, json
from tests.test_intelligent_gpu_pipeline import Source
from myxtts.config.load import build
from myxtts.devices import plan_devices

values = {"data.virtual_devices": 3, "data.data_gpu": 1, "data.model_gpu": 2, "model.reference_frames": 16}
config = build(values)
plan = plan_devices(config.data)
from myxtts.pipeline import feed as feed_module
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer

names, original, copies = {"0": "host", "1": "data", "2": "model"}, feed_module.move, collections.Counter()

def counted(tensor, device):
    here, there = tensor.backing_device[-1], device[-1]
    copies[f"{names[here]} to {names[there]}"] += here != there
    return original(tensor, device)

feed_module.move = counted
with feed_module.Feed(Source(4), Featurizer(config), plan, StageClock()) as feed:
    assert len(list(feed)) == 4
print(json.dumps({name: count / 4 for name, count in copies.items()}))
"""


class Source:
    """Batches of noise; the number at which loading breaks, if any."""

    def __init__(self, count: int, fault_at: int = -1):
        self._count, self._fault_at = count, fault_at
        samples = (FRAMES + CONFIG.model.reference_frames) * CONFIG.audio.hop_samples
        self._audio = np.random.default_rng(0).integers(-9000, 9000, (ROWS, samples)).astype(np.int16)
        self._head = [8, FRAMES, CONFIG.model.reference_frames, 1]

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(start, self._count)
        fault, audio, head = self._fault_at, self._audio, self._head

        def check(number):
            if number == fault:
                raise OSError("the disk is gone")
            return number

        def load(number):
            with tf.control_dependencies([tf.numpy_function(check, [number], tf.int64)]):
                spans = tf.stack([head[1], head[2], number, 0])
                labels = tf.concat([tf.constant(head, tf.int64), tf.ones([8 + FRAMES], tf.int64)], 0)
                rows = [tf.repeat(tf.cast(part, tf.int64)[None], ROWS, 0) for part in (spans, labels)]
                return RawBatch(tf.constant(audio), *rows)

        return numbers.map(load)

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        return [f"clip-{number}"]


class Breaking(Featurizer):
    fault_at = -1

    def __call__(self, audio, spans):
        if int(spans[0, 2]) == self.fault_at:
            raise FloatingPointError("no such number")
        return super().__call__(audio, spans)


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
            places = [part.backing_device for batch in feed for part in (batch.floats, batch.labels)]
        self.assertEqual(len(places), 10)
        self.assertTrue(all(place.endswith("CPU:1") for place in places))

    def test_a_batch_is_copied_as_seldom_as_promised(self):
        """Two copies from the host to the data device, one across, one from the host to the model device, none back.

        Every other copy would be refused in tests (`guarded_copies`), so that counting `move` counts them all.
        """
        found = subprocess.run([sys.executable, "-c", COPIES], capture_output=True, text=True)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(
            json.loads(found.stdout.splitlines()[-1]),
            {"host to data": 2, "data to model": 1, "host to model": 1},
        )

    def test_never_more_batches_wait_than_there_are_slots(self):
        with Feed(Source(40), self.featurizer, PLAN, StageClock()) as feed:
            time.sleep(1.0)
            self.assertEqual(feed.ready, SLOTS)

    def test_preparing_goes_on_while_a_step_runs(self):
        """Two sleeps of the same length, one on each side, take little more than one.

        On a busy machine a try can be slow; without overlap no try could be quick.
        """

        class Sleepy(Featurizer):
            def __call__(self, audio, spans):
                time.sleep(0.05)
                return super().__call__(audio, spans)

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

            def breaking_move(tensor, device, at=at, calls=calls, original=original):
                if device == PLAN.model_device and tensor.dtype == tf.float32:
                    calls[0] += 1
                    if calls[0] == at + 1:
                        raise ConnectionError("the cable is loose")
                return original(tensor, device)

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
