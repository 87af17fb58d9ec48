import itertools
import os
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Self

import numpy as np
import pytest
import tensorflow as tf

from myxtts.audio.mel import LOG_DEVIATION
from myxtts.batch import Batch, RawBatch
from myxtts.config.load import build
from myxtts.data.dataset import one_by_one
from myxtts.devices import DevicePlan, plan_devices
from myxtts.errors import RunError
from myxtts.pipeline import feed as feed_module
from myxtts.pipeline.buffer import BoundedBuffer, Closed, Waits
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import SLOTS, Feed, FeedOptions, choose_slots, most_slots
from myxtts.pipeline.stage_error import StageError
from tests.helpers import PATIENCE, comes_true, feeds_end, running_feeds
from tests.stand_ins import SlowSource, Stages

CONFIG = build({"model.reference_frames": 32})
LEVEL = build({"model.reference_frames": 32, "data.reference_gain_db": 0.0})
FEATURIZER = Featurizer(CONFIG)  # compiled once for all tests of the feed
HOP = CONFIG.audio.hop_samples


def raw_batch(frames: int, rows: int = 4, seed: int = 1) -> RawBatch:
    random = np.random.default_rng(frames)
    audio = random.integers(-9000, 9000, (rows, (frames + 32) * HOP)).astype(np.int16)
    clips, references = frames - 2 * np.arange(rows), 32 - 3 * np.arange(rows)
    for row in range(rows):
        audio[row, clips[row] * HOP : frames * HOP] = 0
        audio[row, (frames + references[row]) * HOP :] = 0
    spans = np.stack([clips, references, np.full(rows, seed), np.zeros(rows), np.arange(rows)], 1).astype(np.int64)
    labels = np.zeros((rows, 4 + 6 + frames), np.int64)
    labels[:, :4], labels[:, 4:10] = np.stack([np.full(rows, 6), clips, references, np.ones(rows)], 1), 1
    return RawBatch(tf.constant(audio), tf.constant(spans), tf.constant(labels), tf.constant(labels[:, :4]))


def featurize(featurizer: Featurizer, raw: RawBatch) -> Batch:
    return featurizer.layout.unpack(featurizer(raw.audio, raw.spans), raw.labels)


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
            taken.append(buffer.get(PATIENCE, threading.Event()))
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
    assert comes_true(lambda: buffer.waits.full == 1)
    buffer.close()
    assert ended.wait(PATIENCE)


def test_features_are_traced_once_for_each_shape():
    featurizer = Featurizer(CONFIG)
    for frames in (64, 96, 64, 96, 64):
        featurize(featurizer, raw_batch(frames, seed=frames))
    assert featurizer.traces == 2


def test_references_have_a_level_of_their_own_and_the_target_keeps_its():
    level, varied = featurize(Featurizer(LEVEL), raw_batch(64)), featurize(FEATURIZER, raw_batch(64))
    assert np.array_equal(level.mel, varied.mel) and np.array_equal(level.reference_lengths, varied.reference_lengths)
    for row, span in enumerate(level.reference_lengths.numpy()):
        change = (varied.reference - level.reference)[row, :span].numpy() * LOG_DEVIATION * 20 / np.log(10)
        assert 0.01 < np.abs(change).max() <= CONFIG.data.reference_gain_db + 1e-4
        assert np.ptp(change) < 1e-3
        assert not varied.reference[row, span:].numpy().any()


def test_features_past_the_end_are_zero_and_lengths_are_whole_steps():
    batch = featurize(FEATURIZER, raw_batch(64))
    step = CONFIG.model.frames_per_step
    for row, length in enumerate(batch.mel_lengths.numpy()):
        assert length % step == 0
        assert not batch.mel[row, length:].numpy().any() and batch.mel[row, :length].numpy().any()


