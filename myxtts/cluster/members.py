"""Who trains together, as the user or the scheduler says it.

In: `--cluster` and `--rank`, a file of addresses, TF_CONFIG, or what Slurm puts into the environment.
Out: `Members`: every rank's address, and which rank this process is.
"""

import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from myxtts.errors import UsageError

TF_CONFIG, SLURM = "TF_CONFIG", "slurm"  # words that stand for the environment
PORT = 2222  # where an address names none
FORM = "write them as host1:2222,host2:2222"


@dataclass(frozen=True)
class Members:
    """The addresses of all ranks, `host:port`, and this process's own rank."""

    addresses: tuple[str, ...]
    rank: int

    @property
    def size(self) -> int:
        return len(self.addresses)


def find_members(cluster: str | None, rank: int | None, environment: Mapping[str, str] = os.environ) -> Members | None:
    """What was asked for; None where this process trains by itself.

    TF_CONFIG, the variable that TensorFlow's own launchers set, counts without being asked for.

    Raises:
        UsageError: with what was found and what to type.
    """
    if cluster is None:
        found = _read_tf_config(environment) if environment.get(TF_CONFIG) else None
        if found is None and rank is not None:
            raise UsageError(f"`rank={rank}` needs `cluster`, the addresses of all processes: {FORM}")
    elif cluster == TF_CONFIG:
        found = _read_tf_config(environment)
    elif cluster.lower() == SLURM:
        found = _read_slurm(environment)
    else:
        return _require_sound(_read_addresses(cluster), rank, "`rank`")
    if found is None:
        return None
    if rank not in (None, found.rank):
        raise UsageError(f"`rank={rank}` was given, and the environment says {found.rank}; leave `rank` out")
    return found


def _read_addresses(words: str) -> list[str]:
    """A list with commas, or a file with an address a line."""
    path = Path(words)
    if "," not in words and path.is_file():
        try:
            lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
        except UnicodeDecodeError:
            raise UsageError(f"`cluster`: {words} is no text; give a file with an address a line, or {FORM}") from None
        return [line for line in lines if line]
    if "," not in words and ("/" in words or path.suffix == ".txt"):
        raise UsageError(f"`cluster`: there is no file {words}; give one with an address a line, or {FORM}")
    return [word.strip() for word in words.split(",")]


def _require_sound(words: Sequence[str], rank: int | None, asked: str) -> Members:
    addresses = tuple(_complete(word) for word in words)
    if twice := [address for address in addresses if addresses.count(address) > 1]:
        raise UsageError(f"the cluster names {twice[0]} twice; each process needs an address of its own")
    if len(addresses) < 2:
        raise UsageError(f"the cluster names one process only; {FORM}")
    if rank is None:
        raise UsageError(f"{asked} is missing; say which of the {len(addresses)} processes this is, from 0 on")
    if not 0 <= rank < len(addresses):
        raise UsageError(f"{asked} is {rank}, and there are {len(addresses)} addresses; give 0 to {len(addresses) - 1}")
    return Members(addresses, rank)


def _complete(word: str) -> str:
    host, colon, port = word.rpartition(":")
    if not colon or (host.startswith("[") and not host.endswith("]")):
        host, port = word, str(PORT)
    name = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    known = re.fullmatch(r"[^\s/\[\]@]{1,253}", name) and all(len(label) < 64 for label in name.split("."))
    if not known or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"{word!r:.80} is no address of a cluster; {FORM}")
    return f"{host}:{port}"


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _read_tf_config(environment: Mapping[str, str]) -> Members | None:
    """The processes of TF_CONFIG, a chief first; None where it names just one.

    Raises:
        UsageError: it is missing, or not what TensorFlow's documents describe.
    """
    words = environment.get(TF_CONFIG, "")
    try:
        document = json.loads(words)
        jobs = {name: document["cluster"].get(name, []) for name in ("chief", "worker")}
        kind, index = document["task"]["type"], document["task"]["index"]
        lists = all(isinstance(job, list) and all(isinstance(one, str) for one in job) for job in jobs.values())
        if not lists or type(index) is not int:
            raise ValueError(words)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f'TF_CONFIG is {words!r:.80}; it must be {{"cluster": {{"worker": ["host:port", ...]}}, "task": {{"type": '
            '"worker", "index": 0}}'
        ) from None
    if kind not in jobs:
        raise UsageError(f"TF_CONFIG gives this process the task {kind!r}; MyXTTS knows chief and worker")
    addresses = [*jobs["chief"], *jobs["worker"]]
    if len(addresses) < 2:
        return None
    return _require_sound(addresses, index + (len(jobs["chief"]) if kind == "worker" else 0), "TF_CONFIG's task index")


def _read_slurm(environment: Mapping[str, str]) -> Members:
    """The tasks of a Slurm step, each with a port of its own on its host.

    TensorFlow's SlurmClusterResolver sorts hosts by their letters, so that node10 stands before node2 and ranks are
    given the addresses of others; Slurm counts in the order of its list.
    """
    needed = ("SLURM_PROCID", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")
    if missing := [name for name in needed if name not in environment]:
        raise UsageError(f"`cluster=slurm` goes inside of srun, which sets {missing[0]}; it is not set")
    rank, hosts, tasks = (environment[name] for name in needed)
    try:
        counts = _expand_counts(tasks)
        places = zip(_expand_hosts(hosts), counts, strict=True)
        found = [(node, host, local) for node, (host, count) in enumerate(places) for local in range(count)]
        members = _require_sound([f"{host}:{PORT + local}" for _, host, local in found], int(rank), "SLURM_PROCID")
    except ValueError:
        raise UsageError(
            f"`cluster=slurm`: srun has set {needed[0]}={rank}, {needed[1]}={hosts} and {needed[2]}={tasks}; needed "
            "are a number, a list like node[1-4] and counts like 2(x4) that fit it"
        ) from None
    node, _, local = found[members.rank]
    told = environment.get("SLURM_NODEID", str(node)), environment.get("SLURM_LOCALID", str(local))
    if told != (str(node), str(local)):
        raise UsageError("`cluster=slurm` needs tasks in the order of their hosts; add --distribution=block to srun")
    return members


def _expand_hosts(words: str) -> list[str]:
    """`a[01-03,7],b` as a01, a02, a03, a7, b."""
    split = re.findall(r"(?:[^,\[]|\[[^]]*\])+", words)
    if ",".join(split) != words:
        raise ValueError(words)
    found: list[str] = []
    for word in split:
        parts = [_expand_range(part) for part in re.split(r"(\[[^]]*\])", word)]
        found += ["".join(pieces) for pieces in itertools.product(*parts)]
    return found


def _expand_range(part: str) -> list[str]:
    if not part.startswith("["):
        return [part]
    found = []
    for numbers in part[1:-1].split(","):
        first, dash, last = numbers.partition("-")
        ends = int(first), int(last if dash else first)
        found += [str(number).zfill(len(first)) for number in range(ends[0], ends[1] + 1)]
    return found


def _expand_counts(words: str) -> list[int]:
    """`2(x3),1` as 2, 2, 2, 1."""
    found: list[int] = []
    for word in words.split(","):
        count, _, times = word.partition("(x")
        found += [int(count)] * (int(times.rstrip(")")) if times else 1)
    return found
