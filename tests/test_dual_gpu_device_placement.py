"""Where everything lies when two devices share the work. Runs as `python -m unittest tests.<this> -v` too."""

import functools
import tempfile
import threading
import unittest
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import numpy as np

from tests.two_devices import PLAN  # isort: skip (sets the devices up)

import tensorflow as tf
from tensorflow.python.framework import ops

from myxtts.config.load import build
from myxtts.devices import guarded_copies, require_on
from myxtts.errors import RunError
from myxtts.training.metrics import Primed
from myxtts.training.trainer import XTTSTrainer
from myxtts.utils.commons import get_device_context
from tests.helpers import weights_of
from tests.synthetic import make_hums

SMALL = {
    "model.width": 32, "model.text_blocks": 1, "model.decoder_blocks": 2, "model.duration_blocks": 1,
    "model.speaker_tokens": 4, "data.batch_size": 4, "data.buckets": 1, "data.val_clips": 0,
    "training.flat_start_sweeps": 2, "training.guide_steps": 10, "training.max_steps": 12,
    "training.log_every": 6,
}  # fmt: skip
TWO = {"data.virtual_devices": 2, "data.data_gpu": 0, "data.model_gpu": 1, "data.model_start_delay": 0.0}


@dataclass
class Watched:
    """A run, with what was seen of it at each step."""

    trainer: XTTSTrainer
    places: list[tuple[str, str]] = field(default_factory=list)  # of a step's floats and labels
    reads: list[int] = field(default_factory=list)  # by the training thread, before a step
    events: list[object] = field(default_factory=list)


def train_watched(home: Path, mode: str) -> Watched:
    """Trains on the dataset in `home`, whose pack is made once for all modes."""
    places = {"data.train_data": str(make_hums(home / "set", 16)), "data.cache_dir": str(home / "cache")}
    values = {**SMALL, **TWO, **places, "data.pipeline": mode, "training.checkpoint_dir": str(home / mode)}
    run, count = Watched(XTTSTrainer(build(values))), 0
    read, step = ops._EagerTensorBase._numpy, type(run.trainer.run.step).__call__

    def counted(tensor):
        nonlocal count
        count += threading.current_thread() is threading.main_thread()
        return read(tensor)

    def watched(self, batch, *more):
        run.places.append((batch.floats.backing_device, batch.labels.backing_device))
        run.reads.append(count)
        return step(self, batch, *more)

    with (
        mock.patch.object(ops._EagerTensorBase, "_numpy", counted),
        mock.patch.object(type(run.trainer.run.step), "__call__", watched),
    ):
        run.trainer.train(run.events.append)
    return run


class DevicePlacement(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        home = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.run_in = staticmethod(functools.cache(functools.partial(train_watched, home)))  # one run for each mode

    def test_two_devices_are_two(self):
        self.assertEqual((PLAN.data_device, PLAN.model_device), ("/CPU:0", "/CPU:1"))
        self.assertTrue(PLAN.two_devices)

    def test_every_variable_is_on_the_model_device(self):
        variables = self.run_in("split").trainer.run.step.variables()
        self.assertLessEqual(
            {"weights:0", "average:0", "momentum:0", "velocity:0", "model/guide/means"}, set(variables)
        )
        require_on("/CPU:1", variables, "the model")
        with self.assertRaisesRegex(RunError, "must be on /CPU:0"):
            require_on("/CPU:0", variables, "the model")

    def test_a_variable_on_the_wrong_device_is_a_hard_error(self):
        with tf.device("/CPU:0"):
            stray = tf.Variable([1.0])
        with self.assertRaisesRegex(RunError, "stray lies on .*CPU:0, it must be on /CPU:1"):
            require_on("/CPU:1", {"stray": stray}, "the model")

    def test_an_accidental_copy_fails(self):
        with tf.device("/CPU:0"):
            here = tf.constant([1.0])
        with tf.device("/CPU:1"), guarded_copies(), self.assertRaises(tf.errors.InvalidArgumentError):
            tf.raw_ops.AddV2(x=here, y=here)

    def test_batches_reach_the_step_on_the_model_device(self):
        run = self.run_in("split")
        self.assertEqual(len(run.places), 12)
        self.assertTrue(all(name.endswith("CPU:1") for pair in run.places for name in pair), run.places)
        self.assertTrue(any(isinstance(event, Primed) for event in run.events))

    def test_nothing_is_read_back_between_log_points(self):
        between = np.diff(self.run_in("split").reads)
        self.assertEqual(len(between), 11)
        self.assertGreater(between[5], 0)  # after the sixth step comes a log line
        self.assertEqual(between[:5].sum() + between[6:].sum(), 0, between)

    def test_modes_give_equal_results(self):
        weights = {mode: weights_of(self.run_in(mode).trainer) for mode in ("sequential", "buffered", "split")}
        self.assertTrue(np.array_equal(weights["sequential"], weights["buffered"]))
        self.assertTrue(np.array_equal(weights["sequential"], weights["split"]))

    def test_a_named_device_is_used(self):
        with get_device_context("/CPU:1"):
            self.assertTrue(tf.constant([1.0]).backing_device.endswith("CPU:1"))
        with get_device_context():
            self.assertTrue(tf.constant([1.0]).backing_device.endswith("CPU:0"))

    def test_the_plan_of_a_mode(self):
        self.assertFalse(replace(PLAN, data_device=PLAN.model_device).two_devices)


if __name__ == "__main__":
    unittest.main()
