"""The command as a person meets it: answers at once, one clear line for bad input, the right exit code."""

import json
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from myxtts.cli.devices import pipeline_lines
from myxtts.config.config import DataConfig
from myxtts.devices import plan_devices
from myxtts.voice import VOCODER

COMMANDS = ([], ["train"], ["prepare"], ["synthesize"], ["demo"])

HELP = """
import json, sys, time
begin = time.perf_counter()
from myxtts.cli.main import main
try:
    main(json.loads(sys.argv[1]))
except SystemExit as stop:
    code = stop.code
print(json.dumps([code, "tensorflow" in sys.modules]))
"""


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "myxtts")
def test_help_answers_at_once_without_tensorflow(words):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        result = subprocess.run(
            [sys.executable, "-c", HELP, json.dumps([*words, "--help"])], capture_output=True, text=True, check=True
        )
        times.append(time.perf_counter() - begin)
    assert json.loads(result.stdout.splitlines()[-1]) == [0, False]
    assert min(times) <= 0.5


def fails(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert result.returncode == code, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0], lines[0]


def test_wrong_usage_is_one_line_and_exit_2(run_myxtts, tmp_path):
    fails(run_myxtts("trian"), 2, "trian")
    fails(run_myxtts("train", "--lr", "fast"), 2, "--lr")
    fails(run_myxtts("train"), 2, "--train-data")
    fails(run_myxtts("train", "--train-data", tmp_path / "none"), 2, "no such dataset folder")
    fails(run_myxtts("train", "--train-data", tmp_path, "--batch-size", "0"), 2, "batch_size")
    fails(run_myxtts("prepare", tmp_path), 2, "metadata.csv")
    fails(run_myxtts("demo", "--minutes", "0"), 2, "--minutes")
    (tmp_path / "mine" / "corpus").mkdir(parents=True)
    fails(run_myxtts("demo", "--folder", tmp_path / "mine"), 2, "did not make")
    assert (tmp_path / "mine" / "corpus").is_dir()
    fails(run_myxtts("train", "--train-data", tmp_path, "--seed", "-1"), 2, "seed")
    fails(run_myxtts("demo", "--say", "你好", "--folder", tmp_path / "demo"), 2, "你")
    (tmp_path / "bad.yaml").write_text("training: {lrr: 1}")
    fails(run_myxtts("train", "--config", tmp_path / "bad.yaml"), 2, "lrr", "'lr'")


def test_missing_and_foreign_checkpoints(run_myxtts, trained, tmp_path):
    out = tmp_path / "o.wav"
    fails(run_myxtts("synthesize", "--checkpoint", tmp_path / "no", "--text", "hi", "-o", out), 2, "no such checkpoint")
    fails(run_myxtts("synthesize", "--checkpoint", tmp_path, "--text", "hi", "-o", out), 2, "holds no checkpoint")
    other = tmp_path / "other"
    subprocess.run(["cp", "-rL", trained / "latest", other], check=True)
    text = (other / "config.yaml").read_text().replace("width: 32", "width: 64")
    (other / "config.yaml").write_text(text)
    fails(run_myxtts("synthesize", "--checkpoint", other, "--text", "hi", "-o", out), 2, "another size")
    assert not out.exists()


def test_empty_text_unwritable_output_and_bad_reference(run_myxtts, trained, tmp_path):
    out = tmp_path / "o.wav"
    speak = ("synthesize", "--checkpoint", trained)
    fails(run_myxtts(*speak, "--text", "  ", "-o", out), 2, "no word to speak")
    fails(run_myxtts(*speak, "-o", out, stdin=""), 2, "no word to speak")
    fails(run_myxtts(*speak, "--text", "hello", "-o", tmp_path / "no" / "o.wav"), 2, "no folder")
    fails(run_myxtts(*speak, "--text", "hello", "-o", tmp_path), 2, "is a folder")
    fails(run_myxtts(*speak, "--text", "hello", "--speed", "0", "-o", out), 2, "speed")
    (tmp_path / "noise.wav").write_text("no sound")
    fails(run_myxtts(*speak, "--text", "hello", "--reference", tmp_path / "noise.wav", "-o", out), 2, "not a recording")
    fails(run_myxtts(*speak, "--text", "hello", "--reference", tmp_path / "x.wav", "-o", out), 2, "no such recording")
    fails(run_myxtts(*speak, "--text", "hello", "--speaker", "bob", "-o", out), 2, "bob")
    (tmp_path / "lines.txt").write_text("A word.\n***\n", encoding="utf-8")
    fails(run_myxtts(*speak, "--text-file", tmp_path / "lines.txt", "-o", tmp_path / "wavs"), 2, "line 2")
    fails(run_myxtts(*speak, "--text", "hello", "-o", "/dev/null"), 2, "not an ordinary file")
    fails(run_myxtts(*speak, "--text", "hello", "--vocoder", "nope", "-o", out), 2, "no such vocoder", "griffin-lim")
    assert not out.exists()


