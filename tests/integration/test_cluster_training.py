"""Several processes that train together: the same steps as one, and no end without a name."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
import pytest

from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint
from myxtts.config.load import read_yaml
from tests.clusters import cluster_of, free_addresses
from tests.helpers import PATIENCE

NAMED_WITHIN = 60.0  # seconds from the end of a process until all others have ended and named it
TRAIN = """
import hashlib, json, sys
from myxtts.cluster.members import Members
from myxtts.cluster.rendezvous import Greeting, join
from myxtts.config.load import build
from myxtts.training.trainer import XTTSTrainer
values, addresses, rank, patience = json.loads(sys.argv[1])
cluster = None
if addresses:
    cluster = join(Members(tuple(addresses), rank), Greeting({}, {}), lambda line: None, patience)
    cluster.__enter__()
trainer, losses, digests = XTTSTrainer(build(values), cluster=cluster), [], []
take_step = trainer.run.take_step
def watched(batch):
    found = take_step(batch)
    losses.append(float(found["loss"]))
    vectors = [v.numpy() for v in trainer.run.step.variables().values() if v.name.split(":")[0] != "elapsed"]
    digests.append(hashlib.sha256(b"".join(v.tobytes() for v in vectors)).hexdigest())
    return found
trainer.run.take_step = watched
trainer.train()
print(json.dumps({"losses": losses, "digests": digests}))
if cluster:
    cluster.__exit__(None, None, None)
"""


@pytest.fixture
def values(corpus, tiny_yaml, tmp_path):
    return {
        **read_yaml(tiny_yaml),
        "data.train_data": str(corpus),
        "data.batch_size": 2,
        "data.val_clips": 0,  # less to compile
        "data.model_start_delay": 0.0,
        "training.checkpoint_dir": str(tmp_path / "run"),
        "training.flat_start_sweeps": 2,
        "training.flat_start_clips": 8,
        "training.max_steps": 20,
    }


def start(values: dict, addresses: Sequence[str], rank: int) -> subprocess.Popen:
    words = json.dumps([values, addresses, rank, PATIENCE])
    return subprocess.Popen([sys.executable, "-c", TRAIN, words], stdout=subprocess.PIPE, text=True)


def found_by(*processes: subprocess.Popen) -> list[dict]:
    found = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [json.loads(text.splitlines()[-1]) for text in found]


def test_two_processes_take_the_steps_of_two_devices_of_one(values, tmp_path):
    """Twenty steps: the same losses, and the same weights on both ranks after each."""
    own = {"training.checkpoint_dir": str(tmp_path / "one"), "data.virtual_devices": 2, "data.model_gpu": [0, 1]}
    (one,) = found_by(start({**values, **own}, [], 0))
    addresses = free_addresses(2)
    ranks = found_by(*(start({**values, "data.processes": 2}, addresses, rank) for rank in range(2)))
    assert len(one["losses"]) == 20
    assert ranks[0]["digests"] == ranks[1]["digests"] and len(set(ranks[0]["digests"])) == 20
    np.testing.assert_allclose(ranks[0]["losses"], one["losses"], rtol=1e-5)
    assert ranks[0]["losses"] == ranks[1]["losses"]


@pytest.fixture
def words(corpus, tiny_yaml, tmp_path):
    return [
        "--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run", "--cache-dir",
        tmp_path / "cache", "--max-steps", 100_000, "--log-every", 1, "--val-every", 20, "--save-every", 1000,
    ]  # fmt: skip


def test_a_killed_process_is_named_and_the_rest_is_saved_and_goes_on_alone(words, tmp_path, run_here):
    with cluster_of(2, tmp_path, words) as (first, second):
        first.wait_for_step(3)
        second.process.kill()
        assert first.wait() == 1
        assert "rank 1 (127.0.0.1:" in first.last_line() and "is lost: " in first.last_line()
        assert "Traceback" not in first.text()
        assert "rank 0 (127.0.0.1:" in second.text() and "8 clips" in first.text()
    saved = read_checkpoint(tmp_path / "run" / "latest")
    assert saved.state.step >= 3
    alone = run_here("train", "--resume", *words, "--max-steps", saved.state.step + 2)
    assert alone.returncode == 0, alone.stderr
    assert "clips a step 8 then, 4 now" in alone.stdout


@pytest.mark.slow
def test_interrupted_runs_of_two_processes_go_on_exactly(words, tmp_path):
    """Ten times SIGTERM or kill -9 on a random rank."""
    chance, kinds = random.Random(19), []
    words = [*words, "--save-every", 3, "--keep", 100_000]
    run, whole = tmp_path / "run", tmp_path / "whole"

    def interrupted(home, number: int, victim: int, steps: int) -> None:
        own = ["--checkpoint-dir", home, *(["--resume"] if (home / "latest").exists() else [])]
        with cluster_of(2, tmp_path, [*words, *own]) as ranks:
            begun = read_checkpoint(home / "latest").state.step if (home / "latest").exists() else 0
            ranks[0].wait_for_step(begun + steps)
            time.sleep(chance.uniform(0, 0.1))
            ranks[victim].process.send_signal(number)
            for rank in ranks:
                rank.wait(NAMED_WITHIN)

    while len(kinds) < 10:
        kinds.append(chance.choice([signal.SIGTERM, signal.SIGKILL]))
        interrupted(run, kinds[-1], chance.randrange(2), chance.randrange(1, 6))
        read_checkpoint(find_checkpoint(run, ("latest",)))
    last = 3 * (read_checkpoint(run / "latest").state.step // 3 + 2)
    interrupted(run, signal.SIGTERM, 0, last - read_checkpoint(run / "latest").state.step + 1)
    interrupted(whole, signal.SIGTERM, 0, last + 1)
    one, other = (read_checkpoint(home / f"step-{last:08d}") for home in (whole, run))
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)
    print(f"{len(kinds)} interruptions, {kinds.count(signal.SIGKILL)} of them kill -9: equal weights at step {last}")


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_whoever_is_lost_is_named_everywhere_in_time(words, tmp_path, count):
    """Kills and stops of a random rank at random moments: 10 and 5 with two processes, and with three."""
    chance = random.Random(count)
    times = []
    for turn, number in enumerate([signal.SIGKILL] * 10 + [signal.SIGSTOP] * 5):
        victim, home = chance.randrange(count), tmp_path / str(turn)
        home.mkdir()
        with cluster_of(count, home, [*words, "--checkpoint-dir", home / "run"]) as ranks:
            ranks[0].wait_for_step(1)
            time.sleep(chance.uniform(0, 2))
            begin = time.monotonic()
            ranks[victim].process.send_signal(number)
            for rank in (rank for place, rank in enumerate(ranks) if place != victim):
                assert rank.wait(NAMED_WITHIN) == 1
                assert f"rank {victim} (127.0.0.1:" in rank.last_line(), rank.text()
            times.append(time.monotonic() - begin)
        if number == signal.SIGKILL or victim:  # a stopped rank 0 holds the run folder
            read_checkpoint(find_checkpoint(home / "run", ("latest",)))
    print(
        f"{count} processes: named everywhere within {max(times[:10]):.1f} s (kill -9), {max(times[10:]):.1f} s (stop)"
    )


@pytest.mark.slow
def test_a_run_starts_over_with_those_that_are_there(words, tmp_path):
    words = [*words, "--restarts", 2, "--max-steps", 60]
    with cluster_of(3, tmp_path, words, own=3 * [["--cluster-timeout", 20]]) as ranks:
        ranks[0].wait_for_step(3)
        ranks[0].process.kill()
        assert [rank.wait() for rank in ranks[1:]] == [0, 0]
    assert "restart 1 of 2" in ranks[1].text() and "2 processes train together" in ranks[2].text()
    assert read_checkpoint(tmp_path / "run" / "latest").state.step == 60


VANISHES = """
import os, sys
from myxtts.cluster.members import Members
from myxtts.cluster.rendezvous import Greeting, join
from myxtts.devices import plan_devices
rank, addresses = int(sys.argv[1]), tuple(sys.argv[2:])
cluster = join(Members(addresses, rank), Greeting({}, {}), lambda line: print(line, flush=True))
with cluster:
    plan = plan_devices()
    from myxtts.training.strategy import join_processes
    if rank:
        cluster.require_equal({"training devices": 1, "GPUs": False}, "set its devices up", "")
        os._exit(9)
    join_processes(cluster, plan)
