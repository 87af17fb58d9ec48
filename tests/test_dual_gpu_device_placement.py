"""Where everything lies when two devices share the work. Runs as `python -m unittest tests.<this> -v` too."""

import tempfile
import threading
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.two_devices import PLAN  # isort: skip (sets the devices up)

import tensorflow as tf

from myxtts.config.load import build
from myxtts.devices import guarded_copies, require_on
from myxtts.errors import RunError
from myxtts.training.metrics import Primed
from myxtts.training.trainer import XTTSTrainer
from myxtts.utils.commons import get_device_context
from tests.synthetic import make_hums

SMALL = {
    "model.width": 32, "model.text_blocks": 1, "model.decoder_blocks": 2, "model.duration_blocks": 1,
    "model.speaker_tokens": 4, "data.batch_size": 4, "data.buckets": 1, "data.val_clips": 0,
    "training.flat_start_sweeps": 2, "training.guide_steps": 10, "training.log_every": 2,
}  # fmt: skip
TWO = {"data.virtual_devices": 2, "data.data_gpu": 0, "data.model_gpu": 1, "data.model_start_delay": 0.0}


def make_trainer(home: Path, **values: object) -> XTTSTrainer:
    folder = make_hums(home / "set", 16)
    common = {"data.train_data": str(folder), "data.cache_dir": str(home / "cache")}
    return XTTSTrainer(build({**SMALL, **common, "training.checkpoint_dir": str(home / "run"), **values}))


class DevicePlacement(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)

    def test_two_devices_are_two(self):
        self.assertEqual((PLAN.data_device, PLAN.model_device), ("/CPU:0", "/CPU:1"))
        self.assertTrue(PLAN.two_devices)

    def test_every_variable_is_on_the_model_device(self):
        trainer = make_trainer(self.home, **TWO)
        variables = trainer.step.variables()
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
        trainer = make_trainer(self.home, **TWO, **{"training.max_steps": 4})
        seen = []
        original = trainer.step.__class__.__call__

        def watch(step, batch, *more):
            seen.append((batch.floats.backing_device, batch.labels.backing_device))
            return original(step, batch, *more)

        trainer.step.__class__.__call__ = watch
        self.addCleanup(setattr, trainer.step.__class__, "__call__", original)
        events = []
        trainer.train(events.append)
        self.assertEqual(len(seen), 4)
        self.assertTrue(all(name.endswith("CPU:1") for pair in seen for name in pair), seen)
        self.assertTrue(any(isinstance(event, Primed) for event in events))

    def test_nothing_is_read_back_between_log_points(self):
        from tensorflow.python.framework import ops

        trainer = make_trainer(self.home, **TWO, **{"training.max_steps": 20, "training.log_every": 10})
        reads, at_step = [0], []
        read, step = ops._EagerTensorBase._numpy, trainer.step.__class__.__call__

        def counted(tensor):
            reads[0] += threading.current_thread() is threading.main_thread()
            return read(tensor)

        def watched(*arguments):
            at_step.append(reads[0])
            return step(*arguments)

        ops._EagerTensorBase._numpy = counted
        self.addCleanup(setattr, ops._EagerTensorBase, "_numpy", read)
        trainer.step.__class__.__call__ = watched
        self.addCleanup(setattr, trainer.step.__class__, "__call__", step)
        trainer.train()
        between = np.diff(at_step)
        self.assertEqual(len(at_step), 20)
        self.assertGreater(between[9], 0)  # after the tenth step comes a log line
        self.assertEqual(between[:9].sum() + between[10:].sum(), 0, between)

    def test_modes_give_equal_results(self):
        weights = {}
        for mode in ("sequential", "buffered", "split"):
            trainer = make_trainer(self.home / mode, **TWO, **{"data.pipeline": mode, "training.max_steps": 50})
            trainer.train()
            weights[mode] = trainer.step.arrays()["weights"]
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
