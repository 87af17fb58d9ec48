"""Dataset, features and transfer joined: an iterator of batches on the model device.

In: a source of RawBatch, a Featurizer and a DevicePlan.
Out: packed batches on the model device, prepared by a thread of its own; ahead, unless the plan is sequential.
     Host to data device: two copies a batch; data to model device: one; host to model device: one; none back.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Protocol, Self

import tensorflow as tf

from myxtts.batch import HEAD, Layout, PackedBatch, RawBatch, ShardedBatch, StepInput
from myxtts.devices import HOST, DevicePlan, guarded_copies, move, require_on, wait_for
from myxtts.errors import RunError
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.stage import naming_stage, some
from myxtts.pipeline.transfer import LOOK_SECONDS, BoundedBuffer, Closed, Stalled, Waits

SLOTS = 3  # batches that may wait, ready, on the model device, at first
FEWEST = 2  # the buffer never shrinks below this
WINDOW = 50  # batches between two looks at the waits
OFTEN = 0.1  # share of batches for which a side waits before the buffer is changed
STALL_SECONDS = 120.0
LEAVE_SECONDS = 5.0

Transfer = Callable[[tf.Tensor, str], tf.Tensor]


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


class Features(Protocol):
    """What prepares batches; a Featurizer does."""

    layout: Layout

    def __call__(self, audio: tf.Tensor, spans: tf.Tensor) -> tf.Tensor: ...


def shard(
    floats: tf.Tensor, labels: tf.Tensor, layout: Layout, prepared_on: str, devices: DevicePlan, transfer: Transfer
) -> ShardedBatch:
    """The first half of a batch on the data device, the second on the model device; cut where it was prepared."""
    half = floats.shape[0] // 2
    with tf.device(prepared_on):
        first, second = floats[:half], floats[half:]
    with tf.device(HOST):
        halves = labels[:half], labels[half:]
        head = labels[:, :HEAD]
    one, two = devices.data_device, devices.model_device
    on_data = PackedBatch(transfer(first, one), move(halves[0], one), layout)
    on_model = PackedBatch(transfer(second, two), move(halves[1], two), layout)
    return ShardedBatch(on_data, on_model, *(move(head, device) for device in (one, two)))


def join(batch: StepInput, device: str) -> PackedBatch:
    """A whole batch on one device, from its shards where it comes in two."""
    if isinstance(batch, PackedBatch):
        return batch
    floats = [move(part.floats, device) for part in (batch.on_data, batch.on_model)]
    labels = [move(part.labels, device) for part in (batch.on_data, batch.on_model)]
    with tf.device(device):
        return PackedBatch(tf.concat(floats, 0), tf.concat(labels, 0), batch.on_model.layout)


class Feed:
    """Use it as a context manager, once: leaving it ends the thread, however far the iteration has come.

    In a sequential plan that thread begins a batch only when one is asked for.

    Args:
        source: where the batches come from.
        featurizer: prepares batches on the data device.
        devices: which device prepares, which one trains, and whether the two overlap.
        clock: told how long each stage took; stalls and priming are timed by it.
        start: number of the first batch.
        epochs: where to end; 0 means never.
        shuffle: as in `HostDataset.batches`.
        stall_seconds: how long the source may give nothing before that is an error.
        most: how many slots the buffer may grow to.
        slots: how many it begins with, where `most` allows it.
        resized: told the new number of slots and the reason of each change.
        device_lock: held while the data device is used, where something else uses it too.
        stop: ends every wait and the iteration when it is set from outside.
        purpose: put before the stage's name in errors.
        exact: a stage ends when its device is done with it, not when it was told to begin; for measuring.
        transfer: copies the floats of a batch to a device.
        save_memory: told in words what is done when memory runs out; None: running out of it is an error.
    """

    def __init__(
        self,
        source: Source,
        featurizer: Features,
        devices: DevicePlan,
        clock: StageClock,
        start: int = 0,
        epochs: int = 0,
        shuffle: bool = True,
        stall_seconds: float = STALL_SECONDS,
        most: int = SLOTS,
        slots: int = SLOTS,
        resized: Callable[[int, str], None] = lambda slots, reason: None,
        device_lock: AbstractContextManager | None = None,
        stop: threading.Event | None = None,
        purpose: str = "",
        exact: bool = False,
        transfer: Transfer | None = None,
        save_memory: Callable[[str], None] | None = None,
    ):
        self._source, self._featurizer, self._devices, self._clock = source, featurizer, devices, clock
        self._start, self._epochs, self._shuffle, self._stall_seconds = start, epochs, shuffle, stall_seconds
        self._buffer: BoundedBuffer[StepInput] = BoundedBuffer(min(slots, most), clock.now)
        self._most, self._resized, self._device_lock = most, resized, device_lock or nullcontext()
        self._ahead = devices.pipeline != "sequential"
        self._stop, self._purpose, self._exact = stop or threading.Event(), purpose, exact
        self._transfer = transfer or move
        self._save_memory, self._parts = save_memory, 1
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
        begin = self._clock.now()
        with suppress(Closed), self._naming_stall():
            self._buffer.wait_for(self._buffer.slots, self._stall_seconds, self._stop)
        while (left := shortest_seconds - (self._clock.now() - begin)) > 0 and not self._stop.is_set():
            with suppress(Closed), self._naming_stall():  # an error that comes now is not waited out
                self._buffer.wait_for(0, self._stall_seconds, self._stop)
            self._stop.wait(min(left, LOOK_SECONDS))
        return self._clock.now() - begin

    def __iter__(self) -> Iterator[StepInput]:
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

    def _prepare_all(self) -> Iterator[StepInput]:
        number = self._start
        with self._stage("load", number, counts_as="open"):
            source = iter(self._source.batches(self._start, self._epochs, self._shuffle))
        while True:
            with self._stage("load", number):
                raw: RawBatch | None = next(source, None)
            if raw is None:
                return
            device = self._devices.preparing(number)
            with self._stage("preprocess", number), tf.device(device), guarded_copies():
                floats = self._featurize(raw, device)
                require_on(device, {"floats": floats}, "features")
                if self._exact:
                    wait_for(floats)
            # The copy is issued here and not by the training thread: it waits for what is queued on the receiver.
            with self._stage("transfer", number), tf.device(self._devices.model_device), guarded_copies():
                batch = self._send_when_it_fits(floats, raw.labels, device)
                if self._exact:
                    wait_for(batch.on_data.floats if isinstance(batch, ShardedBatch) else batch.floats)
            yield batch
            number += 1

    def _featurize(self, raw: RawBatch, device: str) -> tf.Tensor:
        """Features of a batch; where memory runs out and is to be saved, found in smaller parts from now on."""
        rows = raw.audio.shape[0]
        while True:
            try:
                return self._featurize_parts(raw, device, rows // self._parts)
            except tf.errors.ResourceExhaustedError:
                if self._save_memory is None or self._parts == rows:
                    raise
                self._parts = next(parts for parts in range(self._parts + 1, rows + 1) if rows % parts == 0)
                self._save_memory(f"⚠️ out of memory: {device} prepares batches in {self._parts} parts from now on")

    def _featurize_parts(self, raw: RawBatch, device: str, rows: int) -> tf.Tensor:
        """Features of so many rows at a time. A copy waits for its receiver, so no lock is held meanwhile."""
        found = []
        for part in range(self._parts):
            audio, spans = raw.audio, raw.spans
            if self._parts > 1:
                with tf.device(HOST):
                    audio, spans = (x[part * rows : (part + 1) * rows] for x in (audio, spans))
                    spans += tf.constant([0, 0, 0, part], tf.int64)  # parts draw numbers of their own
            audio, spans = move(audio, device), move(spans, device)
            with self._device_lock:
                found.append(self._featurizer(audio, spans))
        with self._device_lock:
            return found[0] if len(found) == 1 else tf.concat(found, 0)

    def _send_when_it_fits(self, floats: tf.Tensor, labels: tf.Tensor, prepared_on: str) -> StepInput:
        """Sends a batch; where memory runs out and is to be saved, fewer batches wait on the model device."""
        while True:
            try:
                return self._send(floats, labels, prepared_on)
            except tf.errors.ResourceExhaustedError:
                if self._save_memory is None or self._buffer.slots == 1:
                    raise
                self._most = self._buffer.slots - 1
                self._buffer.resize(self._most)
                self._save_memory(f"⚠️ out of memory: at most {self._most} batches wait for training from now on")
                self._buffer.wait_for_room()

    def _send(self, floats: tf.Tensor, labels: tf.Tensor, prepared_on: str) -> StepInput:
        """A prepared batch on the device or the devices that train."""
        devices, layout = self._devices, self._featurizer.layout
        if devices.both_train:
            batch = shard(floats, labels, layout, prepared_on, devices, self._transfer)
            require_on(devices.data_device, {"floats": batch.on_data.floats}, "half a batch")
            return batch
        home = devices.model_device
        packed = PackedBatch(self._transfer(floats, home), move(labels, home), layout)
        require_on(home, {"floats": packed.floats}, "batch")
        return packed

    @contextmanager
    def _stage(self, stage: str, number: int, counts_as: str = "") -> Iterator[None]:
        name = f"{self._purpose} {stage}".strip()
        self._at = name, number
        with self._clock.time(counts_as or stage, number), naming_stage(name, number, lambda: self._names(number)):
            yield

    def _names(self, number: int) -> list[str]:
        return self._source.names(number, self._shuffle)
