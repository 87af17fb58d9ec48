"""Compiled code that outlives a run."""

import os
import subprocess
import sys
from pathlib import Path

from myxtts.compiled import FLAGS, FOLDER_FLAG, keep_compiled, make_room

COMPILE = """
from myxtts.devices import import_tensorflow
tf = import_tensorflow()
print(float(tf.function(lambda x: tf.reduce_sum(tf.sin(x) * 3), jit_compile=True)(tf.ones([1000]))))
"""


def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    def run() -> tuple[str, dict[Path, int]]:
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
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
    assert os.environ[FLAGS].startswith(f"--tf_xla_auto_jit=0 {FOLDER_FLAG}={tmp_path}")
    monkeypatch.setenv(FLAGS, f"{FOLDER_FLAG}=elsewhere")
    keep_compiled()
    assert os.environ[FLAGS] == f"{FOLDER_FLAG}=elsewhere"


def test_a_cache_folder_that_cannot_be_written_is_said(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv(FLAGS, raising=False)
    keep_compiled()
    assert FLAGS not in os.environ
    assert "compiled code is not kept for the next run" in capsys.readouterr().err


def test_the_oldest_code_makes_room(tmp_path):
    for age, name in enumerate(("new", "old", "oldest")):
        path = tmp_path / name / "code.pb"
        path.parent.mkdir()
        path.write_bytes(b"x" * 10)
        os.utime(path, (1000 - age, 1000 - age))
    make_room(tmp_path, 20)
    assert [path.parent.name for path in sorted(tmp_path.rglob("*.pb"))] == ["new", "old"]
