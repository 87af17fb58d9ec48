"""The voice and the vocoder in the package, and how a run becomes one."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint, write_checkpoint
from myxtts.checkpoint.packaged import shrink
from myxtts.config.load import renamed_keys
from myxtts.errors import UsageError
from myxtts.inference.tensorflow_engine import open_checkpoint
from myxtts.voice import VOCODER, VOICE
from tests.helpers import begins_with


@pytest.fixture(scope="module")
def small(trained, tmp_path_factory) -> Path:
    whole = read_checkpoint(find_checkpoint(trained))
    return write_checkpoint(tmp_path_factory.mktemp("small"), shrink(whole), keep=1, best=False)


def test_a_small_copy_speaks_like_the_run_and_tells_nothing_of_the_machine(trained, small):
    whole, copy = open_checkpoint(trained), open_checkpoint(small)
    mels = [one.engine.mel(one.read("Good day.").sentences[0], one.voice()) for one in (whole, copy)]
    assert mels[0].shape == mels[1].shape
    assert np.abs(mels[0] - mels[1]).max() < 0.05
    sizes = [sum(f.stat().st_size for f in find_checkpoint(run).glob("*.safetensors")) for run in (trained, small)]
    assert sizes[1] < 0.2 * sizes[0]
    assert str(trained.parent) not in "".join(
        path.read_text(encoding="utf-8") for path in small.iterdir() if path.suffix in (".yaml", ".json")
    )


def test_a_run_can_begin_with_a_small_copy(small, make_trainer):
    trainer = make_trainer(init_from=str(small), max_steps=1)
    begins_with(trainer, read_checkpoint(small).arrays)
    assert trainer.state.knows_alignment
    with pytest.raises(UsageError, match=r"begin a new run from it with `training.init_from`"):
        make_trainer(resume_checkpoint=small)


def test_what_ships_is_small_enough_and_complete():
    files = [path for folder in (VOICE, VOCODER) for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 25e6
    targets = {read_checkpoint(folder).config.training.target for folder in (VOICE, VOCODER)}
    assert targets == {"speech", "vocoder"}
    assert not any(renamed_keys(folder / "config.yaml") for folder in (VOICE, VOCODER))


def test_say_speaks_into_a_file(run_myxtts, tmp_path):
    result = run_myxtts("say", "Good morning to all of you.", "-o", tmp_path / "good.wav")
    assert result.returncode == 0, result.stderr
    wave, rate = soundfile.read(tmp_path / "good.wav")
    assert rate == 22050
    assert 1.0 < len(wave) / rate < 4.0
    assert 0.02 < np.sqrt(np.mean(wave**2)) < 0.5


def test_the_voice_has_a_name_where_a_run_is_asked_for(tmp_path, monkeypatch):
    assert find_checkpoint(Path("english")) == VOICE
    monkeypatch.chdir(tmp_path)
    write_checkpoint(tmp_path / "vocoder", read_checkpoint(VOCODER), keep=1, best=False)
    assert find_checkpoint(Path("vocoder")) == Path("vocoder/latest")  # a folder of the user's comes first


def test_a_reference_is_brought_to_the_level_of_the_training(small, corpus, tmp_path):
    synthesizer = open_checkpoint(small)
    wave, rate = soundfile.read(corpus / "wavs" / "demo-0001.wav", dtype="float32")
    mels = []
    for gain in (0.03, 0.01):
        soundfile.write(tmp_path / "soft.wav", np.pad(gain * wave, rate), rate, subtype="FLOAT")
        mels.append(synthesizer.read_reference(tmp_path / "soft.wav"))
    np.testing.assert_allclose(mels[0], mels[1], atol=0.05)  # both as soft as was trained with
    assert len(mels[0]) < (len(wave) / rate + 0.2) * 22050 / 256  # the silence is cut off
    soundfile.write(tmp_path / "silent.wav", np.zeros(rate), rate)
    with pytest.raises(UsageError, match="holds only silence"):
        synthesizer.read_reference(tmp_path / "silent.wav")


def test_no_text_is_spoken_before_all_can_be(small, run_here, tmp_path):
    (tmp_path / "lines.txt").write_text("Good day.\n\nДобрый день.\n", encoding="utf-8")
    words = ("synthesize", "--checkpoint", small, "--text-file", tmp_path / "lines.txt", "-o", tmp_path / "spoken")
    result = run_here(*words)
    assert result.returncode == 2
    assert "line 3 of " in result.stderr
    assert not list((tmp_path / "spoken").glob("*.wav"))


def test_say_writes_a_file_where_no_player_can_play(run_here, tmp_path, monkeypatch):
    player = tmp_path / "aplay"
    player.write_text("#!/bin/sh\nexit 1\n")
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = run_here("say", "Good morning.")
    assert result.returncode == 0, result.stderr
    assert "say.wav (aplay could not play it)" in result.stdout
    assert soundfile.info(tmp_path / "say.wav").frames > 10_000
    swallowed = run_here("say", "--reference", tmp_path / "say.wav", "Good morning.")
    assert swallowed.returncode == 2
    assert "a text stands before --reference" in swallowed.stderr
