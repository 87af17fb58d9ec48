"""Fixtures shared by all tests: two devices, a small corpus, a small trained run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.two_devices import PLAN  # noqa: F401 (sets the devices up before any test starts TensorFlow)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty short clips in espeak-ng's voice, in the LJSpeech layout."""
    from myxtts.demo.corpus import make_corpus

    folder = tmp_path_factory.mktemp("corpus") / "small"
    return make_corpus(folder, "espeak", 40, seed=1).folder


@pytest.fixture
def browser(tmp_path: Path):
    """Chromium without a window and without a network; tests that want it are skipped where there is none."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync",
                 "disable-background-networking", "disable-component-update", "disable-dev-shm-usage",
                 "autoplay-policy=no-user-gesture-required", f"user-data-dir={tmp_path / 'browser'}"):  # fmt: skip
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.set_script_timeout(60)
        yield driver


@pytest.fixture(scope="session")
def run_myxtts(tmp_path_factory: pytest.TempPathFactory):
    """Runs the command in a new process with its own cache folder."""
    cache = tmp_path_factory.mktemp("cache")

    def run(*words: str | Path, stdin: str | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "myxtts", *map(str, words)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        )

    return run


TINY = """
model: {width: 32, text_blocks: 1, decoder_blocks: 2, decoder_attention_every: 2, duration_blocks: 1, speaker_tokens: 4}
data: {batch_size: 4, buckets: 1, val_clips: 4}
training: {flat_start_sweeps: 0, guide_steps: 20, log_every: 5, val_every: 10, save_every: 10, warmup_steps: 5,
           sample_every: 0}
"""


@pytest.fixture(scope="session")
def tiny_yaml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of a model that trains a step in milliseconds, with little to compile before it."""
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def two_shapes_yaml(tiny_yaml: Path) -> Path:
    """The same with batches of two shapes, which takes twice as long to compile."""
    path = tiny_yaml.with_name("two_shapes.yaml")
    path.write_text(TINY.replace("buckets: 1", "buckets: 2"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, corpus: Path, tiny_yaml: Path, run_myxtts) -> Path:
    """The run folder of a short training, made by the command itself."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    words = ("--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", folder, "--log-every", 2)
    result = run_myxtts("train", *words, "--max-steps", 20)
    assert result.returncode == 0, result.stderr
    return folder
