"""How many cards would be worth it, on paper, and how far the paper is right on this machine.

Predicts steps a second and efficiency of 1 to 1,024 cards out of the gradient's size, the time of a step without its
all-reduce, and the bandwidth and latency of what lies between two cards. With `--check` it first measures all-reduces
of two sizes among 2, 3 and 4 processes on loopback, fits bandwidth and latency to those of 2, and prints what the model
says of 3 and 4 beside what they took. Only that part is measured; the table is a prediction.

    python benchmarks/cluster_model.py [--size small] [--step-ms 50] [--gigabits 100] [--microseconds 20] [--check]
"""

import argparse
import os
import statistics
import subprocess
import sys

from myxtts.config.load import build
from myxtts.diagnostics.scaling_model import COUNTS, Network, efficiency, ring_seconds, tree_seconds

SYMBOLS = 80
WORKER = """
import os, sys, time, statistics
from myxtts.runtime import import_tensorflow
tf = import_tensorflow()
addresses, rank, sizes = sys.argv[1].split(","), int(sys.argv[2]), list(map(int, sys.argv[3].split(",")))
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    tf.train.ClusterSpec({"worker": addresses}), task_type="worker", task_id=rank, num_accelerators={"GPU": 0}
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
for size in sizes:
    vector = tf.ones([size // 4])
    @tf.function
    def add():
        one = lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, vector)[-1]
        return strategy.experimental_local_results(strategy.run(one))[0]
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        add().numpy()
        times.append(time.perf_counter() - begin)
    print(statistics.median(times[10:]), flush=True)
sys.stdin.read()  # a process that leaves early would end the others' connections
os._exit(0)
"""


def measure(count: int, sizes: list[int]) -> list[float]:
    """Seconds of an all-reduce of each size among so many processes on loopback."""
    addresses = ",".join(f"127.0.0.1:{2500 + 10 * count + rank}" for rank in range(count))
    words = [addresses, "0", ",".join(map(str, sizes))]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, words[0], str(rank), words[2]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(count)
    ]
    found = [[float(process.stdout.readline()) for _ in sizes] for process in started if process.stdout]
    for process in started:
        process.communicate()
    return [statistics.median(seconds) for seconds in zip(*found, strict=True)]


def gradient_bytes(size: str) -> int:
    from myxtts.models.xtts import XTTS

    config = build({"model.size": size})
    model = XTTS(config.model, SYMBOLS, config.audio.n_mels)
    model.create_variables()
    return 4 * sum(int(variable.shape.num_elements()) for variable in model.trainable_variables)


def check(sizes: list[int]) -> None:
    """Fits a network to two processes and compares its word on three and four with what they take."""
    two = measure(2, sizes)
    rate = (sizes[1] - sizes[0]) / (two[1] - two[0])
    latency = max(0.0, (two[0] - sizes[0] / rate) / 2)
    cores = len(os.sched_getaffinity(0))
    print(f"loopback, {cores} cores; fitted to 2 processes: {rate / 1e9:.2f} GB/s, {1e3 * latency:.2f} ms a message")
    print("processes | MB | measured ms | predicted ms | ratio")
    for count in (2, 3, 4):
        shared = max(1.0, count / cores)  # on loopback the copies are computed, by as many cores as there are
        network = Network(rate / shared, latency * shared)
        for size, seconds in zip(sizes, two if count == 2 else measure(count, sizes), strict=True):
            said = ring_seconds(count, size, network)
            print(f"{count} | {size / 2**20:.1f} | {1e3 * seconds:.1f} | {1e3 * said:.1f} | {seconds / said:.2f}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="small")
    parser.add_argument("--step-ms", type=float, default=50.0, help="of a step without its all-reduce")
    parser.add_argument("--gigabits", type=float, default=100.0)
    parser.add_argument("--microseconds", type=float, default=20.0, help="latency of a message")
    parser.add_argument("--check", action="store_true", help="also compare the model with loopback")
    options = parser.parse_args()
    if options.check:
        check([gradient_bytes("tiny"), gradient_bytes("small")])
    size, step = gradient_bytes(options.size), options.step_ms / 1e3
    network = Network(options.gigabits * 1e9 / 8, options.microseconds / 1e6)
    print(
        f"PREDICTED, not measured: {options.size}, {size / 2**20:.1f} MB of gradient, {options.step_ms:g} ms a step, "
        f"{options.gigabits:g} Gbit/s, {options.microseconds:g} µs"
    )
    print("cards | ring ms | trees ms | steps/s | clips x | efficiency")
    for count in COUNTS:
        kept = efficiency(count, step, size, network)
        ring, tree = (1e3 * of(count, size, network) for of in (ring_seconds, tree_seconds))
        print(f"{count} | {ring:.2f} | {tree:.2f} | {kept / step:.1f} | {count * kept:.1f} | {kept:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
