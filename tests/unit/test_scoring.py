"""What spoken clips are scored by. The measuring packages are large: a script stands in for a Python with them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from myxtts.audio.wav import write_wave
from myxtts.errors import RunError, UsageError
from myxtts.scoring import listen
from myxtts.scoring.scores import PYTHON, SpokenClip, add_up, require_measures, score
from myxtts.scoring.words import count_edits, count_errors, plain


@pytest.mark.parametrize(
    ("wanted", "heard", "edits"), [("kitten", "sitting", 3), ("", "abc", 3), ("same", "same", 0), ("abc", "", 3)]
)
def test_the_fewest_edits_are_counted(wanted, heard, edits):
    assert count_edits(wanted, heard) == edits


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("Dr. Smith paid $5.", "doctor smith paid five dollars", "en"),
        ("It's 20 miles — isn't it?", "it s twenty miles isn t it", "en"),
        ("كتاب ۱۲ صفحه دارد.", "کتاب دوازده صفحه دارد", "fa"),
    ],
)
def test_what_sounds_the_same_is_no_error(one, other, language):
    assert plain(one, language) == plain(other, language)
    assert count_errors(one, other, language)["cer"][0] == 0


def test_error_rates_are_over_all_characters_and_not_means_of_rates():
    clips = [SpokenClip(Path("a.wav"), "yes"), SpokenClip(Path("b.wav"), "a much longer sentence")]
    scores = add_up(clips, [{"heard": "no", "dnsmos": 2.0}, {"heard": clips[1].text, "dnsmos": 4.0}], {})
    assert scores.means["cer"] == pytest.approx(3 / 25)
    assert scores.means["wer"] == pytest.approx(1 / 5)
    assert scores.means["dnsmos"] == 3.0
    assert scores.clips[0]["heard"] == "no"


@pytest.fixture
def clip(tmp_path) -> SpokenClip:
    write_wave(tmp_path / "clip.wav", np.zeros(22050, np.float32), 22050)
    return SpokenClip(tmp_path / "clip.wav", "good day")


def stand_in(tmp_path: Path, body: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\nimport json, sys\njob = json.load(sys.stdin)\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_another_python_listens(clip, tmp_path, monkeypatch):
    clips = "[{'heard': 'good way', 'dnsmos': 3.5}]"
    answer = f"print(json.dumps({{'clips': {clips}, 'missing': {{'similarity': job['language']}}}}))"
    monkeypatch.setenv(PYTHON, stand_in(tmp_path, answer))
    scores = score([clip], [clip.wave])
    assert scores.means == {"cer": pytest.approx(1 / 8), "wer": 0.5, "dnsmos": 3.5}
    assert scores.missing == {"similarity": "en"}


@pytest.mark.parametrize(
    ("body", "words"), [("sys.exit('the model is broken')", "the model is broken"), (None, "cannot run")]
)
def test_a_listener_that_fails_is_told_in_one_line(clip, tmp_path, monkeypatch, body, words):
    monkeypatch.setenv(PYTHON, stand_in(tmp_path, body) if body else str(tmp_path / "nowhere"))
    with pytest.raises(RunError, match=words):
        score([clip])


def test_a_program_that_is_no_python_is_told_in_one_line(clip, monkeypatch):
    monkeypatch.setenv(PYTHON, "/bin/true")
    with pytest.raises(RunError, match="is no Python"):
        score([clip])


def test_evaluating_without_anything_to_measure_with_is_refused(tmp_path, monkeypatch):
    answer = "print(json.dumps({'clips': [], 'missing': {name: 'pip install x' for name in job['measures']}}))"
    monkeypatch.setenv(PYTHON, stand_in(tmp_path, answer))
    with pytest.raises(UsageError, match=r"needs something to measure with: pip install x; .*MYXTTS_SCORER"):
        require_measures("--eval-every")


def test_a_measure_whose_package_is_missing_does_not_stop_the_others(clip, monkeypatch):
    def cannot(_job):
        raise ImportError("No module named 'never_heard_of'")

    def make_loudness(_job):
        return lambda one: {"dnsmos": float(np.abs(one.wave).max())}

    monkeypatch.setattr(listen, "MEASURES", {"cer": (cannot, "ears"), "dnsmos": (make_loudness, "")})
    job = {"clips": [{"wave": str(clip.wave)}], "measures": ["cer", "dnsmos"]}
    found = listen.listen_to_all(json.loads(json.dumps(job)))
    assert found["clips"] == [{"dnsmos": 0.0}]
    assert found["missing"]["cer"].startswith("pip install ears")


def test_a_clip_that_cannot_be_measured_does_not_stop_the_others(clip, monkeypatch):
    def make_picky(_job):
        heard = iter([{"dnsmos": 3.0}])
        return lambda _clip: next(heard)

    monkeypatch.setattr(listen, "MEASURES", {"dnsmos": (make_picky, "")})
    found = listen.listen_to_all({"clips": 2 * [{"wave": str(clip.wave)}], "measures": ["dnsmos"]})
    assert found["clips"] == [{"dnsmos": 3.0}, {}]
    assert "clip.wav was left out (StopIteration" in found["missing"]["dnsmos"]


def test_marks_belong_to_their_letters():
    assert len(plain("हिन्दी", "hi").split()) == 1
    assert count_errors("हिन्दी", "हन्दी", "hi")["cer"][0] == 1
    assert plain("كِتاب", "ar") == plain("كتاب", "ar")
