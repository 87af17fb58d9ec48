"""Preparing that is killed, stopped, or done by several processes at once: always the same pack."""

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from myxtts.config.load import build
from myxtts.data.cache import prepare
from tests.helpers import PATIENCE
from tests.recordings import config_for, make_set, voice


@pytest.fixture(scope="module")
def larger_set(tmp_path_factory) -> Path:
    """Enough clips that preparing takes a second."""
    folder = tmp_path_factory.mktemp("larger") / "set"
    clips = {f"clip{i:03d}": voice(3 + i % 5, i % 9) for i in range(240)}
    lines = "".join(f"{name}|Good morning, number {i} of 240.\n" for i, name in enumerate(clips))
    return make_set(folder, lines + "gone|never there\n", **clips)


def command(folder: Path, cache: Path) -> list[str]:
    return [sys.executable, "-m", "myxtts", "prepare", str(folder), "--cache-dir", str(cache), "--json"]


def tree(cache: Path) -> dict[str, str]:
    packs = (path for path in cache.rglob("*") if path.is_file() and not path.name.startswith("hashes-"))
    return {str(p.relative_to(cache)): hashlib.sha256(p.read_bytes()).hexdigest() for p in packs}


KILLED = """
import os, signal, sys
from pathlib import Path
from myxtts.config.load import build
from myxtts.data import build as building
from myxtts.data.cache import prepare

folder, cache, at = sys.argv[1:]

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def look(what, done, total):
    if what != "checking clips":
        return
    print(done, flush=True)
    if done == int(at) - 1:
        building.SYNC_SECONDS = -1.0  # the next clip is on the disk before it is told
    if done == int(at):
        kill()

Path.rename = kill
prepare(Path(folder), build({"data.cache_dir": cache}), look)
"""


def test_killed_again_and_again_it_goes_on_at_the_next_clip_and_gives_the_same_pack(larger_set, tmp_path):
    """Killed at clips, after the last of them, and when the pack is whole and about to get its name."""
    whole, cache, done = tmp_path / "whole", tmp_path / "killed", 0
    prepare(larger_set, build({"data.cache_dir": str(whole)}))
    for at in (30, 97, 200, 241, 300):
        words = [sys.executable, "-c", KILLED, str(larger_set), str(cache), str(at)]
        process = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL
        assert [int(line) for line in process.stdout.split()] == list(range(done + 1, min(at, 241) + 1))
        assert any(cache.glob(".building-*/audio.i16")) and not any(cache.glob("[0-9a-f]*"))
        done = at
    prepare(larger_set, build({"data.cache_dir": str(cache)}))
    assert tree(cache) == tree(whole)


@pytest.mark.slow
def test_killed_at_random_moments_it_gives_the_same_pack(larger_set, tmp_path):
    begin = time.monotonic()
    subprocess.run(command(larger_set, tmp_path / "whole"), check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    times, chance, cache, resumed = 20, random.Random(7), tmp_path / "killed", 0
    for _ in range(times):
        process = subprocess.Popen(command(larger_set, cache), stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 1.0) * seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        resumed += any(cache.glob(".building-*/audio.i16")) if cache.exists() else 0
        for pack in cache.glob("[0-9a-f]*"):  # finished before the kill: it must be whole, and it starts anew
            assert tree(cache).items() >= tree(tmp_path / "whole").items()
            subprocess.run(["rm", "-r", str(pack)], check=True)
    assert resumed >= times // 6, "the kills missed the work"
    subprocess.run(command(larger_set, cache), check=True, stdout=subprocess.DEVNULL)
    assert tree(cache) == tree(tmp_path / "whole")


def test_it_goes_on_where_it_was_killed(larger_set, tmp_path):
    config = config_for(tmp_path, **{"data.num_workers": 1})
    calls = []

    def stop_late(what: str, done: int, total: int) -> None:
        if what == "checking clips":
            calls.append(done)
            if done == 150:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(larger_set, config, stop_late)
    calls.clear()
    pack = prepare(larger_set, config, lambda what, done, total: calls.append(done) if what == "checking clips" else 0)
    assert calls[0] == 151 and len(pack) == 240 and pack.listed == 241


def test_two_at_once_agree(larger_set, tmp_path):
    processes = [
        subprocess.Popen(command(larger_set, tmp_path / "cache"), stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    documents = [json.loads(process.communicate(timeout=600)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert documents[0] == documents[1] == documents[2] and documents[0]["accepted"] == 240
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name.startswith(".")] == []


def test_a_spoiled_journal_or_memory_of_hashes_costs_time_only(larger_set, tmp_path):
    config = config_for(tmp_path)

    def stop(what: str, done: int, total: int) -> None:
        if what == "checking clips" and done == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(larger_set, config, stop)
    journal = next((tmp_path / "cache").glob(".building-*/journal.jsonl"))
    content = bytearray(journal.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40] = bytes(40)
    journal.write_bytes(bytes(content))
    for memory in (tmp_path / "cache").glob("hashes-*"):
        memory.write_text("[1, null]")
    pack = prepare(larger_set, config)
    assert len(pack) == 240
    assert all(len(pack.wave(number)) for number in range(240))
