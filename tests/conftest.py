"""Fixtures shared by all tests: two devices, a small corpus, a small trained run."""

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from myxtts.files import lock
from tests.helpers import PATIENCE
from tests.two_devices import CACHE  # sets the devices up too, before any test starts TensorFlow


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made by the first process of a session to ask for it, and found by the others."""
    home = Path(os.environ[CACHE])
    folder, done = home / name, home / f"{name}.done"
    with lock(home / f"{name}.lock", waiting=lambda: None):
        if not done.exists():
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Forty short clips in espeak-ng's voice, in the LJSpeech layout."""
    from myxtts.demo.corpus import make_corpus

    return made_once("corpus", lambda folder: make_corpus(folder, "espeak", 40, seed=1))


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
        driver.command_executor.client_config.timeout = PATIENCE
        driver.set_page_load_timeout(PATIENCE)
        driver.set_script_timeout(PATIENCE)
        yield driver


@pytest.fixture(scope="session")
def run_myxtts():
    """Runs the command in a new process."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "myxtts", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    return run


@pytest.fixture(scope="session")
def run_here():
    """Runs the command in this process: the same words and answers, without starting Python and TensorFlow again."""
    from myxtts.cli.main import main

    def run(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        printed, errors = io.StringIO(), io.StringIO()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)}
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(errors):
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            try:
                code = main([str(word) for word in words])
            except SystemExit as stop:  # how the parser answers
                code = int(stop.code or 0)
            finally:
                for number, handler in handlers.items():  # the command sets them for its process
                    signal.signal(number, handler)
        return subprocess.CompletedProcess(words, code, printed.getvalue(), errors.getvalue())

    return run


TINY = """
model: {width: 32, text_blocks: 1, decoder_blocks: 2, decoder_attention_every: 2, duration_blocks: 1, speaker_tokens: 4}
data: {batch_size: 4, buckets: 1, val_clips: 4, stall_timeout: 1800}
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
def unvalidated_yaml(tiny_yaml: Path) -> Path:
    """The same without held-out clips, whose losses are another function to trace."""
    path = tiny_yaml.with_name("unvalidated.yaml")
    path.write_text(TINY.replace("val_clips: 4", "val_clips: 0"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def two_shapes_yaml(tiny_yaml: Path) -> Path:
    """The same with batches of two shapes, which takes twice as long to compile."""
    path = tiny_yaml.with_name("two_shapes.yaml")
    path.write_text(TINY.replace("buckets: 1", "buckets: 2"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(corpus: Path, tiny_yaml: Path, run_myxtts) -> Path:
    """The run folder of a short training, made by the command itself; nobody writes into it."""

    def train(folder: Path) -> None:
        words = ("--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", folder, "--log-every", 2)
        result = run_myxtts("train", *words, "--max-steps", 20)
        assert result.returncode == 0, result.stderr

    return made_once("trained", train)
