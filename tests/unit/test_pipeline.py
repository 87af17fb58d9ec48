import itertools
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from myxtts.batch import RawBatch
from myxtts.config.load import build
from myxtts.devices import plan_devices
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import Feed
from myxtts.pipeline.transfer import BoundedBuffer, Closed

CONFIG = build({"model.reference_frames": 32})
HOP = CONFIG.audio.hop_samples


def raw_batch(frames: int, rows: int = 4, speakers=(0, 0, 1, 2)) -> RawBatch:
    random = np.random.default_rng(frames)
    waves = random.integers(-9000, 9000, (rows, frames * HOP)).astype(np.int16)
    lengths = np.array([frames * HOP - 300 * row for row in range(rows)], np.int32)
    for row, length in enumerate(lengths):
        waves[row, length:] = 0
    return RawBatch(
        tf.constant(waves),
        tf.constant(lengths),
        tf.ones([rows, 6], tf.int32),
        tf.fill([rows], 6),
        tf.constant(speakers[:rows]),
        tf.ones([rows]),
    )


def test_buffer_keeps_order_and_bound():
    buffer: BoundedBuffer[int] = BoundedBuffer(2)
    peak = []

    def produce():
        for number in range(20):
            buffer.put(number)
            peak.append(len(buffer))
        buffer.close()

    thread = threading.Thread(target=produce)
    thread.start()
    taken = []
    with pytest.raises(Closed):
        while True:
            taken.append(buffer.get())
    thread.join()
    assert taken == list(range(20)) and max(peak) <= 2


def test_closing_wakes_a_waiting_producer():
    buffer: BoundedBuffer[int] = BoundedBuffer(1)
    buffer.put(1)
    ended = threading.Event()

    def produce():
        with pytest.raises(Closed):
            buffer.put(2)
        ended.set()

    threading.Thread(target=produce, daemon=True).start()
    buffer.close()
    assert ended.wait(5)


def test_features_are_traced_once_for_each_shape():
    featurizer = Featurizer(CONFIG)
    for frames in (64, 96, 64, 96, 64):
        featurizer(raw_batch(frames), tf.constant([frames, 0]))
    assert featurizer.traces == 2


def test_references_come_from_another_clip_of_the_same_speaker():
    batch = Featurizer(CONFIG)(raw_batch(64), tf.constant([1, 0]))
    mel, reference = batch.mel.numpy(), batch.reference.numpy()

    def donors(row: int) -> set[int]:
        """Clips that hold this reference slice."""
        span = int(batch.reference_lengths[row])
        return {
            clip
            for clip in range(4)
            for start in range(mel.shape[1] - span + 1)
            if np.array_equal(mel[clip, start : start + span], reference[row, :span])
        }

    assert [donors(row) for row in range(4)] == [{1}, {0}, {2}, {3}]


def test_features_past_the_end_are_zero_and_lengths_are_whole_steps():
    batch = Featurizer(CONFIG)(raw_batch(64), tf.constant([1, 0]))
    step = CONFIG.model.frames_per_step
    for row, length in enumerate(batch.mel_lengths.numpy()):
        assert length % step == 0
        assert not batch.mel[row, length:].numpy().any() and batch.mel[row, :length].numpy().any()


def dataset(count: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors(raw_batch(64)).repeat(count)


def feed_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "feed"]


def test_feed_yields_everything_in_order_and_ends():
    with Feed(dataset(7), Featurizer(CONFIG), plan_devices(), StageClock()) as feed:
        assert len(list(feed)) == 7
    assert not feed_threads()


def test_abandoning_the_feed_ends_its_thread():
    with Feed(dataset(1000), Featurizer(CONFIG), plan_devices(), StageClock()) as feed:
        next(iter(feed))
    assert not feed_threads()


def test_an_error_while_loading_reaches_the_training_thread():
    def broken():
        yield from itertools.repeat(tuple(raw_batch(64)), 2)
        raise ValueError("clip 7 is broken")

    spec = tuple(tf.TensorSpec(part.shape, part.dtype) for part in raw_batch(64))
    source = tf.data.Dataset.from_generator(broken, output_signature=spec).map(lambda *parts: RawBatch(*parts))
    begin = time.perf_counter()
    with (
        pytest.raises(tf.errors.OpError, match="clip 7 is broken"),
        Feed(source, Featurizer(CONFIG), plan_devices(), StageClock()) as feed,
    ):
        list(feed)
    assert time.perf_counter() - begin < 20 and not feed_threads()
