"""Losses on the held-out clips.

In: a feed of them and the averaged weights.
Out: a `Validation`, or None when it was cut short: half of the clips say nothing.
"""

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from myxtts.batch import StepInput, read_sizes
from myxtts.devices import Place
from myxtts.pipeline.stage_error import naming_stage
from myxtts.pipeline.transfer import join
from myxtts.training.metrics import Pictures, Validation
from myxtts.training.step import EvaluateStep


def validate(
    step: int,
    feed: Iterable[StepInput],
    evaluate: EvaluateStep,
    draw: Callable[[Any, Any], Pictures],
    place: Place,
    names: Callable[[int], list[str]],
    stop: threading.Event,
) -> Validation | None:
    """Averages the losses over the clips, and keeps the first one to look at.

    Args:
        step: what the result is noted under.
        feed: the clips in batches.
        evaluate: the losses of a batch.
        draw: the first clip of a batch and of what was made of it.
        place: where the model lives.
        names: the clips of a batch.
        stop: has ended the feed early when it is set.
    """
    results, weights, first = [], [], None
    for number, given in enumerate(feed):
        batch = join(given, place.device)
        with naming_stage("validation", number, functools.partial(names, number)), place.lock, tf.device(place.device):
            losses, output = evaluate(batch)
            weight = tf.reduce_sum(read_sizes(batch.labels).weights)
        results.append({name: float(value) for name, value in losses.items()})  # host sync
        weights.append(float(weight))
        first = first or (batch, output)
    if first is None or stop.is_set():
        return None
    means = {name: float(np.average([r[name] for r in results], weights=weights)) for name in results[0]}
    with place.lock, tf.device(place.device):
        pictures = draw(*first)
    return Validation(step, means, pictures)
