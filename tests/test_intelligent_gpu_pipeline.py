"""The feed between two devices. Runs as `python -m unittest tests.<this> -v` too."""

import functools
import itertools
import json
import queue
import subprocess
import sys
import threading
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.two_devices import PLAN  # isort: skip (sets the devices up)

import tensorflow as tf

from myxtts.batch import RawBatch
from myxtts.config.load import build
from myxtts.devices import move
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import SLOTS, Feed, FeedOptions
from myxtts.pipeline.stage_error import StageError
from tests.helpers import PATIENCE, comes_true, feeds_end

CONFIG = build({"model.reference_frames": 16})
ROWS, FRAMES = 2, 32


COPIES = """
import collections, json
from tests.test_intelligent_gpu_pipeline import Source
from myxtts.config.load import build
from myxtts.devices import plan_devices

values = {"data.virtual_devices": 3, "data.data_gpu": 1, "data.model_gpu": 2, "model.reference_frames": 16}
config = build(values)
plan = plan_devices(config.data)
from myxtts.pipeline import feed, transfer
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer

names, original, copies = {"0": "host", "1": "data", "2": "model"}, transfer.move, collections.Counter()

def counted(tensor, device):
    here, there = tensor.backing_device[-1], device[-1]
    copies[f"{names[here]} to {names[there]}"] += here != there
    return original(tensor, device)

feed.move = transfer.move = counted
options = feed.FeedOptions(transfer=counted)
with feed.Feed(Source(4), Featurizer(config), plan, StageClock(), options) as batches:
    assert len(list(batches)) == 4
print(json.dumps({name: count / 4 for name, count in copies.items()}))
"""


class Source:
    """Batches of noise; the number at which loading breaks, if any."""

    def __init__(self, count: int, fault_at: int = -1):
        self._count, self._fault_at = count, fault_at
        samples = (FRAMES + CONFIG.model.reference_frames) * CONFIG.audio.hop_samples
        self._audio = np.random.default_rng(0).integers(-9000, 9000, (ROWS, samples)).astype(np.int16)
        self._head = [8, FRAMES, CONFIG.model.reference_frames, 1]

    @functools.cache  # noqa: B019 (few sources; tracing anew would be most of the work of starting a feed)
    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        numbers = tf.data.Dataset.range(start, self._count)
        fault, audio, head = self._fault_at, self._audio, self._head

        def check(number):
            if number == fault:
                raise OSError("the disk is gone")
            return number

        def load(number):
            with tf.control_dependencies([tf.numpy_function(check, [number], tf.int64)]):
                spans = tf.stack([head[1], head[2], number, 0, 0])
                labels = tf.concat([tf.constant(head, tf.int64), tf.ones([8 + FRAMES], tf.int64)], 0)
                rows = [tf.repeat(tf.cast(part, tf.int64)[None], ROWS, 0) for part in (spans, labels)]
                return RawBatch(tf.constant(audio), *rows, rows[1][:, :4])

        return numbers.map(load)

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        return [f"clip-{number}"]


class Breaking:
    """A featurizer that fails on one batch."""

    layout = Featurizer(CONFIG).layout

    def __init__(self, featurizer: Featurizer, fault_at: int):
        self._featurizer, self._fault_at = featurizer, fault_at

    def __call__(self, audio, spans):
        if int(spans[0, 2]) == self._fault_at:
            raise FloatingPointError("no such number")
        return self._featurizer(audio, spans)


class Telling:
    """A featurizer that tells the number of each batch that it begins."""

    layout = Featurizer(CONFIG).layout

    def __init__(self, featurizer: Featurizer):
        self._featurizer, self.begun = featurizer, queue.Queue[int]()

    def __call__(self, audio, spans):
        self.begun.put(int(spans[0, 2]))
        return self._featurizer(audio, spans)


def compile_features() -> Featurizer:
    """A featurizer that has prepared a batch."""
    featurizer = Featurizer(CONFIG)
    with Feed(Source(1), featurizer, PLAN, StageClock()) as feed:
        list(feed)
    return featurizer


def break_stage(featurizer: Featurizer, stage: str, at: int) -> str:
    """Lets a stage fail on a batch; returns the error that comes out of the feed, whose thread has ended."""
    sent = itertools.count()

    def breaking_move(tensor, device):
        if next(sent) == at:
            raise ConnectionError("the cable is loose")
        return move(tensor, device)

    source = Source(20, at if stage == "load" else -1)
    features = Breaking(featurizer, at) if stage == "preprocess" else featurizer
    options = FeedOptions(transfer=breaking_move if stage == "transfer" else move)
    try:
        with Feed(source, features, PLAN, StageClock(), options) as feed:
            for _ in feed:
                pass
    except StageError as error:
        assert feeds_end()
        return str(error)
    return "nothing failed"


def start_and_stop(featurizer: Featurizer, warm: int, times: int) -> tuple[int, float]:
    """Enters and leaves so many feeds; returns the threads that this leaves and by how much memory grows."""
    source, clock = Source(10_000), StageClock()

    def enter_and_leave(times: int) -> None:
        for number in range(times):
            with Feed(source, featurizer, PLAN, clock) as feed:
                if number % 5 == 0:
                    next(iter(feed))
        assert feeds_end()

    enter_and_leave(warm)
    threads, before = threading.active_count(), resident()
    enter_and_leave(times)
    return threading.active_count() - threads, resident() / before


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


class IntelligentPipeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.featurizer = compile_features()

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
            self.assertTrue(comes_true(lambda: feed.waits.full == 1))  # one more is ready and finds no slot
            self.assertEqual(feed.ready, SLOTS)

    def test_preparing_goes_on_while_a_step_runs(self):
        """Each step lasts until the preparing of a later batch has begun, which without overlap would never be."""
        for mode in ("buffered", "split"):
            featurizer, steps = Telling(self.featurizer), 0
            with Feed(Source(12), featurizer, replace(PLAN, pipeline=mode), StageClock()) as feed:
                for number, _ in enumerate(feed):
                    while number < 11 and featurizer.begun.get(timeout=PATIENCE) <= number:
                        pass
                    steps += 1
            self.assertEqual(steps, 12)

    def test_faults_in_any_stage_surface_with_their_stage(self):
        for stage, at in itertools.product(("load", "preprocess", "transfer"), (0, 1, SLOTS, 11)):
            with self.subTest(stage, at=at):
                words = rf"^{stage} failed on batch {at} \(clips clip-{at}\)"
                self.assertRegex(break_stage(self.featurizer, stage, at), words)

    def test_starts_and_stops_leave_nothing_behind(self):
        threads, growth = start_and_stop(self.featurizer, warm=20, times=40)
        self.assertEqual(threads, 0)
        self.assertLess(growth, 1.05)


if __name__ == "__main__":
    unittest.main()
