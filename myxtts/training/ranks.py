"""How the processes of a cluster do beside each other, for rank 0's log line.

In: what each measured between two log lines.
Out: means over all, and who is slow.
"""

import statistics
from typing import Any

from myxtts.cluster.cluster import Cluster

STRAGGLES = 1.5  # times what the others need for their part of a step
WINDOWS = 3  # log lines in a row after which that is told


def report_of(measured: dict[str, Any]) -> dict[str, float]:
    """What rank 0 is told of a window."""
    return {name: float(measured[name]) for name in ("step_ms", "data_wait", "exchange")}


def own_ms(report: dict[str, float]) -> float:
    """What a process needs of a step until its own gradient is found; the rest is the all-reduce and waiting in it."""
    return report["step_ms"] * (1.0 - report["exchange"])


class Ranks:
    """What rank 0 knows of all; it tells once of a process that the others keep waiting for."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._slow: tuple[int, int] = -1, 0  # which rank was slow, and in how many windows in a row
        self._own: dict[int, dict[str, float]] = {}  # reports of this process, by the step that ended the window

    def compare(self, step: int, measured: dict[str, Any], notices: list[str]) -> dict[str, Any]:
        """Means over all ranks in place of rank 0's own numbers, and the slowest by name.

        What the others report of a window comes a little after rank 0 has logged it, so it may be the one before.
        """
        self._own[step] = report_of(measured)
        reports = self._cluster.reports()
        common = min((int(one["step"]) for one in reports.values()), default=step)
        reports[0] = self._own.get(common, self._own[step])
        self._own = {ended: one for ended, one in self._own.items() if ended >= common}
        means = {name: statistics.fmean(one[name] for one in reports.values()) for name in ("data_wait", "exchange")}
        slowest = max(reports, key=lambda rank: own_ms(reports[rank]))
        most = own_ms(reports[slowest])
        others = [own_ms(one) for rank, one in reports.items() if rank != slowest]
        if not others:
            return {**means, "slowest": ""}
        usual = statistics.median(others)
        before, times = self._slow
        straggles = most > STRAGGLES * usual
        self._slow = (slowest, times + 1 if slowest == before else 1) if straggles else (-1, 0)
        if self._slow[1] == WINDOWS:
            notices.append(
                f"{self._cluster.name(slowest)} is a straggler: it needs {most:.0f} ms for its part of a step, the "
                f"others {usual:.0f} ms; {reports[slowest]['data_wait']:.0%} of its time it waits for data"
            )
        return {**means, "slowest": f"rank {slowest} {most:.0f} ms"}
