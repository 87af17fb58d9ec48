"""Losses on the held-out clips.

In: a feed of them and the averaged weights.
Out: a `Validation`, or None when it was cut short: half of the clips say nothing.
"""

import functools
import threading
from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.models.layers import unstack_frames
from myxtts.models.xtts import XTTSOutput
from myxtts.pipeline.stage import naming_stage
from myxtts.training.metrics import Validation
from myxtts.training.step import EvaluateStep


def validate(
    step: int,
    feed: Iterable[Batch],
    evaluate: EvaluateStep,
    frames_per_step: int,
    device: str,
    names: Callable[[int], list[str]],
    stop: threading.Event,
) -> Validation | None:
    """Averages the losses over the clips, and keeps the first one to look at.

    Args:
        step: what the result is noted under.
        feed: the clips in batches.
        evaluate: the losses of a batch.
        frames_per_step: of the model.
        device: where the model lives.
        names: the clips of a batch.
        stop: has ended the feed early when it is set.
    """
    results, weights, first = [], [], None
    for number, batch in enumerate(feed):
        with naming_stage("validation", number, functools.partial(names, number)), tf.device(device):
            losses, output = evaluate(batch, tf.constant(0.0))
        results.append({name: float(value) for name, value in losses.items()})  # host sync
        weights.append(float(tf.reduce_sum(batch.weights)))
        first = first or (batch, output)
    if first is None or stop.is_set():
        return None
    means = {name: float(np.average([r[name] for r in results], weights=weights)) for name in results[0]}
    return Validation(step, means, *_pictures(*first, frames_per_step))


def _pictures(batch: Batch, output: XTTSOutput, frames_per_step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first clip as it is, as it is spoken, and its alignment."""
    frames, tokens = int(batch.mel_lengths[0]), int(batch.text_lengths[0])
    spoken = unstack_frames(output.mel, frames_per_step)[0, :frames].numpy()
    return batch.mel[0, :frames].numpy(), spoken, output.path[0, :tokens, : frames // frames_per_step].numpy()
