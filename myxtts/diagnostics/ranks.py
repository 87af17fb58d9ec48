"""The processes of a cluster in a profile: computing, all-reduce and waiting apart, and how many would be worth it.

In: what each rank measured over the same steps.
Out: lines and a document for rank 0; its trace with a lane for each stage of each rank.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from myxtts.cluster.cluster import Cluster
from myxtts.diagnostics.profile import Profile
from myxtts.diagnostics.report import lane_names, trace_events
from myxtts.diagnostics.scaling_model import COUNTS, Network, efficiency, fit_network, worthwhile_count
from myxtts.pipeline.clock import Span
from myxtts.pipeline.stages import Stage

LATENCY_SECONDS = 50e-6  # of a message between two machines over Ethernet; assumed, a profile cannot tell it apart


@dataclass(frozen=True)
class RankTimes:
    """Means over the steps, in seconds."""

    name: str
    step: float
    computes: float  # from the sum of all gradients to its own next one, its waiting for data included
    waits: float  # for the slowest


@dataclass(frozen=True)
class ClusterTimes:
    """All ranks beside each other."""

    ranks: tuple[RankTimes, ...]
    all_reduce: float  # what it takes once the last one has come
    gradient_bytes: int

    @property
    def slowest(self) -> RankTimes:
        return max(self.ranks, key=lambda rank: rank.computes)

    @property
    def recommended_count(self) -> int:
        return worthwhile_count(self.slowest.computes, self.gradient_bytes, self._network)

    def efficiency_of(self, count: int) -> float:
        """What each of so many processes would keep of its speed, as the model predicts it."""
        return efficiency(count, self.slowest.computes, self.gradient_bytes, self._network)

    @functools.cached_property
    def _network(self) -> Network:
        return fit_network(len(self.ranks), self.gradient_bytes, self.all_reduce, LATENCY_SECONDS)


def gather_times(cluster: Cluster, profile: Profile, gradient_bytes: int) -> tuple[ClusterTimes, list[dict]] | None:
    """What all ranks measured, and the events of their trace; None for the others than rank 0."""
    told = {
        "waited": [seconds for one in profile.overlapped for seconds in one.waited],
        "intervals": [float(seconds) for one in profile.overlapped for seconds in one.intervals],
        "spans": [[list(span) for span in one.spans] for one in profile.overlapped],
        "lanes": lane_names(profile),
    }
    found = cluster.gather(told, "measure")
    if not found:
        return None
    waited = np.array([one["waited"] for one in found])
    fastest = waited.min(0)  # whoever comes last waits for nobody
    steps = [float(np.mean(one["intervals"])) for one in found]
    ranks = tuple(
        RankTimes(cluster.name(rank), step, max(0.0, step - float(own.mean())), float((own - fastest).mean()))
        for rank, (step, own) in enumerate(zip(steps, waited, strict=True))
    )
    times = ClusterTimes(ranks, float(fastest.mean()), gradient_bytes)
    return times, [event for rank, one in enumerate(found) for event in _lanes_of(cluster, rank, one, profile)]


def _lanes_of(cluster: Cluster, rank: int, told: dict[str, Any], profile: Profile) -> Iterator[dict[str, Any]]:
    """One rank's events, by rank 0's clock: a step ends everywhere at the same time, when the sum has come."""
    passes = []
    for own, spans in zip(profile.overlapped, told["spans"], strict=True):
        theirs = [Span(*span) for span in spans]
        ends = [{span.number: span.end for span in one if span.stage == Stage.TRAIN} for one in (own.spans, theirs)]
        ahead = float(np.median([ends[0][number] - ends[1][number] for number in ends[0]]))
        moved = tuple(span._replace(begin=span.begin + ahead, end=span.end + ahead) for span in theirs)
        passes.append(replace(own, spans=moved, levels=own.levels if rank == 0 else ()))
    yield from trace_events(passes, told["lanes"], rank + 1, cluster.name(rank))


def cluster_lines(times: ClusterTimes) -> Iterator[str]:
    """The section of the report."""
    yield "CLUSTER (a step of each process: its own work, the all-reduce, waiting for the slowest)"
    for rank in times.ranks:
        shares = " ".join(
            f"{what} {1e3 * seconds:7.1f} ms {seconds / rank.step:4.0%}"
            for what, seconds in (("computes", rank.computes), ("all-reduce", times.all_reduce), ("waits", rank.waits))
        )
        yield f"  {rank.name:<34} {shares}"
    share = times.all_reduce / times.slowest.step
    mark = "✅" if share <= 0.2 else "⚠️"
    yield f"  {mark} the all-reduce of {times.gradient_bytes / 2**20:.1f} MB is {share:.0%} of a step"
    yield f"  Slowest: {times.slowest.name}"
    count = times.recommended_count
    kept = times.efficiency_of(count)
    yield (
        f"  Recommended: up to {count} processes; each would keep {kept:.0%} of its speed (predicted: ring or tree, "
        f"bandwidth as measured, {1e6 * LATENCY_SECONDS:.0f} µs a message assumed)"
    )


def cluster_document(times: ClusterTimes) -> dict[str, Any]:
    """The same for programs."""
    return {
        "ranks": [
            {"name": one.name, "step_ms": 1e3 * one.step, "compute_ms": 1e3 * one.computes, "wait_ms": 1e3 * one.waits}
            for one in times.ranks
        ],
        "all_reduce_ms": 1e3 * times.all_reduce,
        "gradient_bytes": times.gradient_bytes,
        "recommended_processes": times.recommended_count,
        "predicted_efficiency": {str(count): times.efficiency_of(count) for count in COUNTS},
    }