class Repeated:
    """The same batch so many times; what a test wants happens when a batch is begun.

    Args:
        count: where it ends.
        at: called when the batch of that number is begun.
        begun: told the number of each batch that is begun.
    """

    def __init__(
        self, count: int, at: Mapping[int, Callable[[], None]] | None = None, begun: Callable[[int], None] | None = None
    ):
        self._count, self._at, self._begun = count, at or {}, begun or (lambda number: None)

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        batch = tuple(raw_batch(64))

        def give():
            for number in range(start, self._count):
                self._begun(number)
                self._at.get(number, lambda: None)()
                yield tuple(raw_batch(64, seed=number))

        spec = tuple(tf.TensorSpec(part.shape, part.dtype) for part in batch)
        batches = tf.data.Dataset.from_generator(give, output_signature=spec).map(lambda *parts: RawBatch(*parts))
        return batches.with_options(one_by_one())  # a batch is begun when the feed asks for it

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        return [f"clip-{number}-{row}" for row in range(6)]


def break_disk() -> None:
    raise ValueError("the disk is broken")


class Pause:
    """Something that hangs when it is called, until its block is left, and a clock for those who wait for it.

    Before the call no time passes, so that nothing slow can be taken for it; after it, 0.4 s pass at each look.
    """

    def __init__(self) -> None:
        self._begun, self._over, self._looks = threading.Event(), threading.Event(), itertools.count()

    def __call__(self) -> None:
        self._begun.set()
        assert self._over.wait(PATIENCE)

    def clock(self) -> StageClock:
        return StageClock(now=lambda: 0.4 * next(self._looks) if self._begun.is_set() else 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()


def stopped_clock() -> StageClock:
    """One that never tells that a wait has been long enough."""
    return StageClock(now=lambda: 0.0)


def plan(pipeline: str = "buffered") -> DevicePlan:
    return replace(plan_devices(), pipeline=pipeline)


@pytest.mark.parametrize("pipeline", ["sequential", "buffered"])
def test_feed_yields_everything_in_order_and_ends(pipeline):
    with Feed(Repeated(7), FEATURIZER, plan(pipeline), StageClock()) as feed:
        assert running_feeds()
        assert len(list(feed)) == 7
    assert feeds_end()


def test_abandoning_the_feed_ends_its_thread():
    with Feed(Repeated(1000), FEATURIZER, plan(), StageClock()) as feed:
        next(iter(feed))
    assert feeds_end() and feed.ready == 0


class Faulty:
    """The compiled featurizer, but for one batch."""

    layout = FEATURIZER.layout

    def __call__(self, audio, spans):
        if int(spans[0, 2]) == 3:
            raise FloatingPointError("no such number")
        return FEATURIZER(audio, spans)


@pytest.mark.parametrize("pipeline", ["sequential", "buffered"])
@pytest.mark.parametrize(
    ("source", "featurizer", "words"),
    [
        (Repeated(9, {3: break_disk}), FEATURIZER, "load failed on batch 3 .*ValueError: the disk is broken"),
        (Repeated(9), Faulty(), "preprocess failed on batch 3 .*FloatingPointError: no such number"),
    ],
)
def test_an_error_names_its_stage_batch_and_clips(pipeline, source, featurizer, words):
    with (
        pytest.raises(StageError, match=words) as caught,
        Feed(source, featurizer, plan(pipeline), StageClock()) as feed,
    ):
        list(feed)
    assert "clip-3-0, clip-3-1" in str(caught.value) and "\n" not in str(caught.value)
    assert feeds_end()


def test_the_buffer_begins_within_its_bound():
    with Feed(Repeated(9), FEATURIZER, plan(), StageClock(), FeedOptions(most=1)) as feed:
        assert comes_true(lambda: feed.waits.full == 1)  # a second batch is ready and finds no slot
        assert feed.slots == feed.ready == 1


def test_a_stalled_source_is_reported_and_not_waited_for(monkeypatch):
    monkeypatch.setattr(feed_module, "LEAVE_SECONDS", 0.01)
    with Pause() as pause:
        with (
            pytest.raises(RunError, match=r"load has given nothing for 1 s \(batch 2, clips clip-2-0"),
            Feed(Repeated(9, {2: pause}), FEATURIZER, plan(), pause.clock(), FeedOptions(stall_seconds=1.0)) as feed,
        ):
            list(feed)
        assert running_feeds()  # the feed was left although its source still hangs
    assert feeds_end()


def test_without_overlap_a_batch_is_begun_when_it_is_asked_for_and_a_stall_is_reported_too(monkeypatch):
    seen: queue.Queue[int | str] = queue.Queue()

    class Watched(BoundedBuffer):
        def wait_until_wanted(self) -> None:
            seen.put("waits")
            super().wait_until_wanted()
            seen.put("is asked" if self._wanted else "goes ahead")

    monkeypatch.setattr(feed_module, "BoundedBuffer", Watched)
    pause = Pause()
    source = Repeated(9, {2: pause}, seen.put)
    with Feed(source, FEATURIZER, plan("sequential"), pause.clock(), FeedOptions(stall_seconds=1.0)) as feed, pause:
        batches = iter(feed)
        for number in range(2):
            next(batches)
            assert [seen.get(timeout=PATIENCE) for _ in range(3)] == ["waits", "is asked", number]
        assert seen.get(timeout=PATIENCE) == "waits" and feed.ready == 0
        with pytest.raises(RunError, match=r"load has given nothing for 1 s \(batch 2,"):
            next(batches)


def test_an_error_comes_before_what_was_made_ahead_of_it():
    source = Repeated(9, {2: break_disk})
    with (
        pytest.raises(StageError, match="load failed on batch 2"),
        Feed(source, FEATURIZER, plan(), StageClock()) as feed,
    ):
        assert feeds_end() and feed.ready == 2
        next(iter(feed))


@pytest.mark.parametrize("at", [0, SLOTS], ids=["before", "after"])
def test_priming_ends_for_an_error_before_and_after_the_buffer_is_full(at):
    with pytest.raises(StageError), Feed(Repeated(9, {at: break_disk}), FEATURIZER, plan(), stopped_clock()) as feed:
        feed.wait_until_primed(60)


def test_priming_ends_for_a_stall():
    pause = Pause()
    with (
        Feed(Repeated(9, {0: pause}), FEATURIZER, plan(), pause.clock(), FeedOptions(stall_seconds=1.0)) as feed,
        pause,
        pytest.raises(RunError, match=r"has given nothing for 1 s"),
    ):
        feed.wait_until_primed(60)


@pytest.mark.parametrize("at", [0, SLOTS], ids=["before", "after"])
def test_priming_ends_for_a_stop_before_and_after_the_buffer_is_full(at):
    stop = threading.Event()
    with Feed(Repeated(9, {at: stop.set}), FEATURIZER, plan(), stopped_clock(), FeedOptions(stop=stop)) as feed:
        feed.wait_until_primed(60)
        assert list(feed) == []


def test_a_stop_ends_the_wait_for_a_batch():
    stop, pause = threading.Event(), Pause()

    def stop_and_hang() -> None:
        stop.set()
        pause()

    source = Repeated(9, {0: stop_and_hang})
    with Feed(source, FEATURIZER, plan(), stopped_clock(), FeedOptions(stop=stop)) as feed, pause:
        assert list(feed) == []


def test_a_feed_serves_once_and_only_inside_its_block():
    feed = Feed(Repeated(2), FEATURIZER, plan(), StageClock())
    with pytest.raises(RuntimeError, match="entered with `with`"):
        next(iter(feed))
    with feed:
        assert len(list(feed)) == 2
        with pytest.raises(RuntimeError, match="iterated once"):
            next(iter(feed))


def test_a_primed_feed_has_waited_and_is_full():
    with Feed(Repeated(9), FEATURIZER, plan(), StageClock()) as feed:
        assert feed.wait_until_primed(0.3) >= 0.3
        assert feed.ready == SLOTS


@pytest.mark.parametrize(
    ("slots", "waits", "wanted"),
    [
        (3, Waits(50, 10, 12, 0), 4),  # each side waits in turn: jitter
        (8, Waits(50, 10, 12, 0), 8),  # the bound
        (3, Waits(50, 49, 0, 0), 3),  # preparing is slower: no buffer helps
        (3, Waits(50, 0, 50, 2), 2),  # training is slower: fewer will do
        (2, Waits(50, 0, 50, 2), 2),
    ],
)
def test_the_buffer_follows_the_waits_within_bounds(slots, waits, wanted):
    chosen, reason = choose_slots(slots, 8, waits)
    assert chosen == wanted and bool(reason) == (chosen != slots)


def test_the_bound_depends_on_the_batch_size():
    assert [most_slots(size) for size in (1, 8, 16, 64)] == [8, 8, 4, 2]


def test_a_change_of_the_buffer_is_reported_with_its_reason(monkeypatch):
    monkeypatch.setattr(feed_module, "WINDOW", 10)
    changes: list[tuple[int, str]] = []
    with Feed(
        Repeated(20),
        FEATURIZER,
        plan(),
        StageClock(),
        FeedOptions(resized=lambda slots, why: changes.append((slots, why))),
    ) as feed:
        batches = iter(feed)
        for taken in range(10):
            assert not changes
            assert comes_true(lambda taken=taken: feed.waits.full > taken)  # before each, a batch has no slot
            next(batches)
        assert feed.slots == 2
    assert changes == [(2, "at least 3 batches were always ready")]


def test_more_workers_than_cores_wait_for_the_disk_together():
    workers = 4 * (os.cpu_count() or 1)
    disk = threading.Barrier(workers)

    def answer(number: int) -> float:
        disk.wait(PATIENCE)  # until every worker waits
        return 0.0

    batches = iter(SlowSource(Stages(load=answer), workers, workers).batches(0, 0, True))
    for _ in range(2 * workers):
        next(batches)
    disk.abort()  # those who load ahead: an iterator that ends waits for them


class Tight:
    """A featurizer for which memory is too small for more than one row at once."""

    layout = FEATURIZER.layout

    def __call__(self, audio, spans):
        if audio.shape[0] > 1:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return FEATURIZER(audio, spans)


def test_where_memory_runs_out_a_batch_is_prepared_in_parts_or_refused():
    told: list[str] = []
    with Feed(Repeated(3), Tight(), plan(), StageClock(), FeedOptions(save_memory=told.append)) as feed:
        found = [batch.unpack() for batch in feed]
    assert told == [f"out of memory: /CPU:0 prepares batches in {parts} parts from now on" for parts in (2, 4)]
    whole = featurize(FEATURIZER, raw_batch(64, seed=0))
    np.testing.assert_allclose(found[0].mel, whole.mel, atol=1e-5)
    assert len(found) == 3 and not np.array_equal(found[0].timesteps[:1], found[0].timesteps[1:2])
    with (
        pytest.raises(StageError, match="preprocess failed on batch 0") as caught,
        Feed(Repeated(3), Tight(), plan(), StageClock()) as feed,
    ):
        list(feed)
    assert caught.value.out_of_memory


def test_where_the_model_device_is_full_fewer_batches_wait_there():
    told: list[str] = []
    tries = [0]

    def transfer(floats, device):
        tries[0] += 1
        if tries[0] in (3, 5):
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return floats

    with Feed(
        Repeated(9), FEATURIZER, plan(), StageClock(), FeedOptions(transfer=transfer, save_memory=told.append)
    ) as feed:
        assert len(list(feed)) == 9
        assert feed.slots == 1
    assert told == [f"out of memory: at most {slots} batches wait for training from now on" for slots in (2, 1)]
