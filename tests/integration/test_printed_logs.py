"""The logs that users keep, through the scripts that they type."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synthetic import make_hums

ROOT = Path(__file__).parent.parent.parent
MEASURES = ("average step time", "GPU utilisation", "memory", "timing stability (std / mean)", "total time")


def run_script(name: str, *words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    """A script of the repository with both outputs in one text, as `2>&1` puts them."""
    command = [sys.executable, ROOT / name, *words]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=home)


def compare_two_runs(tmp_path: Path, *model: str | Path) -> None:
    """Trains a model twice for a hundred steps and has both logs read back."""
    hums, logs = make_hums(tmp_path / "hums", 4, longest=1.0), []
    for size in ("2", "4"):
        logs.append(tmp_path / f"test_batch_{size}.log")
        devices = ("--virtual-devices", "2", "--data-gpu", "0", "--model-gpu", "1", "--batch-size", size)
        limits = ("--max-steps", "100", *model, "--checkpoint-dir", tmp_path / f"run-{size}")
        done = run_script("train_main.py", *devices, "--train-data", hums, *limits, home=tmp_path)
        assert done.returncode == 0, done.stdout
        logs[-1].write_text(done.stdout, encoding="utf-8")
    for script in ("compare_logs.py", "analyze_batch_scaling.py"):
        shown = run_script(script, *logs, home=tmp_path)
        assert shown.returncode == 0, shown.stdout
        rows = {line.split("│")[1].strip(): line for line in shown.stdout.splitlines() if line.startswith("│")}
        assert rows.keys() >= set(MEASURES) and "nan" not in shown.stdout
        assert rows["memory"].count(" MB") == 2 and rows["GPU utilisation"].count("not sampled") == 2
    both = json.loads(run_script("compare_logs.py", logs[0], tmp_path / "run-2", "--json", home=tmp_path).stdout)
    printed, written = both["runs"]
    assert printed["about"] == written["about"] and printed["steps"] == written["steps"] == 100
    for measure in ("average_step_ms", "variation", "memory_mb", "seconds"):
        assert abs(printed[measure] - written[measure]) <= max(0.06, 0.01 * written[measure])


def test_logs_of_a_hundred_steps_are_compared_and_scaled(tmp_path, unvalidated_yaml):
    compare_two_runs(tmp_path, "--config", unvalidated_yaml)


@pytest.mark.slow
def test_logs_of_the_tiny_model_are_compared_and_scaled(tmp_path):
    compare_two_runs(tmp_path, "--model-size", "tiny")
