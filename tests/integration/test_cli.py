"""The command as a person meets it: help at once, one clear line for bad input, the right exit code."""

import json
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from myxtts.voice import VOCODER

COMMANDS = ([], ["train"], ["prepare"], ["synthesize"], ["demo"])

HELP = """
import json, sys
from myxtts.cli.main import main
try:
    main(json.loads(sys.argv[1]))
except SystemExit as stop:
    code = stop.code
print(json.dumps([code, "tensorflow" in sys.modules]))
"""


def ask_for_help(words: list[str]) -> tuple[int, bool]:
    """The exit code of a new process, and whether it has imported TensorFlow."""
    command = [sys.executable, "-c", HELP, json.dumps([*words, "--help"])]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    code, imported = json.loads(result.stdout.splitlines()[-1])
    return code, imported


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "myxtts")
def test_help_answers_without_tensorflow(words):
    assert ask_for_help(words) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "myxtts")
def test_help_answers_at_once(words):
    """On a machine that does nothing else; the best of a few, because starting Python takes what it takes."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        ask_for_help(words)
        times.append(time.perf_counter() - begin)
    assert min(times) <= 0.5


def fails(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert result.returncode == code, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0], lines[0]


def test_wrong_usage_is_one_line_and_exit_2(run_myxtts, run_here, tmp_path):
    fails(run_myxtts("trian"), 2, "trian")
    fails(run_here("trian"), 2, "trian")  # a process is not needed for the rest
    fails(run_here("train", "--lr", "fast"), 2, "--lr")
    fails(run_here("train"), 2, "--train-data")
    fails(run_here("train", "--train-data", tmp_path / "none"), 2, "no such dataset folder")
    fails(run_here("train", "--train-data", tmp_path, "--batch-size", "0"), 2, "--batch-size is 0; it must be positive")
    fails(run_here("prepare", tmp_path), 2, "metadata.csv")
    fails(run_myxtts("demo", "--minutes", "0"), 2, "--minutes")
    (tmp_path / "mine" / "corpus").mkdir(parents=True)
    fails(run_here("demo", "--folder", tmp_path / "mine"), 2, "did not make")
    assert (tmp_path / "mine" / "corpus").is_dir()
    fails(run_here("train", "--train-data", tmp_path, "--seed", "-1"), 2, "--seed is -1; it must lie between")
    fails(run_here("demo", "--say", "你好", "--folder", tmp_path / "demo"), 2, "你")
    (tmp_path / "bad.yaml").write_text("training: {lrr: 1}")
    fails(run_here("train", "--config", tmp_path / "bad.yaml"), 2, "lrr", "'lr'")


def test_missing_and_foreign_checkpoints(run_here, trained, tmp_path):
    out = tmp_path / "o.wav"
    fails(run_here("synthesize", "--checkpoint", tmp_path / "no", "--text", "hi", "-o", out), 2, "no such checkpoint")
    fails(run_here("synthesize", "--checkpoint", tmp_path, "--text", "hi", "-o", out), 2, "holds no checkpoint")
    other = tmp_path / "other"
    subprocess.run(["cp", "-rL", trained / "latest", other], check=True)
    text = (other / "config.yaml").read_text().replace("width: 32", "width: 64")
    (other / "config.yaml").write_text(text)
    fails(
        run_here("synthesize", "--checkpoint", other, "--text", "hi", "-o", out),
        2,
        "speaker/queries [4, 32], needed [4, 64]",
    )
    assert not out.exists()


def test_empty_text_unwritable_output_and_bad_reference(run_here, trained, tmp_path):
    out = tmp_path / "o.wav"
    speak = ("synthesize", "--checkpoint", trained)
    fails(run_here(*speak, "--text", "  ", "-o", out), 2, "no word to speak")
    fails(run_here(*speak, "-o", out, stdin=""), 2, "no word to speak")
    fails(run_here(*speak, "--text", "hello", "-o", tmp_path / "no" / "o.wav"), 2, "no folder")
    fails(run_here(*speak, "--text", "hello", "-o", tmp_path), 2, "is a folder")
    fails(run_here(*speak, "--text", "hello", "--speed", "0", "-o", out), 2, "speed")
    (tmp_path / "noise.wav").write_text("no sound")
    fails(run_here(*speak, "--text", "hello", "--reference", tmp_path / "noise.wav", "-o", out), 2, "not a recording")
    fails(run_here(*speak, "--text", "hello", "--reference", tmp_path / "x.wav", "-o", out), 2, "no such recording")
    fails(run_here(*speak, "--text", "hello", "--speaker", "bob", "-o", out), 2, "bob")
    (tmp_path / "lines.txt").write_text("A word.\n***\n", encoding="utf-8")
    fails(run_here(*speak, "--text-file", tmp_path / "lines.txt", "-o", tmp_path / "wavs"), 2, "line 2")
    fails(run_here(*speak, "--text", "hello", "-o", "/dev/null"), 2, "not an ordinary file")
    fails(run_here(*speak, "--text", "hello", "--vocoder", "nope", "-o", out), 2, "no such vocoder", "griffin-lim")
    assert not out.exists()


def test_a_recording_that_is_read_is_never_written_over(run_here, corpus, tmp_path):
    source = next((corpus / "wavs").glob("*.wav"))
    recording = tmp_path / "0001.wav"
    shutil.copy(source, recording)
    fails(run_here("say", "Hi", "--reference", recording, "-o", recording), 2, "choose another -o")
    english = ("--checkpoint", "english")
    (tmp_path / "lines.txt").write_text("Hi there.\n")
    lines = ("--text-file", tmp_path / "lines.txt", "-o", tmp_path)
    fails(run_here("synthesize", *english, *lines, "--reference", recording), 2, "choose another -o")
    fails(run_here("evaluate", *english, *lines, "--like", tmp_path), 2, "choose another folder")
    fails(run_here("evaluate", "--copy", tmp_path, "-o", tmp_path), 2, "choose another folder")
    assert recording.read_bytes() == source.read_bytes()


def test_flags_of_the_other_target_are_refused(run_here, tmp_path):
    fails(run_here("train", "--train-data", tmp_path, "--discriminators-after", "2"), 2, "--target vocoder")
    vocoder = ("train", "--target", "vocoder", "--train-data", tmp_path)
    fails(run_here(*vocoder, "--reference-gain-db", "3"), 2, "needs no reference")


def test_speaks_from_a_saved_checkpoint_in_a_new_process(run_myxtts, trained, tmp_path):
    out = tmp_path / "o.wav"
    result = run_myxtts("synthesize", "--checkpoint", trained, "--text", "The baker found a golden ring.", "-o", out)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(out)
    assert result.stderr == ("" if VOCODER.is_dir() else "vocoder: griffin-lim (no vocoder is in this package)\n")
    wave, rate = soundfile.read(out)
    assert rate == 22050 and len(wave) > 0.5 * rate and np.abs(wave).max() > 0.01


def test_speed_standard_input_and_references(run_here, trained, corpus, tmp_path):
    lengths = {}
    for speed in ("0.5", "2"):
        out = tmp_path / f"{speed}.wav"
        words = ("--speed", speed, "--reference", corpus / "wavs" / "demo-0001.wav", corpus / "wavs" / "demo-0002.wav")
        result = run_here("synthesize", "--checkpoint", trained, *words, "-o", out, stdin="A quiet evening. It rained.")
        assert result.returncode == 0, result.stderr
        lengths[speed] = soundfile.info(out).frames
    assert lengths["0.5"] > 1.5 * lengths["2"]


def test_a_text_file_becomes_a_folder_of_recordings(run_here, trained, tmp_path):
    (tmp_path / "lines.txt").write_text("First line.\n\nSecond line.\n", encoding="utf-8")
    words = ("--text-file", tmp_path / "lines.txt", "-o", tmp_path / "out")
    result = run_here("synthesize", "--checkpoint", trained, *words)
    assert result.returncode == 0, result.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["0001.wav", "0002.wav"]
