"""What more cards would give: the time of an all-reduce and of a step for any number of them, on paper.

In: the bytes of a gradient, the seconds of a step without its all-reduce, a network's bandwidth and latency.
Out: seconds of the all-reduce, steps a second, efficiency.

A ring sends 2 (n - 1) / n of the vector through every link in 2 (n - 1) messages (Patarasuk and Yuan 2009); two binary
trees send it up and down, each half of it, in 2 log2 n messages (Sanders, Speck and Träff 2009; NCCL uses both).
"""

import math
from dataclasses import dataclass, replace

LEAST_EFFICIENCY = 0.8  # of the last card that is worth it
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Network:
    """What lies between two cards."""

    bytes_per_second: float
    latency_seconds: float


def ring_seconds(count: int, size: float, network: Network) -> float:
    """Of an all-reduce of `size` bytes among so many in a ring."""
    if count < 2:
        return 0.0
    return 2 * (count - 1) * (size / count / network.bytes_per_second + network.latency_seconds)


def tree_seconds(count: int, size: float, network: Network) -> float:
    """The same in two binary trees."""
    if count < 2:
        return 0.0
    return 2 * size / network.bytes_per_second + 2 * math.ceil(math.log2(count)) * network.latency_seconds


def all_reduce_seconds(count: int, size: float, network: Network) -> float:
    """Of the better of the two."""
    return min(ring_seconds(count, size, network), tree_seconds(count, size, network))


def efficiency(count: int, step_seconds: float, size: float, network: Network) -> float:
    """What each of so many cards gets done, as a share of what it does in `step_seconds` without an all-reduce."""
    return step_seconds / (step_seconds + all_reduce_seconds(count, size, network))


def worthwhile_count(step_seconds: float, size: float, network: Network) -> int:
    """The most cards of `COUNTS` that each keep most of their speed."""
    good = (count for count in COUNTS if efficiency(count, step_seconds, size, network) >= LEAST_EFFICIENCY)
    return max(good)


def fit_network(count: int, size: float, seconds: float, latency_seconds: float) -> Network:
    """A network in which the ring of so many takes the measured time."""
    network = Network(math.inf, latency_seconds)
    left = max(seconds - ring_seconds(count, size, network), 0.1 * seconds)
    return replace(network, bytes_per_second=2 * (count - 1) / count * size / left)
