"""Dataset, features and transfer joined: an iterator of batches on the model device.

In: a source of RawBatch, a Featurizer and a DevicePlan.
Out: Batch objects on the model device, prepared by a thread of its own; ahead, unless the plan is sequential.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Protocol, Self

import tensorflow as tf

from myxtts.batch import AnyBatch, Fed, Halves, RawBatch, Sizes, sizes_of
from myxtts.devices import DevicePlan, guarded_copies, move, require_on, wait_for
from myxtts.errors import RunError
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.stage import naming_stage, some
from myxtts.pipeline.transfer import LOOK_SECONDS, BoundedBuffer, Closed, Stalled, Waits

SLOTS = 3  # batches that may wait, ready, on the model device, at first
FEWEST = 2  # the buffer never shrinks below this
WINDOW = 50  # batches between two looks at the waits
OFTEN = 0.1  # share of batches for which a side waits before the buffer is changed
STALL_SECONDS = 120.0
LEAVE_SECONDS = 5.0

Transfer = Callable[[AnyBatch, str], AnyBatch]


class Source(Protocol):
    """What a feed draws from; a HostDataset is one."""

    def batches(self, start: int, epochs: int, shuffle: bool) -> tf.data.Dataset: ...

    def loading(self, workers: int, ahead: int) -> "Source": ...

    def names(self, number: int, shuffle: bool) -> list[str]: ...


def most_slots(batch_size: int) -> int:
    """How far the buffer may grow: small batches are cheap to hold, large ones fill the card's memory."""
    return max(FEWEST, min(8, 64 // batch_size))


def choose_slots(slots: int, most: int, waits: Waits) -> tuple[int, str]:
    """The number of slots that the waits ask for, and why; the same number where nothing asks."""
    empty, full = waits.empty / max(1, waits.taken), waits.full / max(1, waits.taken)
    if empty > OFTEN and full > OFTEN and slots < most:
        return slots + 1, f"training waited for {empty:.0%} of the batches and preparing for a slot at {full:.0%}"
    if slots > FEWEST and waits.least >= FEWEST and full > OFTEN:
        return slots - 1, f"at least {waits.least} batches were always ready"
    return slots, ""


def move_batch(batch: AnyBatch, device: str) -> AnyBatch:
    return type(batch)(*[move(part, device) for part in batch])


def halve(batch: AnyBatch, prepared_on: str, devices: DevicePlan, transfer: Transfer) -> Halves:
    """The first half of a batch on the data device, the second on the model device; cut where it was prepared."""
    half = batch.weights.shape[0] // 2
    with tf.device(prepared_on):
        halves = (slice(None, half), slice(half, None))
        first, second = (type(batch)(*[part[rows] for part in batch]) for rows in halves)
    one, two = devices.data_device, devices.model_device
    sizes = [Sizes(*[move(part, device) for part in sizes_of(batch)]) for device in (one, two)]
    return Halves(transfer(first, one), transfer(second, two), *sizes)


def join(batch: Fed, device: str) -> AnyBatch:
    """A whole batch on one device, from its halves where it comes in two."""
    if not isinstance(batch, Halves):
        return batch
    rows = zip(move_batch(batch.on_data, device), batch.on_model, strict=True)
    return type(batch.on_model)(*[tf.concat(parts, 0) for parts in rows])


class Feed:
    """Use it as a context manager, once: leaving it ends the thread, however far the iteration has come.

    In a sequential plan that thread begins a batch only when one is asked for.

    Args:
        source: where the batches come from.
        featurizer: RawBatch to Batch or WaveBatch.
        devices: which device prepares, which one trains, and whether the two overlap.
        clock: told how long each stage took.
        start: number of the first batch.
        epochs: where to end; 0 means never.
        shuffle: as in `HostDataset.batches`.
        stall_seconds: how long the source may give nothing before that is an error.
        most: how many slots the buffer may grow to.
        slots: how many it begins with, where `most` allows it.
        resized: told the new number of slots and the reason of each change.
        turn: held while the data device is used, where something else uses it too.
        stop: ends every wait and the iteration when it is set from outside.
        purpose: put before the stage's name in errors.
        exact: a stage ends when its device is done with it, not when it was told to begin; for measuring.
        transfer: copies a batch to a device.
    """

    def __init__(
        self,
        source: Source,
        featurizer: Featurizer,
        devices: DevicePlan,
        clock: StageClock,
        start: int = 0,
        epochs: int = 0,
        shuffle: bool = True,
        stall_seconds: float = STALL_SECONDS,
        most: int = SLOTS,
        slots: int = SLOTS,
        resized: Callable[[int, str], None] = lambda slots, reason: None,
        turn: AbstractContextManager | None = None,
        stop: threading.Event | None = None,
        purpose: str = "",
        exact: bool = False,
        transfer: Transfer | None = None,
    ):
        self._source, self._featurizer, self._devices, self._clock = source, featurizer, devices, clock
        self._start, self._epochs, self._shuffle, self._stall_seconds = start, epochs, shuffle, stall_seconds
        self._buffer: BoundedBuffer[Fed] = BoundedBuffer(min(slots, most))
        self._most, self._resized, self._turn = most, resized, turn or nullcontext()
        self._ahead = devices.pipeline != "sequential"
        self._stop, self._purpose, self._exact = stop or threading.Event(), purpose, exact
        self._transfer = transfer or move_batch
        self._at, self._iterated = ("load", start), False
        self._thread = threading.Thread(target=self._produce, name="feed", daemon=True)

    @property
    def ready(self) -> int:
        """Batches that wait in the buffer."""
        return len(self._buffer)

    @property
    def slots(self) -> int:
        return self._buffer.slots

    def _adapt(self) -> None:
        slots, reason = choose_slots(self._buffer.slots, self._most, self._buffer.take_waits())
        if reason:
            self._buffer.resize(slots)
            self._resized(slots, reason)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._buffer.close()
        self._thread.join(LEAVE_SECONDS)  # a source that hangs cannot be ended; its thread dies with the process
        self._buffer.clear()

    def wait_until_primed(self, shortest_seconds: float) -> float:
        """Waits at least so long and until the buffer is full (or all there is); returns the seconds waited.

        Raises:
            RunError: the source stalled, or a stage failed.
        """
        begin = time.perf_counter()
        with suppress(Closed), self._naming_stall():
            self._buffer.wait_for(self._buffer.slots, self._stall_seconds, self._stop)
        while (left := shortest_seconds - (time.perf_counter() - begin)) > 0 and not self._stop.is_set():
            with suppress(Closed), self._naming_stall():  # an error that comes now is not waited out
                self._buffer.wait_for(0, self._stall_seconds, self._stop)
            self._stop.wait(min(left, LOOK_SECONDS))
        return time.perf_counter() - begin

    def __iter__(self) -> Iterator[Fed]:
        if self._iterated or (not self._thread.is_alive() and not self._buffer.closed):
            raise RuntimeError("a Feed is entered with `with` and iterated once; make a new one")
        self._iterated = True
        for taken in itertools.count(1):
            if taken % WINDOW == 0 and self._ahead:
                self._adapt()
            self._clock.note_level(self.ready)
            with self._clock.time("wait", self._start + taken - 1):
                try:
                    with self._naming_stall():
                        batch = self._buffer.get(self._stall_seconds, self._stop)
                except Closed:
                    return
            yield batch

    @contextmanager
    def _naming_stall(self) -> Iterator[None]:
        try:
            yield
        except Stalled:
            stage, number = self._at
            hint = "does the disk answer?" if stage.endswith("load") else "is the device busy, or still compiling?"
            raise RunError(
                f"{stage} has given nothing for {self._stall_seconds:g} s (batch {number}, clips "
                f"{some(self._names(number))}); {hint} Wait longer with --stall-timeout"
            ) from None

    def _produce(self) -> None:
        try:
            prepared = self._prepare_all()
            while True:
                if not self._ahead:
                    self._buffer.wait_until_wanted()
                batch = next(prepared, None)
                if batch is None:
                    break
                self._buffer.put(batch)
            self._buffer.close()
        except Closed:
            pass
        except BaseException as error:  # handed to the training thread, which raises it
            self._buffer.close(error)

    def _prepare_all(self) -> Iterator[Fed]:
        number = self._start
        with self._stage("load", number, counts_as="open"):
            source = iter(self._source.batches(self._start, self._epochs, self._shuffle))
        while True:
            with self._stage("load", number):
                raw: RawBatch | None = next(source, None)
            if raw is None:
                return
            device = self._devices.preparing(number)
            with self._stage("preprocess", number), self._turn, tf.device(device), guarded_copies():
                seed = tf.constant([number, self._featurizer.seed])
                *moved, seed = [move(part, device, for_xla=True) for part in (*raw, seed)]
                batch: Fed = self._featurizer(RawBatch(*moved), seed)
                require_on(device, {"mel": batch.mel}, "features")
                if self._exact:
                    wait_for(batch.mel)
            # The copy is issued here and not by the training thread: it waits for what is queued on the receiver.
            with self._stage("transfer", number), tf.device(self._devices.model_device), guarded_copies():
                if self._devices.both_train:
                    batch = halve(batch, device, self._devices, self._transfer)
                    require_on(self._devices.data_device, {"mel": batch.on_data.mel}, "half a batch")
                else:
                    batch = self._transfer(batch, self._devices.model_device)
                    floats = {name: part for name, part in batch._asdict().items() if part.dtype == tf.float32}
                    require_on(self._devices.model_device, floats, "batch")
                if self._exact:
                    wait_for(batch[0].mel if isinstance(batch, Halves) else batch.mel)
            yield batch
            number += 1

    @contextmanager
    def _stage(self, stage: str, number: int, counts_as: str = "") -> Iterator[None]:
        name = f"{self._purpose} {stage}".strip()
        self._at = name, number
        with self._clock.time(counts_as or stage, number), naming_stage(name, number, lambda: self._names(number)):
            yield

    def _names(self, number: int) -> list[str]:
        return self._source.names(number, self._shuffle)
