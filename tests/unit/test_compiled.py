"""Compiled code that outlives a run."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from myxtts.compiled import FLAGS, FOLDER_FLAG, keep_compiled, make_room
from myxtts.pipeline.stage_error import StageError

COMPILE = """
from myxtts.runtime import import_tensorflow
tf = import_tensorflow()
print(float(tf.function(lambda x: tf.reduce_sum(tf.sin(x) * 3), jit_compile=True)(tf.ones([1000]))))
"""


def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    def run() -> tuple[str, dict[Path, int]]:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "My Caches")}
        environment.pop(FLAGS, None)
        done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
        return done.stdout, {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.pb")}

    first, made = run()
    again, kept = run()
    assert float(first) > 2000 and first == again
    assert made and kept == made


def test_the_users_own_flags_stay(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(FLAGS, "--tf_xla_auto_jit=0")
    keep_compiled()
    assert os.environ[FLAGS].startswith(f"--tf_xla_auto_jit=0 {FOLDER_FLAG}='{tmp_path}")
    for own in (f"{FOLDER_FLAG}=elsewhere", "a-file-with-flags"):
        monkeypatch.setenv(FLAGS, own)
        keep_compiled()
        assert os.environ[FLAGS] == own


@pytest.fixture
def warned(caplog):
    """What the package warns of, whether or not the command line has taken its warnings over in this process."""
    logger = logging.getLogger("myxtts")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


def test_a_user_without_a_home_is_told_and_served(monkeypatch, warned):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(FLAGS, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    keep_compiled()
    assert FLAGS not in os.environ and "set XDG_CACHE_HOME" in warned.text
    assert "nobody thought of" in str(StageError("train", 0, ["a"], ValueError("something nobody thought of")))


def test_a_cache_folder_that_cannot_be_written_is_said(monkeypatch, tmp_path, warned):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv(FLAGS, raising=False)
    keep_compiled()
    assert FLAGS not in os.environ
    assert "compiled code is not kept for the next run" in warned.text


def test_a_disk_that_is_nearly_full_is_said(monkeypatch, tmp_path, warned):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(FLAGS, raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3 << 20))
    keep_compiled()
    assert FLAGS not in os.environ
    assert "has 3 MB free, needed 256" in warned.text


def test_a_disk_that_fills_while_code_is_written_is_not_taken_for_memory(monkeypatch, tmp_path):
    """TensorFlow cannot be told to go on without: its error says where to make room, in place of a smaller batch."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = f"{tmp_path}/myxtts/compiled/0a/f__XLA_CPU_JIT.pb-1.tmp; No space left on device [Op:__inference_f_1]"
    error = StageError("train", 0, ["a"], tf.errors.ResourceExhaustedError(None, None, text))
    assert not error.out_of_memory
    assert f"cannot be written to {tmp_path}/myxtts/compiled (No space left on device); make room" in str(error)
    error = StageError("train", 0, ["a"], tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"))
    assert error.out_of_memory


def test_the_oldest_code_makes_room(tmp_path):
    for age, name in enumerate(("new", "old", "oldest")):
        path = tmp_path / name / "code.pb"
        path.parent.mkdir()
        path.write_bytes(b"x" * 10)
        os.utime(path, (1000 - age, 1000 - age))
    make_room(tmp_path, 20)
    assert [path.parent.name for path in sorted(tmp_path.rglob("*.pb"))] == ["new", "old"]
