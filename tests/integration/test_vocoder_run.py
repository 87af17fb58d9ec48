"""The vocoder goes the same way as the speech model: one trainer, one feed, one command."""

import json

import numpy as np
import pytest

from myxtts.checkpoint.folder import read_checkpoint
from myxtts.errors import UsageError

SMALL = """
vocoder: {width: 16, blocks: 1, pitch_width: 16, pitch_blocks: 1, discriminator_width: 4, slice_frames: 16,
          discriminators_after: 4}
data: {batch_size: 4, buckets: 1, val_clips: 4, stall_timeout: 1800}
training: {target: vocoder, log_every: 2, val_every: 4, save_every: 4, max_steps: 8, sample_every: 8}
"""


@pytest.fixture(scope="module")
def small_yaml(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "vocoder.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(corpus, small_yaml, run_myxtts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocoder") / "run"
    result = run_myxtts("train", "--train-data", corpus, "--config", small_yaml, "--checkpoint-dir", folder)
    assert result.returncode == 0, result.stderr
    return folder


def lines_of(run, kind: str) -> list[dict]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def test_the_command_trains_with_discriminators_when_told(run):
    losses = {line["step"]: line["losses"].get("discriminator") for line in lines_of(run, "train")}
    assert losses[2] is losses[4] is None
    assert losses[6] > 0
    assert [line["step"] for line in lines_of(run, "validation")] == [4, 8]
    assert [path.parent.name for path in (run / "samples").glob("*/1.wav")] == ["step-00000008"]


def test_a_resumed_run_ends_with_the_same_weights(run, run_myxtts, tmp_path):
    words = ["--resume", run / "step-00000004", "--checkpoint-dir", tmp_path / "rest", "--sample-every", "0"]
    result = run_myxtts("train", *words)
    assert result.returncode == 0, result.stderr
    whole, rest = (read_checkpoint(folder / "step-00000008") for folder in (run, tmp_path / "rest"))
    for name in whole.arrays:
        np.testing.assert_array_equal(rest.arrays[name], whole.arrays[name], err_msg=name)


def test_two_devices_train_it_as_one_does(run, corpus, small_yaml, run_myxtts, tmp_path):
    devices = ["--virtual-devices", "2", "--data-gpu", "0", "--model-gpu", "1"]
    words = ["train", "--train-data", corpus, "--config", small_yaml, "--checkpoint-dir", tmp_path / "run", *devices]
    result = run_myxtts(*words, "--sample-every", "0", "--max-steps", 2)
    assert result.returncode == 0, result.stderr
    assert "Intelligent GPU Pipeline: Multi-GPU Mode" in result.stdout
    assert "💡" not in result.stdout  # no setting is poor
    ours, theirs = lines_of(tmp_path / "run", "train")[0], lines_of(run, "train")[0]
    assert ours["losses"]["spectrum"] == pytest.approx(theirs["losses"]["spectrum"], rel=1e-3)


def test_a_sentence_is_spoken_through_it(run, trained, run_here, tmp_path):
    spoken = {}
    for name, words in {"griffin-lim": ["--vocoder", "griffin-lim"], "vocoder": ["--vocoder", run]}.items():
        target = tmp_path / f"{name}.wav"
        result = run_here("synthesize", "--checkpoint", trained, "--text", "Good day.", "-o", target, *words)
        assert result.returncode == 0, result.stderr
        spoken[name] = target.read_bytes()
    assert len(spoken["vocoder"]) == len(spoken["griffin-lim"])
    assert spoken["vocoder"] != spoken["griffin-lim"]


def test_one_kind_of_checkpoint_is_not_taken_for_the_other(run, trained, run_here, tmp_path, make_trainer):
    out = tmp_path / "out.wav"
    wrong = run_here("synthesize", "--checkpoint", run, "--text", "hi", "-o", out)
    assert wrong.returncode == 2
    assert "is a vocoder; name it as --vocoder" in wrong.stderr
    wrong = run_here("synthesize", "--checkpoint", trained, "--vocoder", trained, "--text", "hi", "-o", out)
    assert wrong.returncode == 2
    assert "is a speech model" in wrong.stderr
    assert not out.exists()
    with pytest.raises(UsageError, match=r"is a vocoder model; set `training.target=vocoder`"):
        make_trainer(init_from=str(run))
