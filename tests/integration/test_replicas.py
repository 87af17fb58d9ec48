"""Several devices that train: the same steps as on one."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

from myxtts.batch import PackedBatch
from myxtts.config.load import build, read_yaml
from myxtts.devices import plan_devices
from myxtts.errors import UsageError
from myxtts.training.replicas import ReplicatedStep
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import flat

SEVERAL = """
import json, sys
from myxtts.config.load import build
from myxtts.training.trainer import XTTSTrainer
trainer, losses = XTTSTrainer(build(json.loads(sys.argv[1]))), []
trainer.train(lambda event: losses.append(event.losses["loss"]) if hasattr(event, "losses") else None)
run = trainer.run
copies = run.step.copies() if run.devices.shares_batches else []
print(json.dumps({
    "losses": losses,
    "places": [sorted({v.device[-5:] for v in copy}) for copy in copies],
    "equal": all((a.numpy() == b.numpy()).all() for copy in copies for a, b in zip(copies[0], copy)),
    "prepared on": run.devices.preparing_devices,
}))
"""


@pytest.fixture
def values(corpus, tiny_yaml, tmp_path):
    return {
        **read_yaml(tiny_yaml),
        "data.train_data": str(corpus),
        "data.virtual_devices": 2,
        "data.val_clips": 0,  # less to compile
        "data.buckets": 1,
        "data.model_start_delay": 0.0,
        "training.checkpoint_dir": str(tmp_path),
        "training.sample_every": 0,
        "training.log_every": 1,
    }


@pytest.fixture
def train(values, tmp_path):
    def run(name: str, steps: int, resume=None, stop_at: int = 0, **more) -> XTTSTrainer:
        places = {"training.checkpoint_dir": str(tmp_path / name), "training.max_steps": steps}
        trainer = XTTSTrainer(build({**values, **places, **more}), resume_checkpoint=resume)
        stop = threading.Event()
        trainer.train(lambda event: stop.set() if getattr(event, "step", 0) == stop_at > 0 else None, stop)
        return trainer

    return run


BOTH = {"data.model_gpu": (0, 1), "data.batch_size": 2}
SPLIT = {"data.data_gpu": 0, "data.model_gpu": 1, "data.batch_size": 4}


def test_two_devices_train_and_the_result_is_that_of_one(train, monkeypatch):
    split, places, call = train("split", 6, **SPLIT), [], ReplicatedStep.__call__

    def watched(step, batch, *more):
        places.append([shard.floats.backing_device[-5:] for shard in batch.shards])
        found = call(step, batch, *more)
        own, copy = step.copies()
        assert all((mine.numpy() == theirs.numpy()).all() for mine, theirs in zip(own, copy, strict=True))
        return found

    monkeypatch.setattr(ReplicatedStep, "__call__", watched)
    both = train("both", 6, **BOTH)  # few steps: after more, rounding may choose another of two equal alignments
    assert places == 6 * [["CPU:0", "CPU:1"]]
    assert np.abs(flat(split.run.step.arrays()) - flat(both.run.step.arrays())).max() < 1e-5
    assert both.run.step.traces == split.run.step.traces
    alias = train("parallel", 6, **SPLIT, **{"data.pipeline": "parallel"})  # an earlier name, of both halves of a batch
    assert places[6:] == 6 * [["CPU:1", "CPU:0"]]
    assert np.abs(flat(split.run.step.arrays()) - flat(alias.run.step.arrays())).max() < 1e-5


def test_a_batch_of_one_device_is_followed_by_the_others(train):
    """As `profile` trains, which compares ways of using the devices in one run."""
    run = train("both", 1, **BOTH).run
    raw = next(iter(run.train_set.batches()))
    floats = run.featurizer(raw.audio[:2], raw.spans[:2])
    run.step(PackedBatch(floats, raw.labels[:2], run.featurizer.layout))
    own, copy = (np.concatenate([v.numpy().ravel() for v in copy]) for copy in run.step.copies())
    assert (own != copy).any()
    run.step.catch_up()
    own, copy = (np.concatenate([v.numpy().ravel() for v in copy]) for copy in run.step.copies())
    np.testing.assert_array_equal(own, copy)


@pytest.mark.slow
def test_one_two_and_four_devices_take_the_same_steps(values, tmp_path):
    """Twenty steps with the same clips in each, whoever prepares them."""

    def train(name: str, clips: int, **devices) -> dict:
        words = {
            **values,
            "data.virtual_devices": 5,
            "data.batch_size": clips,
            "training.max_steps": 20,
            "training.checkpoint_dir": str(tmp_path / name),
            **{f"data.{key}": value for key, value in devices.items()},
        }
        done = subprocess.run([sys.executable, "-c", SEVERAL, json.dumps(words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    one = train("one", 8, data_gpu=0, model_gpu=1)
    two = train("two", 4, data_gpu=0, model_gpu=[1, 2])
    four = train("four", 2, data_gpu=0, model_gpu=[1, 2, 3, 4])
    own = train("own", 2, model_gpu=[4, 3, 2, 1])
    assert len(one["losses"]) == 20
    for found in (two, four, own):
        assert found["equal"]
        np.testing.assert_allclose(found["losses"], one["losses"], rtol=1e-5)
    assert four["places"] == [["CPU:1"], ["CPU:2"], ["CPU:3"], ["CPU:4"]]
    assert own["prepared on"] == ["/CPU:4", "/CPU:3", "/CPU:2", "/CPU:1"]
    assert two["prepared on"] == ["/CPU:0"]


@pytest.mark.slow
def test_a_resumed_run_goes_on_exactly(train, tmp_path):
    whole = train("both", 8, **BOTH)
    (tmp_path / "both").rename(tmp_path / "whole")
    assert train("both", 8, stop_at=4, **BOTH).state.step < 8
    again = train("both", 8, resume=tmp_path / "both" / "latest", **BOTH)
    np.testing.assert_array_equal(flat(whole.run.step.arrays()), flat(again.run.step.arrays()))


def test_an_odd_batch_cannot_be_halved(train):
    with pytest.raises(UsageError, match=r"`data.batch_size=3` must be even"):
        train("parallel", 1, **{**SPLIT, "data.pipeline": "parallel", "data.batch_size": 3})


def test_the_plan_of_several_devices(values):
    def plan(**more):
        return plan_devices(build({**values, **{f"data.{key}": value for key, value in more.items()}}).data)

    many = plan(model_gpu=(1, 0))
    assert many.training_devices == many.preparing_devices == ("/CPU:1", "/CPU:0")
    assert many.pipeline == "buffered" and not many.two_devices and many.alone().training_devices == ("/CPU:1",)
