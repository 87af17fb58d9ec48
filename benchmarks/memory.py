"""What keeping freed memory is worth: the step time of `tiny` with glibc's own habits against ours.

Each side runs in processes of its own, in alternation; medians. Prints one ratio, sets no limit.

    python benchmarks/memory.py [--repeats 3]
"""

import argparse
import statistics
import subprocess
import sys

STEP = """
import sys, time
from myxtts import devices, runtime
if sys.argv[1] == "given back":
    runtime.keep_freed_memory = lambda: None
tf = runtime.import_tensorflow()
from myxtts.batch import pack_speech, voiceless_batch
from myxtts.config.load import build
from myxtts.models.xtts import XTTS
from myxtts.training.step import TrainStep
from myxtts.training.targets.speech import SpeechObjective

with tf.device(devices.plan_devices().model_device):
    model = XTTS(build({}).model, 100, 80)
    model.create_variables()
    config = build({}).training
    step = TrainStep(model, SpeechObjective(config), config)
    batches = []
    for tokens, frames in ((40, 192), (48, 256), (64, 416)):
        batches.append(pack_speech(voiceless_batch(
            tf.random.uniform([4, tokens], 3, 100, tf.int32), tf.fill([4], tokens), tf.random.normal([4, frames, 80]),
            tf.fill([4], frames), tf.random.normal([4, 128, 80]), tf.fill([4], 128), tf.ones([4]))))
    times = []
    for number in range(60):
        begin = time.perf_counter()
        step(batches[number % 3])["loss"].numpy()
        times.append(time.perf_counter() - begin)
print(sum(times[15:]) / len(times[15:]))
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    times: dict[str, list[float]] = {"given back": [], "kept": []}
    for _ in range(options.repeats):
        for side, measured in times.items():
            result = subprocess.run([sys.executable, "-c", STEP, side], capture_output=True, text=True, check=True)
            measured.append(float(result.stdout.splitlines()[-1]))
    back, kept = (1e3 * statistics.median(times[side]) for side in ("given back", "kept"))
    print(f"step with memory given back {back:.0f} ms, kept {kept:.0f} ms: ratio {back / kept:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
