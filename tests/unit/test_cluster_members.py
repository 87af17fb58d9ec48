"""Who trains together: addresses from flags, files, TF_CONFIG and Slurm."""

import json

import pytest

from myxtts.cluster.members import Members, find_members
from myxtts.errors import UsageError


def tf_config(cluster: dict, kind: str, index: int) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def slurm(rank: int, hosts: str, tasks: str, **more: str) -> dict[str, str]:
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NODELIST": hosts, "SLURM_STEP_TASKS_PER_NODE": tasks, **more}


def test_a_list_and_a_file_of_addresses(tmp_path):
    assert find_members("a:2301,b", 1, {}) == Members(("a:2301", "b:2222"), 1)
    assert find_members("[::1]:2301,[::1]", 0, {}) == Members(("[::1]:2301", "[::1]:2222"), 0)
    file = tmp_path / "hosts"
    file.write_text("a:2301  # the one with the disk\n\nb:2302\nc\n")
    assert find_members(str(file), 2, {}) == Members(("a:2301", "b:2302", "c:2222"), 2)


def test_what_launchers_of_tensorflow_set():
    workers = {"worker": ["a:1", "b:2"]}
    assert find_members(None, None, tf_config(workers, "worker", 1)) == Members(("a:1", "b:2"), 1)
    chief = {"chief": ["c:3"], **workers}
    assert find_members("TF_CONFIG", None, tf_config(chief, "worker", 1)) == Members(("c:3", "a:1", "b:2"), 2)
    assert find_members(None, None, tf_config(chief, "chief", 0)) == Members(("c:3", "a:1", "b:2"), 0)
    assert find_members(None, None, tf_config({"worker": ["a:1"]}, "worker", 0)) is None
    assert find_members(None, None, {}) is None


@pytest.mark.parametrize(
    ("hosts", "tasks", "addresses"),
    [
        ("node[2,10]", "1(x2)", ("node2:2222", "node10:2222")),  # in Slurm's order, not by letters
        ("a[01-03],gpu", "1(x4)", ("a01:2222", "a02:2222", "a03:2222", "gpu:2222")),
        ("r[1-2]n[7-8]", "1(x4)", ("r1n7:2222", "r1n8:2222", "r2n7:2222", "r2n8:2222")),
        ("n[1-2]", "2,1", ("n1:2222", "n1:2223", "n2:2222")),
        ("n[1-2]", "2(x2)", ("n1:2222", "n1:2223", "n2:2222", "n2:2223")),
    ],
)
def test_the_tasks_of_slurm(hosts, tasks, addresses):
    for rank in range(len(addresses)):
        assert find_members("slurm", None, slurm(rank, hosts, tasks)) == Members(addresses, rank)


@pytest.mark.parametrize(
    ("cluster", "rank", "environment", "words"),
    [
        (None, 1, {}, ["`rank=1` needs `cluster`"]),
        ("a:1,b:2", None, {}, ["`rank` is missing", "from 0 on"]),
        ("a:1,b:2", 2, {}, ["2", "0 to 1"]),
        ("a:1", 0, {}, ["one process only"]),
        ("a:1,a:1", 0, {}, ["a:1 twice"]),
        ("a:1,b:x", 0, {}, ["'b:x'", "host1:2222"]),
        ("a:1,b:70000", 0, {}, ["'b:70000'"]),
        ("a:1,,b:1", 0, {}, ["''"]),
        ("hosts.txt", 0, {}, ["no file hosts.txt"]),
        ("TF_CONFIG", None, {}, ["TF_CONFIG is ''"]),
        (None, None, {"TF_CONFIG": "[1]"}, ["TF_CONFIG is '[1]'"]),
        (None, None, tf_config({"worker": ["a:1", "b:1"]}, "ps", 0), ["'ps'", "chief and worker"]),
        (None, None, tf_config({"worker": ["a:1", "b:1"]}, "worker", 4), ["4", "0 to 1"]),
        (None, 0, tf_config({"worker": ["a:1", "b:1"]}, "worker", 1), ["`rank=0`", "says 1"]),
        ("http://a:1,b:1", 0, {}, ["'http://a:1'", "host1:2222"]),
        ("[::1:1,b:1", 0, {}, ["'[::1:1'"]),
        (f"{'a' * 64}:1,b:1", 0, {}, ["no address of a cluster"]),
        (None, None, tf_config({"worker": [1, 2]}, "worker", 0), ["TF_CONFIG is"]),
        (None, None, tf_config({"worker": "a:1"}, "worker", 0), ["TF_CONFIG is"]),
        ("slurm", None, slurm("x", "n[1-2]", "1(x2)"), ["SLURM_PROCID=x"]),
        ("slurm", None, {}, ["inside of srun", "SLURM_PROCID"]),
        ("slurm", None, slurm(0, "n[1-2]", "1"), ["n[1-2]"]),
        ("slurm", None, slurm(0, "n[1-", "1(x2)"), ["n[1-"]),
        ("slurm", None, slurm(1, "n[1-2]", "2(x2)", SLURM_NODEID="1"), ["--distribution=block"]),
    ],
)
def test_what_cannot_be_meant_is_one_line(cluster, rank, environment, words):
    with pytest.raises(UsageError) as caught:
        find_members(cluster, rank, environment)
    for word in words:
        assert word in str(caught.value)