"""


@pytest.mark.slow
def test_a_process_that_is_lost_while_tensorflow_connects_ends_the_others():
    """No thread of ours runs there, and TensorFlow's own patience is an hour."""
    addresses = free_addresses(2)
    started = [
        subprocess.Popen([sys.executable, "-c", VANISHES, str(rank), *addresses], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    output = started[0].communicate(timeout=NAMED_WITHIN + 30)[0]
    assert started[0].returncode == 1 and started[1].wait(PATIENCE) == 9
    assert output.splitlines()[-1].startswith("🌐 TensorFlow connects all 2")


@pytest.mark.slow
def test_a_profile_tells_the_ranks_apart(corpus, tiny_yaml, tmp_path):
    addresses = ",".join(free_addresses(2))
    trace = tmp_path / "trace.json"
    words = ["profile", "--json", "--train-data", corpus, "--config", tiny_yaml, "--num-steps", 12, "--trace", trace]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "myxtts", *map(str, [*words, "--cluster", addresses, "--rank", rank])],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    output = started[0].communicate(timeout=PATIENCE)[0]
    assert [process.wait(PATIENCE) for process in started] == [0, 0]
    found = json.loads(output)["cluster"]
    assert [rank["name"].split(" (")[0] for rank in found["ranks"]] == ["rank 0", "rank 1"]
    assert found["all_reduce_ms"] > 0 and found["gradient_bytes"] > 0 and found["recommended_processes"] >= 1
    for rank in found["ranks"]:
        whole = rank["compute_ms"] + found["all_reduce_ms"] + rank["wait_ms"]
        assert whole == pytest.approx(rank["step_ms"], rel=1e-6)
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert [lanes[pid].split(" (")[0] for pid in sorted(lanes)] == ["rank 0", "rank 1"]
    assert {event["pid"] for event in events if event.get("cat") == "train"} == set(lanes)
