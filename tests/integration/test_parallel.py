"""Two devices that both train: the same steps as on one."""

import threading

import numpy as np
import pytest

from myxtts.config.load import build, read_yaml
from myxtts.errors import UsageError
from myxtts.training.gradient import Gradient
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import flat


@pytest.fixture
def train(corpus, tiny_yaml, tmp_path):
    def run(pipeline: str, steps: int, resume=None, stop_at: int = 0, **values) -> XTTSTrainer:
        places = {
            "data.train_data": str(corpus),
            "data.virtual_devices": 2,
            "data.data_gpu": 0,
            "data.model_gpu": 1,
            "data.val_clips": 0,  # less to compile
            "data.pipeline": pipeline,
            "data.model_start_delay": 0.0,
            "training.checkpoint_dir": str(tmp_path / pipeline),
            "training.max_steps": steps,
            "training.sample_every": 0,
            "training.log_every": 1,
        }
        trainer = XTTSTrainer(build({**read_yaml(tiny_yaml), **places, **values}), resume_checkpoint=resume)
        stop = threading.Event()
        trainer.train(lambda event: stop.set() if getattr(event, "step", 0) == stop_at > 0 else None, stop)
        return trainer

    return run


def test_both_devices_train_and_the_result_is_that_of_one(train, monkeypatch):
    split, where, find = train("split", 6), set(), Gradient.of

    def watched(gradient, given, batch, *more):
        where.update(tensor.backing_device[-5:] for tensor in (batch.floats, batch.labels, given.weights))
        found = find(gradient, given, batch, *more)
        where.add(found[0].backing_device[-5:])
        return found

    monkeypatch.setattr(Gradient, "of", watched)
    parallel = train("parallel", 6)  # few steps: after more, rounding may choose another of two equal alignments
    assert np.abs(flat(split.run.step.arrays()) - flat(parallel.run.step.arrays())).max() < 1e-5
    assert where == {"CPU:0", "CPU:1"}
    assert parallel.run.step.traces == split.run.step.traces


@pytest.mark.slow
def test_a_resumed_run_goes_on_exactly(train, tmp_path):
    whole = train("parallel", 8)
    (tmp_path / "parallel").rename(tmp_path / "whole")
    assert train("parallel", 8, stop_at=4).state.step < 8
    again = train("parallel", 8, resume=tmp_path / "parallel" / "latest")
    np.testing.assert_array_equal(flat(whole.run.step.arrays()), flat(again.run.step.arrays()))


def test_an_odd_batch_cannot_be_halved(train):
    with pytest.raises(UsageError, match=r"`data.batch_size=3` must be even"):
        train("parallel", 1, **{"data.batch_size": 3})
