import dataclasses
import json
import os

import numpy as np
import pytest

from myxtts.checkpoint.folder import (
    Checkpoint,
    find_checkpoint,
    list_checkpoints,
    locked_run,
    read_checkpoint,
    write_checkpoint,
)
from myxtts.checkpoint.state import RunState
from myxtts.config.load import build
from myxtts.errors import RunError, UsageError
from myxtts.text.tokenizer import Tokenizer


def make(step: int, loss: float | None = None) -> Checkpoint:
    tokenizer = Tokenizer.learn([["a", "ˈoʊ"]], "phonemes", ["en"])
    numbers = np.arange(5.0, dtype=np.float32) + step
    arrays = {
        "parameters/a/kernel": numbers,
        "average/a/kernel": numbers / 2,
        "guide/means": numbers[:2],
        "step": np.array(3, np.int64),
    }
    voices = {"file": np.ones((4, 80), np.float32)}
    return Checkpoint(build({"model.size": "small"}), tokenizer, arrays, voices, RunState(step=step, loss=loss))


def test_everything_comes_back(tmp_path):
    saved = make(7)
    read = read_checkpoint(write_checkpoint(tmp_path / "run", saved, keep=3, best=False))
    assert read.config == saved.config and read.tokenizer == saved.tokenizer
    assert read.arrays.keys() == saved.arrays.keys()
    for name, array in saved.arrays.items():
        np.testing.assert_array_equal(read.arrays[name], array)
        assert (read.arrays[name].dtype, read.arrays[name].shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(read.voices["file"], saved.voices["file"])
    assert read.state.step == 7


def test_whoever_may_read_the_settings_may_read_the_weights(tmp_path):
    path = write_checkpoint(tmp_path / "run", make(7), keep=3, best=False)
    assert len({file.stat().st_mode for file in path.iterdir()}) == 1


def test_rotation_keeps_the_newest_and_the_best(tmp_path):
    run = tmp_path / "run"
    for step in (1, 2, 3, 4, 5):
        write_checkpoint(run, make(step), keep=2, best=step == 2)
    assert sorted(p.name for p in run.glob("step-*")) == ["step-00000002", "step-00000004", "step-00000005"]
    assert find_checkpoint(run).resolve().name == "step-00000002"
    assert find_checkpoint(run, ("latest",)).resolve().name == "step-00000005"


def test_folders_of_the_user_are_never_rotated_away(tmp_path):
    for name in ("step-holiday", "step-1", "step-00000000"):
        (tmp_path / name).mkdir()
    for step in (1, 2, 3):
        write_checkpoint(tmp_path, make(step), keep=1, best=False)
    kept = sorted(p.name for p in tmp_path.glob("step-*"))
    assert kept == ["step-00000000", "step-00000003", "step-1", "step-holiday"]


def test_missing_and_damaged_checkpoints_are_one_line(tmp_path):
    with pytest.raises(UsageError, match="no such checkpoint"):
        find_checkpoint(tmp_path / "none")
    with pytest.raises(UsageError, match="holds no checkpoint"):
        find_checkpoint(tmp_path)
    path = write_checkpoint(tmp_path / "run", make(1), keep=1, best=True)
    for part in ("model.safetensors", "training.safetensors", "symbols.json", "config.yaml"):
        damaged = write_checkpoint(tmp_path / part, make(1), keep=1, best=True)
        (damaged / part).write_bytes((damaged / part).read_bytes()[:40])
        with pytest.raises(UsageError) as error:
            read_checkpoint(damaged)
        assert "\n" not in str(error.value)
    (path / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"lacks model\.safetensors"):
        read_checkpoint(path)


def test_speaking_reads_nothing_that_only_resuming_needs(tmp_path):
    path = write_checkpoint(tmp_path / "run", make(1), keep=1, best=True)
    (path / "training.safetensors").unlink()
    assert list(read_checkpoint(path, to_resume=False).arrays) == ["average/a/kernel", "guide/means"]
    with pytest.raises(UsageError, match=r"lacks training\.safetensors"):
        read_checkpoint(path)
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**state, "sizes": {}}))
    (path / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"lacks model\.safetensors"):
        read_checkpoint(path)


