"""Training on a CPU, side by side: frames a second of a whole step, against Matcha-TTS with as many parameters.

Batches of 16 clips x 256 mel frames x 48 tokens; a step is forward, backward, clipping and update. Both sides run in
processes of their own that alternate, on one thread and on two; the figures are medians of the medians, and the ratio
is taken pair by pair. Matcha-TTS (Mehta et al. 2024) is the package from PyPI with its published shape, its channels
scaled until its parameters are as many. Exits 1 when a ratio is below the limit.

    python benchmarks/training.py --torch-python .venv-bench/bin/python [--rounds 3]
"""

import argparse
import json
import statistics
import subprocess
import sys

SIZES = {"tiny": 3.7, "small": 13.6}  # million parameters
GOAL, LIMIT = 2.0, {"tiny": 1.8, "small": 1.5}  # what is wanted; what was measured before this was written
STEPS, WARM_UP = 8, 3

OURS = """
import json, sys, time
size, threads, steps, warm_up = sys.argv[1], *map(int, sys.argv[2:])
from myxtts.runtime import import_tensorflow
tf = import_tensorflow()
tf.config.threading.set_intra_op_parallelism_threads(threads)
tf.config.threading.set_inter_op_parallelism_threads(threads)
import numpy as np
from myxtts.batch import Batch, pack_speech
from myxtts.config.load import build
from myxtts.models.xtts import XTTS
from myxtts.training.step import TrainStep
from myxtts.training.targets.speech import SpeechObjective

config = build({"model.size": size, "training.guide_steps": 0})
model = XTTS(config.model, 178, 80)
model.create_variables()
step = TrainStep(model, SpeechObjective(config.training), config.training)
rows, tokens, frames, reference = 16, 48, 256, config.model.reference_frames
drawn = frames if config.model.refiner_blocks else 0
batch = pack_speech(Batch(
    tf.random.uniform([rows, tokens], 3, 178, tf.int32), tf.fill([rows], tokens), tf.random.normal([rows, frames, 80]),
    tf.fill([rows], frames), tf.ones([rows, frames], tf.int32), tf.random.normal([rows, drawn, 80]),
    tf.random.uniform([rows]), tf.random.normal([rows, reference, 80]), tf.fill([rows], reference), tf.ones([rows])))
times = []
for number in range(warm_up + steps):
    begin = time.perf_counter()
    step(batch)["loss"].numpy()
    times.append(time.perf_counter() - begin)
print(json.dumps([step.parameters.count, sorted(times[warm_up:])[steps // 2]]))
"""

THEIRS = """
import json, sys, time
wanted, threads, steps, warm_up = float(sys.argv[1]), *map(int, sys.argv[2:])
import torch
torch.set_num_threads(threads)
from types import SimpleNamespace
from matcha.models.matcha_tts import MatchaTTS

def make(scale):
    def even(channels, step=16):
        return max(step, round(channels * scale / step) * step)
    encoder = SimpleNamespace(
        encoder_type="RoPE Encoder",
        encoder_params=SimpleNamespace(
            n_feats=80, n_channels=even(192), filter_channels=even(768), filter_channels_dp=even(256), n_heads=2,
            n_layers=6, kernel_size=3, p_dropout=0.1, spk_emb_dim=64, n_spks=1, prenet=True),
        duration_predictor_params=SimpleNamespace(filter_channels_dp=even(256), kernel_size=3, p_dropout=0.1))
    decoder = dict(channels=[even(256)] * 2, dropout=0.05, attention_head_dim=64, n_blocks=1, num_mid_blocks=2,
                   num_heads=2, act_fn="snakebeta")
    cfm = SimpleNamespace(name="CFM", solver="euler", sigma_min=1e-4)
    torch.manual_seed(0)
    return MatchaTTS(178, 1, 64, 80, encoder, decoder, cfm, None, None)

def size(model):
    return sum(p.numel() for p in model.parameters())

model = min((make(0.3 + 0.02 * n) for n in range(60)), key=lambda model: abs(size(model) - wanted * 1e6))
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
rows, tokens, frames = 16, 48, 256
x, x_lengths = torch.randint(1, 178, (rows, tokens)), torch.full((rows,), tokens)
y, y_lengths = torch.randn(rows, 80, frames), torch.full((rows,), frames)
times = []
for number in range(warm_up + steps):
    begin = time.perf_counter()
    optimizer.zero_grad()
    duration, prior, flow, *_ = model(x=x, x_lengths=x_lengths, y=y, y_lengths=y_lengths, spks=None, out_size=None)
    loss = duration + prior + flow
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    loss.item()
    times.append(time.perf_counter() - begin)
print(json.dumps([size(model), sorted(times[warm_up:])[steps // 2]]))
"""


def run(python: str, code: str, *words: object) -> tuple[int, float]:
    """Parameters and the median seconds of a step."""
    command = [python, "-c", code, *map(str, words), str(STEPS), str(WARM_UP)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    parameters, seconds = json.loads(done.stdout.splitlines()[-1])
    return parameters, seconds


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch-python", required=True, help="a Python with torch and matcha-tts")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    failed = False
    for size, millions in SIZES.items():
        for threads in (1, 2):
            pairs = []
            for _ in range(options.rounds):
                ours = run(sys.executable, OURS, size, threads)
                pairs.append((ours, run(options.torch_python, THEIRS, millions, threads)))
            ratios = [theirs[1] / ours[1] for ours, theirs in pairs]
            ratio = statistics.median(ratios)
            speeds = [16 * 256 / statistics.median(pair[side][1] for pair in pairs) for side in (0, 1)]
            failed |= ratio < LIMIT[size]
            mark = "✅" if ratio >= GOAL else "⚠️" if ratio >= LIMIT[size] else "❌"
            print(
                f"{mark} {size}, {threads} threads: ours {pairs[0][0][0] / 1e6:.1f} M parameters, {speeds[0]:,.0f} "
                f"frames/s; Matcha-TTS {pairs[0][1][0] / 1e6:.1f} M, {speeds[1]:,.0f}; ratio {ratio:.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f}; goal {GOAL}, limit {LIMIT[size]})",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