def test_a_recording_that_is_read_is_never_written_over(run_myxtts, corpus, tmp_path):
    source = next((corpus / "wavs").glob("*.wav"))
    recording = tmp_path / "0001.wav"
    shutil.copy(source, recording)
    fails(run_myxtts("say", "Hi", "--reference", recording, "-o", recording), 2, "choose another -o")
    english = ("--checkpoint", "english")
    (tmp_path / "lines.txt").write_text("Hi there.\n")
    lines = ("--text-file", tmp_path / "lines.txt", "-o", tmp_path)
    fails(run_myxtts("synthesize", *english, *lines, "--reference", recording), 2, "choose another -o")
    fails(run_myxtts("evaluate", *english, *lines, "--like", tmp_path), 2, "choose another folder")
    fails(run_myxtts("evaluate", "--copy", tmp_path, "-o", tmp_path), 2, "choose another folder")
    assert recording.read_bytes() == source.read_bytes()


def test_flags_of_the_other_target_are_refused(run_myxtts, tmp_path):
    fails(run_myxtts("train", "--train-data", tmp_path, "--critics-after", "2"), 2, "--target vocoder")
    vocoder = ("train", "--target", "vocoder", "--train-data", tmp_path)
    fails(run_myxtts(*vocoder, "--reference-gain-db", "3"), 2, "needs no reference")


def test_speaks_from_a_saved_checkpoint_in_a_new_process(run_myxtts, trained, tmp_path):
    out = tmp_path / "o.wav"
    result = run_myxtts("synthesize", "--checkpoint", trained, "--text", "The baker found a golden ring.", "-o", out)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(out)
    assert result.stderr == ("" if VOCODER.is_dir() else "vocoder: griffin-lim (no vocoder is in this package)\n")
    wave, rate = soundfile.read(out)
    assert rate == 22050 and len(wave) > 0.5 * rate and np.abs(wave).max() > 0.01


def test_speed_standard_input_and_references(run_myxtts, trained, corpus, tmp_path):
    lengths = {}
    for speed in ("0.5", "2"):
        out = tmp_path / f"{speed}.wav"
        words = ("--speed", speed, "--reference", corpus / "wavs" / "demo-0001.wav", corpus / "wavs" / "demo-0002.wav")
        result = run_myxtts(
            "synthesize", "--checkpoint", trained, *words, "-o", out, stdin="A quiet evening. It rained."
        )
        assert result.returncode == 0, result.stderr
        lengths[speed] = soundfile.info(out).frames
    assert lengths["0.5"] > 1.5 * lengths["2"]


def test_a_text_file_becomes_a_folder_of_recordings(run_myxtts, trained, tmp_path):
    (tmp_path / "lines.txt").write_text("First line.\n\nSecond line.\n", encoding="utf-8")
    words = ("--text-file", tmp_path / "lines.txt", "-o", tmp_path / "out")
    result = run_myxtts("synthesize", "--checkpoint", trained, *words)
    assert result.returncode == 0, result.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["0001.wav", "0002.wav"]


def test_training_on_two_devices_says_what_it_does(run_myxtts, corpus, tiny_yaml, tmp_path):
    result = run_myxtts(
        "train", "--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run",
        "--max-steps", "2",
        "--virtual-devices", "2", "--data-gpu", "1", "--model-gpu", "0", "--model-start-delay", "0.5",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for line in (
        "🎯 Configuring Multi-GPU Mode...", "   Data Processing GPU: /CPU:1", "   Model Training GPU: /CPU:0",
        "✅ Multi-GPU configuration completed successfully", "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
        "   - Prefetching to /CPU:1 with buffer_size=50", "🎯 Multi-GPU Mode: Model will be placed on /CPU:0",
        "Creating model on device: /CPU:0", "🕐 Multi-GPU Mode: Waiting 0.5s for data pipeline to warm up...",
        "✅ Model training starting now",
    ):  # fmt: skip
        assert line in result.stdout.splitlines(), line
    plain = DataConfig(pipeline="sequential")
    [line] = pipeline_lines(plan_devices(plain), plain)
    assert "Sequential pipeline: /CPU:0 prepares, then /CPU:0 trains" in line


def test_poor_settings_are_told_in_one_block_before_the_first_step(run_myxtts, corpus, tiny_yaml, tmp_path):
    words = ("--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run", "--max-steps", 1)
    result = run_myxtts("train", *words, "--disable-static-shapes", "--virtual-devices", 2, "--log-every", 1)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    [first] = [number for number, line in enumerate(lines) if line.startswith("💡")]
    last = next(number for number, line in enumerate(lines) if "myxtts profile" in line)
    step = next(number for number, line in enumerate(lines) if line.startswith("step 1 "))
    assert first < last < step
    block = lines[first + 1 : last]
    assert [line.split("; type ")[1] for line in block] == ["--enable-static-shapes"]
    assert "card" not in "".join(block)  # virtual devices are none
