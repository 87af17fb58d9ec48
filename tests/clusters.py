"""Trainings of several processes on this machine, for tests and benchmarks."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.helpers import PATIENCE, comes_true


def free_addresses(count: int) -> tuple[str, ...]:
    """Addresses on this machine that nobody listens at."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return tuple(f"127.0.0.1:{one.getsockname()[1]}" for one in held)


class Started:
    """One process of a cluster; what it prints goes into a file, so that nobody has to read it in time."""

    def __init__(self, command: Sequence[str], log: Path):
        self.log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def step(self) -> int:
        """The step of its newest log line."""
        steps = [line.split()[1] for line in self.text().splitlines() if line.startswith("step ")]
        return int(steps[-1]) if steps else 0

    def wait_for_step(self, number: int) -> None:
        """Waits until it has logged that step; AssertionError where it ends before."""
        comes_true(lambda: self.step() >= number or self.process.poll() is not None)
        assert self.step() >= number, self.text()

    def wait(self, seconds: float = PATIENCE) -> int:
        return self.process.wait(seconds)

    def last_line(self) -> str:
        return self.text().strip().splitlines()[-1]


@contextmanager
def cluster_of(
    count: int, home: Path, words: Sequence[object], own: Sequence[Sequence[object]] = ()
) -> Iterator[list[Started]]:
    """So many processes of `myxtts train`, ended with the block in any case.

    Args:
        count: how many.
        home: for their logs.
        words: of all.
        own: of each.
    """
    addresses, started = ",".join(free_addresses(count)), []
    try:
        for rank in range(count):
            cluster = ["--cluster", addresses, "--rank", rank, "--cluster-timeout", int(PATIENCE)]
            command = ["-m", "myxtts", "train", *cluster, *words, *(own[rank] if own else ())]
            started.append(Started([sys.executable, *map(str, command)], home / f"rank-{rank}.log"))
        yield started
    finally:
        for one in started:
            if one.process.poll() is None:
                one.process.send_signal(signal.SIGKILL)
                one.process.wait()
