"""What `profile` measures: the real feed and the real step, on the user's clips or on noise.

In: XTTSConfig.
Out: a `Workload`; nothing of it is left on the disk.
"""

import functools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.wav import write_wave
from myxtts.batch import PackedBatch, StepInput
from myxtts.cards import find_cards, usable_cards
from myxtts.cluster.cluster import Cluster
from myxtts.config.config import XTTSConfig
from myxtts.devices import wait_for
from myxtts.diagnostics.profile import Workload, pass_batches
from myxtts.diagnostics.stage_model import Arrangement
from myxtts.pipeline.feed import most_slots
from myxtts.training.run import Run

SHORTEST, LONGEST = 3.0, 4.5  # seconds of a clip of noise: one batch shape, little to compile
BATCHES, FEWEST, MOST = 8, 32, 512  # of them
SYLLABLES = "ba ne tilo ma su keri do pa lavo min ra se".split()
SECONDS_A_WORD = 0.35


@contextmanager
def real_workload(config: XTTSConfig, steps: int, cluster: Cluster | None = None) -> Iterator[Workload]:
    """A run's own parts, warm-up and checkpoints left out; for two devices it can also train on both.

    Args:
        config: as for training.
        steps: how many will be measured; their batches are chosen so that they stand for the whole dataset.
        cluster: the processes that take the same steps.
    """
    mode = config.data.pipeline or ("buffered" if config.data.data_gpu is None else "split")
    with tempfile.TemporaryDirectory() as home:
        data, training = config.data, replace(config.training, guide_steps=0, checkpoint_dir=f"{home}/run")
        if not data.train_data:
            make_noise(Path(home) / "clips", config)
            data = replace(data, train_data=f"{home}/clips", cache_dir=f"{home}/cache", val_clips=0, buckets=1)
        if len(data.gpus) == 2 and data.data_gpu is not None:  # a plan with both in it, whichever way is in use
            data = replace(data, pipeline="parallel" if data.batch_size % 2 == 0 else "split")
        run = Run(replace(config, data=data, training=training), cluster=cluster)
        waited: list[tf.Tensor] = []

        def step(batch: StepInput) -> tf.Tensor:
            results = run.take_step(batch)
            if "waited" in results:
                waited.append(results["waited"])
            return results["loss"]

        arrangement = Arrangement(
            workers=data.num_workers or 1,
            ahead=data.pipeline_buffer_size,
            slots=data.prefetch or most_slots(config.process_clips),
            mode=mode,
        )
        yield Workload(
            source=run.train_set.sample(pass_batches(steps)),
            featurizer=run.featurizer,
            step=step,
            waited=waited,
            devices=replace(run.devices, pipeline=mode),
            arrangement=arrangement,
            traces=lambda: run.step.traces + run.featurizer.traces,
            time_parts=functools.partial(time_parts, run),
            gradient_bytes=4 * run.step.parameters.count,
            can_share=data.batch_size % len(run.devices.training_devices) == 0,
            spare_gpu=not data.gpus and run.devices.trains_on_gpu and len(usable_cards(find_cards(), None)) > 1,
        )


def time_parts(run: Run, batch: PackedBatch) -> dict[str, float]:
    """Seconds of a step's parts, each waited for; the backward pass is what a gradient takes longer than a look."""
    begin = time.perf_counter()
    wait_for(run.evaluate(batch)[0]["loss"])
    seen = time.perf_counter()
    found = run.step.find_gradient(batch)
    wait_for(found[0])
    differentiated = time.perf_counter()
    wait_for(run.step.apply(*found)["skipped"])
    moved = time.perf_counter()
    forward, gradient = seen - begin, differentiated - seen
    return {"forward": forward, "backward": max(0.0, gradient - forward), "update": moved - differentiated}


def make_noise(folder: Path, config: XTTSConfig) -> None:
    """A dataset folder of noise with words of about the right length."""
    rng, rate = np.random.default_rng(0), config.audio.sample_rate
    count = int(np.clip(BATCHES * config.step_clips, FEWEST, MOST))
    (folder / "wavs").mkdir(parents=True)
    lines = []
    shortest = min(max(SHORTEST, config.data.min_seconds), config.data.max_seconds)
    longest = max(shortest, min(LONGEST, config.data.max_seconds))
    for number, seconds in enumerate(np.linspace(shortest, longest, count)):
        wave = rng.uniform(-0.1, 0.1, int(seconds * rate)).astype(np.float32)
        write_wave(folder / "wavs" / f"noise-{number:04d}.wav", wave, rate)
        words = rng.choice(SYLLABLES, max(1, int(seconds / SECONDS_A_WORD)))
        lines.append(f"noise-{number:04d}|{' '.join(words)}\n")
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")
