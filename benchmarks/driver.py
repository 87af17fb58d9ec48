"""What a long run costs the host besides its work: memory after 200,000 calls of the step's driver.

The gradient is a stand-in, so that a call takes a fraction of a millisecond; update, schedules, the share of the time
(of which the device is told a thousand times), the bound of the host's lead and the log's reading are the trainer's
own. Exits 1 when memory has grown by more than 2 MB.

    python benchmarks/driver.py [--calls 200000]
"""

import argparse
import gc
import sys
from pathlib import Path

from myxtts.config.load import build
from myxtts.runtime import import_tensorflow

tf = import_tensorflow()

from myxtts.models.xtts import XTTS  # noqa: E402
from myxtts.pipeline.clock import StageClock  # noqa: E402
from myxtts.training.pace import Pace  # noqa: E402
from myxtts.training.run_ahead import RunAhead  # noqa: E402
from myxtts.training.step import TrainStep  # noqa: E402
from myxtts.training.targets.speech import SpeechObjective  # noqa: E402

LIMIT_MB, WARM_UP, LOG_EVERY = 2.0, 10_000, 25
SMALL = {"model.width": 16, "model.text_blocks": 1, "model.decoder_blocks": 1, "model.decoder_attention_every": 1}


def resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=200_000)
    options = parser.parse_args()
    config = build({**SMALL, "training.max_minutes": 60.0, "training.max_steps": options.calls + WARM_UP})
    model = XTTS(config.model, 20, config.audio.n_mels)
    model.create_variables()
    step = TrainStep(model, SpeechObjective(config.training), config.training)
    gradient = tf.ones_like(step.weights)
    losses = {name: tf.constant(1.0) for name in ("loss", "mel", "prior", "duration", "frames")}
    pace, rates = Pace(StageClock()), set()
    with RunAhead() as ahead:
        for call in range(WARM_UP + options.calls):
            if call == WARM_UP:
                before = resident_mb()
            step.note_elapsed(call / (WARM_UP + options.calls))
            results = step.apply(gradient, losses)
            ahead.add(results["rate"])
            pace.add((16, 256, 80), results)
            if (call + 1) % LOG_EVERY == 0:
                rates.add(pace.close_window()[0]["learning_rate"])
    grown = resident_mb() - before
    good = grown <= LIMIT_MB
    told = f"{options.calls:,} calls, {len(rates):,} different rates read: memory grew by {grown:.1f} MB"
    print(f"{'✅' if good else '❌'} {told} (limit {LIMIT_MB:g})")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
