"""`evaluate` and `--eval-every`, with a stand-in for the Python that has the measuring packages."""

import json

import pytest

from myxtts.cli.evaluate import print_table
from myxtts.errors import UsageError
from myxtts.inference.evaluation import Evaluation
from myxtts.scoring.scores import PYTHON, Scores
from tests.helpers import make_listener


@pytest.fixture(autouse=True)
def listener(tmp_path, monkeypatch):
    monkeypatch.setenv(PYTHON, str(make_listener(tmp_path)))


def test_sentences_are_spoken_scored_and_kept(trained, corpus, run_myxtts, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("Good day.\nGood way.\n")
    words = ["evaluate", "--checkpoint", trained, "--text-file", lines, "--like", corpus, "-o", tmp_path / "kept"]
    result = run_myxtts(*words, "--json")
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert found["means"] == {"cer": pytest.approx(1 / 16), "wer": 0.25, "similarity": 0.5, "dnsmos": 3.0}
    assert found["times_real_time"] > 0
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["0001.wav", "0002.wav"]


def test_scores_are_shown_in_a_table_and_what_is_missing_below_it(capsys):
    clips = [{"cer": 0.0625}, {"cer": 0.0625}]
    print_table([Evaluation("speech", Scores({"cer": 0.0625}, clips, {"pesq": "no package"}), 12.3)])
    table = capsys.readouterr().out
    assert all(word in table for word in ("2 clips", "CER", "6.2%", " 12 ", "PESQ: not measured; no package"))


def test_recordings_are_copied_and_scored_beside_griffin_lim(corpus, run_here, tmp_path):
    words = ["evaluate", "--copy", corpus / "wavs", "--clips", "2", "--vocoder", "griffin-lim", "--json"]
    result = run_here(*words, "-o", tmp_path / "copies")
    assert result.returncode == 0, result.stderr
    found = {one["system"]: one["means"] for one in json.loads(result.stdout)}
    assert list(found) == ["recordings", "griffin-lim-60-plain", "griffin-lim-60"]
    assert found["griffin-lim-60"]["pesq"] == 2.5
    assert 0 < found["griffin-lim-60"]["mel"] < found["griffin-lim-60-plain"]["mel"] < 1
    assert len(list((tmp_path / "copies" / "griffin-lim-60").iterdir())) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--copy", "nowhere"], "nowhere holds no recordings"),
        (["--checkpoint", "nowhere"], "no such checkpoint"),
        (["--copy", ".", "--like", "."], "--like goes with --checkpoint"),
        (["--copy", ".", "--pitch", "1.2"], "--pitch goes with --checkpoint"),
        (["--copy", ".", "--clips", "0"], "--clips is 0"),
        ([], "one of the arguments --checkpoint --copy is required"),
    ],
)
def test_wrong_usage_is_one_line(run_here, words, message):
    result = run_here("evaluate", *words)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_training_does_not_score_what_it_was_trained_on(make_trainer):
    with pytest.raises(UsageError, match="none is held out"):
        make_trainer(eval_every=2, val_clips=0)


def test_training_evaluates_beside_the_loop_when_asked(make_trainer, tmp_path):
    seen = []
    make_trainer(max_steps=4, eval_every=2, sample_every=0, save_every=100, val_clips=2).train(seen.append)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    scores = [line for line in lines if line["kind"] == "evaluation"]
    notices = [line for line in lines if line["kind"] == "notice"]
    assert scores or notices
    assert scores[-1]["scores"]["dnsmos"] == 3.0
    assert len(list((tmp_path / "run" / "evaluations").glob("*/scores.json"))) == len(scores)
