"""What the alignment search costs: its share of a training step of `tiny`, for a short and a long bucket.

Prints one line each; exits 1 when a share is over 5 %.

    python benchmarks/alignment.py [--repeats 15]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from myxtts.runtime import import_tensorflow

tf = import_tensorflow()

from myxtts.batch import Batch, pack_speech, voiceless_batch  # noqa: E402
from myxtts.config.load import build  # noqa: E402
from myxtts.models.alignment import monotonic_search  # noqa: E402
from myxtts.models.xtts import XTTS  # noqa: E402
from myxtts.training.step import TrainStep  # noqa: E402
from myxtts.training.targets.speech import SpeechObjective  # noqa: E402

LIMIT = 0.05
SYMBOLS, N_MELS = 100, 80


def milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begin)


def random_batch(rows: int, tokens: int, frames: int) -> Batch:
    return voiceless_batch(
        tf.random.uniform([rows, tokens], 3, SYMBOLS, tf.int32),
        tf.fill([rows], tokens),
        tf.random.normal([rows, frames, N_MELS]),
        tf.fill([rows], frames),
        tf.random.normal([rows, 128, N_MELS]),
        tf.fill([rows], 128),
        tf.ones([rows]),
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    config = build({"training.guide_steps": 0})
    model = XTTS(config.model, SYMBOLS, N_MELS)
    model.create_variables()
    step = TrainStep(model, SpeechObjective(config.training), config.training)
    worst = 0.0
    for rows, tokens, frames in ((4, 40, 240), (16, 40, 240), (16, 120, 800)):
        batch = random_batch(rows, tokens, frames)
        steps = frames // config.model.frames_per_step
        scores, lengths = tf.random.normal([rows, tokens, steps]), tf.fill([rows], steps)

        packed = pack_speech(batch)

        def train(packed=packed) -> None:
            step(packed)["loss"].numpy()

        def search(scores=scores, batch: Batch = batch, lengths=lengths) -> None:
            monotonic_search(scores, batch.text_lengths, lengths).numpy()

        train(), search()  # compile
        pairs = [(milliseconds(search), milliseconds(train)) for _ in range(options.repeats)]
        found, whole = (statistics.median(side) for side in zip(*pairs, strict=True))
        worst = max(worst, found / whole)
        size = f"batch {rows}, {tokens} tokens, {frames} frames"
        print(f"{size}: search {found:.2f} ms of {whole:.0f} ms, {found / whole:.2%}")
    print(f"largest share of the step: {worst:.2%} (limit {LIMIT:.0%})")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
