"""How the processes of a cluster do beside each other, for rank 0's log line.

In: what each measured between two log lines.
Out: means over all, and who is slow.
"""

import statistics
from typing import Any

from myxtts.cluster.cluster import Cluster

STRAGGLES = 1.25  # times what the others need for their part of a step


def report_of(measured: dict[str, Any]) -> dict[str, float]:
    """What rank 0 is told of a window."""
    return {name: float(measured[name]) for name in ("step_ms", "data_wait", "exchange")}


def own_ms(report: dict[str, float]) -> float:
    """What a process needs of a step until its own gradient is found; the rest is the all-reduce and waiting in it."""
    return report["step_ms"] * (1.0 - report["exchange"])


def compare_ranks(cluster: Cluster, measured: dict[str, Any], notices: list[str]) -> dict[str, Any]:
    """Means over all ranks in place of rank 0's own numbers, and the slowest by name; notices tell of a straggler."""
    reports = {0: report_of(measured), **cluster.reports()}
    means = {name: statistics.fmean(one[name] for one in reports.values()) for name in ("data_wait", "exchange")}
    slowest = max(reports, key=lambda rank: own_ms(reports[rank]))
    most = own_ms(reports[slowest])
    others = [own_ms(one) for rank, one in reports.items() if rank != slowest]
    if others and most > STRAGGLES * statistics.median(others):
        usual = statistics.median(others)
        notices.append(
            f"{cluster.name(slowest)} is a straggler: it needs {most:.0f} ms for its part of a step, the others "
            f"{usual:.0f} ms; {reports[slowest]['data_wait']:.0%} of its time it waits for data"
        )
    return {**means, "slowest": f"rank {slowest} {most:.0f} ms" if others else ""}
