"""What a second process is worth on this machine, one core each, over loopback.

Runs the same training with one process, on either core, and with two, in turn, each process on a core of its own and
with the same clips a process. Prints mel frames a second of both, their ratio (median over the rounds, each against the
mean of the two runs of one process before it: shared cores are not equally fast) and the share of a step that two
processes spend in the all-reduce, waiting for each other included.
Exits 1 where two processes are less than 1.7 times one, or the all-reduce takes more than 20 % of a step.

Clips are as long as those of LJ Speech are on average. Shorter ones make the all-reduce, which is the same for any
length, a larger part of a step.

    python benchmarks/cluster.py [--rounds 3] [--steps 16] [--size small] [--batch 8] [--seconds 6.5]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from myxtts.config.load import build
from myxtts.diagnostics.workload import make_noise

FASTER, SHARE = 1.7, 0.20
WARM = 4  # steps before those that count: tracing, full buffers
PINNED = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.execv(sys.executable, sys.argv[2:])"


def run(home: Path, processes: int, cores: list[int], options: argparse.Namespace) -> dict[str, float]:
    """Mel frames a second and the share of the all-reduce in the steps after the warm-up."""
    folder = Path(tempfile.mkdtemp(dir=home))
    addresses = ",".join(f"127.0.0.1:{2480 + rank}" for rank in range(processes))
    words = [
        "--train-data", home / "clips", "--cache-dir", home / "cache", "--checkpoint-dir", folder / "run",
        "--model-size", options.size, "--batch-size", options.batch, "--config", home / "run.yaml",
        "--max-steps", WARM + options.steps, "--log-every", WARM, "--sample-every", 0,
    ]  # fmt: skip
    started = []
    for rank in range(processes):
        cluster = ["--cluster", addresses, "--rank", rank] if processes > 1 else []
        command = [sys.executable, "-m", "myxtts", "train", *words, *cluster]
        log = (folder / f"{rank}.log").open("w")
        pinned = [sys.executable, "-c", PINNED, cores[rank], *command]
        started.append(subprocess.Popen(list(map(str, pinned)), stdout=log, stderr=subprocess.STDOUT))
    codes = [process.wait() for process in started]
    if any(codes):
        raise SystemExit((folder / "0.log").read_text()[-2000:])
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    counted = [line for line in lines if line["kind"] == "train" and line["step"] > WARM]
    frames = sum(line["frames_per_second"] * line["step_ms"] for line in counted) / sum(
        one["step_ms"] for one in counted
    )
    return {"frames": frames, "exchange": statistics.fmean(line["exchange"] for line in counted)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=6.5, help="of a clip")
    parser.add_argument("--size", default="small")
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this takes two cores")
    alone: list[float] = []
    both: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        length = {"data.min_seconds": options.seconds, "data.max_seconds": options.seconds + 0.1}
        make_noise(home / "clips", build({"data.batch_size": 2 * options.batch, **length}))
        (home / "run.yaml").write_text("data: {val_clips: 0, buckets: 1}\ntraining: {flat_start_sweeps: 0}\n")
        for _ in range(options.rounds):
            alone.append(statistics.fmean(run(home, 1, [core], options)["frames"] for core in cores[:2]))
            both.append(run(home, 2, cores, options))
    ratios = [two["frames"] / one for one, two in zip(alone, both, strict=True)]
    ratio, share = statistics.median(ratios), statistics.median(one["exchange"] for one in both)
    speed = {1: statistics.median(alone), 2: statistics.median(one["frames"] for one in both)}
    good = ratio >= FASTER and share <= SHARE
    what = f"{options.size}, {options.batch} clips of {options.seconds:g} s a process, one core each"
    print(
        f"{'✅' if good else '❌'} {what}: 1 process {speed[1]:.0f} mel frames/s, 2 processes {speed[2]:.0f} = "
        f"{ratio:.2f} x (limit {FASTER}; rounds {min(ratios):.2f} to {max(ratios):.2f}); all-reduce and waiting for "
        f"each other {share:.1%} of a step (limit {SHARE:.0%})"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