def test_a_damaged_safetensors_file_of_the_right_size_is_one_line(tmp_path):
    path = write_checkpoint(tmp_path / "run", make(1), keep=1, best=True)
    content = bytearray((path / "model.safetensors").read_bytes())
    content[:8] = b"\xff" * 8  # the length of its header
    (path / "model.safetensors").write_bytes(content)
    with pytest.raises(UsageError, match=r"is damaged: .*model\.safetensors") as error:
        read_checkpoint(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "voices.npz", "symbols.json"])
def test_content_that_changed_on_the_disk_is_noticed(tmp_path, name):
    path = write_checkpoint(tmp_path / "run", make(1), keep=1, best=True)
    content = bytearray((path / name).read_bytes())
    content[-20:] = bytes(20)
    (path / name).write_bytes(content)
    with pytest.raises(UsageError, match=f"is damaged: the content of {name} has changed since it was written"):
        read_checkpoint(path)


def test_what_no_checksum_tells_is_noticed_by_its_kind(tmp_path):
    """In checkpoints without checksums: weights of another type, or that are no numbers, and archives that are cut."""
    path = write_checkpoint(tmp_path / "run", make(1), keep=1, best=True)
    state = json.loads((path / "state.json").read_text())
    del state["checksums"]
    (path / "state.json").write_text(json.dumps(state))
    for name, damage in (
        ("model.safetensors", lambda whole: whole.replace(b'"F32"', b'"I32"', 1)),
        ("training.safetensors", lambda whole: whole[:-4] + b"\xff" * 4),  # no number
        ("voices.npz", lambda whole: whole[:60] + b"(((" + whole[63:]),
        ("voices.npz", lambda whole: bytes(len(whole))),
    ):
        whole = (path / name).read_bytes()
        (path / name).write_bytes(damage(whole))
        with pytest.raises(UsageError, match="is damaged: "):
            read_checkpoint(path)
        (path / name).write_bytes(whole)
    assert read_checkpoint(path).state.step == 1


def test_a_damaged_state_is_one_line_that_names_another_checkpoint(tmp_path):
    other = write_checkpoint(tmp_path, make(1), keep=3, best=False)
    path = write_checkpoint(tmp_path, make(2), keep=3, best=False)
    whole = json.loads((path / "state.json").read_text())
    for damage in (
        [],
        {**whole, "step": "x"},
        {**whole, "step": -3},
        {**whole, "parts": 0},
        {k: v for k, v in whole.items() if k != "order"},
    ):
        (path / "state.json").write_text(json.dumps(damage))
        with pytest.raises(UsageError, match=f"is damaged: state.json .*name another one: {other}"):
            read_checkpoint(path)
    (tmp_path / "latest").unlink()
    with pytest.raises(UsageError, match=f"points nowhere; name a checkpoint: {tmp_path}/step-"):
        find_checkpoint(tmp_path, ("latest",))


def test_best_is_mended_and_the_order_is_the_time_of_writing(tmp_path):
    for step, loss in ((10, 0.9), (30, 0.5), (20, 0.7), (123_456_789, None)):
        write_checkpoint(tmp_path, make(step, loss), keep=9, best=False)
    assert [int(path.name[5:]) for path in list_checkpoints(tmp_path)] == [10, 30, 20, 123_456_789]
    with locked_run(tmp_path):
        assert (tmp_path / "best").readlink().name == "step-00000030"
    write_checkpoint(tmp_path, make(40), keep=2, best=False)
    assert [int(path.name[5:]) for path in list_checkpoints(tmp_path)] == [30, 123_456_789, 40]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_clear_failure(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunError, match="cannot save"):
        write_checkpoint(tmp_path / "run", make(1), keep=1, best=True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"arrays": {"average/a/kernel": np.array([1.0, np.nan], np.float32)}}, "a/kernel holds what is no number"),
        ({"voices": {}}, "names no speaker"),
        ({"voices": {"file": np.ones((4, 40), np.float32)}}, "80 bands"),
        ({"tokenizer": Tokenizer.learn([["a"]], "phonemes", [])}, "names no language"),
    ],
)
def test_what_can_be_read_and_not_be_used_is_refused(tmp_path, changes, told):
    path = write_checkpoint(tmp_path / "run", dataclasses.replace(make(1), **changes), keep=1, best=False)
    with pytest.raises(UsageError, match=told):
        read_checkpoint(path)
