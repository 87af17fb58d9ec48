"""Proofs that take minutes (`make test-slow`)."""

import subprocess
import sys

import pytest

from myxtts.demo.corpus import make_corpus
from myxtts.demo.demo import demo_config
from myxtts.training.metrics import Validation
from myxtts.training.trainer import XTTSTrainer
from tests.interruptions import interrupt_again_and_again
from tests.scenarios import SCENARIOS, run_scenario


@pytest.mark.slow
def test_four_minutes_teach_the_tiny_model_durations_and_sounds(tmp_path):
    """Held-out losses of the averaged weights, far below what a model without locked durations reaches."""
    make_corpus(tmp_path / "corpus", "espeak", 600, seed=0)
    validations = []
    config = demo_config(tmp_path, "hibari", minutes=4, seed=0)
    XTTSTrainer(config).train(lambda event: validations.append(event) if isinstance(event, Validation) else None)
    losses = validations[-1].losses
    assert losses["mel"] < 0.45 and losses["duration"] < 0.25, losses


@pytest.mark.slow
def test_thirty_interruptions_change_no_weight(corpus, two_shapes_yaml, tmp_path):
    interrupt_again_and_again(corpus, two_shapes_yaml, tmp_path, times=30, steps=450, seed=2, sample_every=30)


@pytest.mark.slow
def test_half_an_hour_on_two_devices_grows_nothing():
    subprocess.run([sys.executable, "benchmarks/soak.py"], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_forty_pipelines_are_measured_named_and_helped(name):
    print(run_scenario(name))
