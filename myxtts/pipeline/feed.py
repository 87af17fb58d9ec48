"""Dataset, features and transfer joined: an iterator of batches on the devices that train.

In: a source of RawBatch, a Featurizer and a DevicePlan.
Out: batches where they are trained on, prepared by a thread of its own; ahead, unless the plan is sequential.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Protocol, Self

import tensorflow as tf

from myxtts.batch import Layout, RawBatch, StepInput
from myxtts.devices import HOST, DevicePlan, guarded_copies, move, require_on, wait_for
from myxtts.errors import RunError
from myxtts.pipeline.buffer import LOOK_SECONDS, BoundedBuffer, Closed, Stalled, Waits
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.stage_error import naming_stage, some
from myxtts.pipeline.stages import OPEN, WAIT, Stage
from myxtts.pipeline.transfer import Transfer, send, send_shards

SLOTS = 3  # batches that may wait, ready, on the model device, at first
FEWEST = 2  # the buffer never shrinks below this
WINDOW = 50  # batches between two looks at the waits
OFTEN = 0.1  # share of batches for which a side waits before the buffer is changed
STALL_SECONDS = 120.0
LEAVE_SECONDS = 5.0


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


@dataclass(frozen=True)
class FeedOptions:
    """How a feed goes about it."""

    start: int = 0  # number of the first batch
    epochs: int = 0  # where to end; 0 means never
    shuffle: bool = True  # as in `HostDataset.batches`
    stall_seconds: float = STALL_SECONDS  # how long the source may give nothing before that is an error
    slots: int = SLOTS  # batches that may wait, at first, where `most` allows it
    most: int = SLOTS  # that the buffer may grow to
    resized: Callable[[int, str], None] = lambda slots, reason: None  # told the new number of slots, and why
    device_lock: AbstractContextManager = field(default_factory=nullcontext)  # held while the data device is given work
    stop: threading.Event = field(default_factory=threading.Event)  # ends waits and iteration when set from outside
    purpose: str = ""  # put before the stage's name in errors
    exact: bool = False  # a stage ends when its device is done with it, not when it was told to begin; for measuring
    transfer: Transfer = move  # copies the floats of a batch to a device
    save_memory: Callable[[str], None] | None = None  # told what is done when memory runs out; None: that is an error


class Feed:
    """Use it as a context manager, once: leaving it ends the thread, however far the iteration has come.

    In a sequential plan that thread begins a batch only when one is asked for.

    Args:
        source: where the batches come from.
        featurizer: prepares batches on the data device.
        devices: which device prepares, which ones train, and whether they overlap.
        clock: told how long each stage took; stalls and priming are timed by it.
        options: how it goes about it.
    """

    def __init__(
        self,
        source: Source,
        featurizer: Features,
        devices: DevicePlan,
        clock: StageClock,
        options: FeedOptions | None = None,
    ):
        self._source, self._featurizer, self._devices, self._clock = source, featurizer, devices, clock
        self._options = options = options or FeedOptions()
        self._most = options.most
        self._buffer: BoundedBuffer[StepInput] = BoundedBuffer(min(options.slots, options.most), clock.now)
        self._ahead = devices.pipeline != "sequential"
        self._parts, self._saving = 1, threading.Lock()
        self._at, self._iterated = (str(Stage.LOAD), options.start), False
        self._thread = threading.Thread(target=self._produce, name="feed", daemon=True)
        self._helpers = ThreadPoolExecutor(len(devices.preparing_devices), "feed")  # one thread for each device

    @property
    def ready(self) -> int:
        """Batches that wait in the buffer."""
        return len(self._buffer)

    @property
    def waits(self) -> Waits:
        """How often either side has waited since the buffer was last looked at."""
        return self._buffer.waits

    @property
    def slots(self) -> int:
        return self._buffer.slots

    def _adapt(self) -> None:
        slots, reason = choose_slots(self._buffer.slots, self._most, self._buffer.take_waits())
        if reason:
            self._buffer.resize(slots)
            self._options.resized(slots, reason)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._buffer.close()
        self._thread.join(LEAVE_SECONDS)  # a source that hangs cannot be ended; its thread dies with the process
        self._helpers.shutdown(wait=False)
        self._buffer.clear()

    def wait_until_primed(self, shortest_seconds: float) -> float:
        """Waits at least so long and until the buffer is full (or all there is); returns the seconds waited.

        Raises:
            RunError: the source stalled, or a stage failed.
        """
        begin = self._clock.now()
        with suppress(Closed), self._naming_stall():
            self._buffer.wait_for(self._buffer.slots, self._options.stall_seconds, self._options.stop)
        while (left := shortest_seconds - (self._clock.now() - begin)) > 0 and not self._options.stop.is_set():
            with suppress(Closed), self._naming_stall():  # an error that comes now is not waited out
                self._buffer.wait_for(0, self._options.stall_seconds, self._options.stop)
            self._options.stop.wait(min(left, LOOK_SECONDS))
        return self._clock.now() - begin

    def __iter__(self) -> Iterator[StepInput]:
        if self._iterated or (not self._thread.is_alive() and not self._buffer.closed):
            raise RuntimeError("a Feed is entered with `with` and iterated once; make a new one")
        self._iterated = True
        for taken in itertools.count(1):
            if taken % WINDOW == 0 and self._ahead:
                self._adapt()
            self._clock.note_level(self.ready)
            with self._clock.time(WAIT, self._options.start + taken - 1):
                try:
                    with self._naming_stall():
                        batch = self._buffer.get(self._options.stall_seconds, self._options.stop)
                except Closed:
                    return
            yield batch

    @contextmanager
    def _naming_stall(self) -> Iterator[None]:
        try:
            yield
        except Stalled:
            stage, number = self._at
            hint = "does the disk answer?" if stage.endswith(Stage.LOAD) else "is the device busy, or still compiling?"
            raise RunError(
                f"{stage} has given nothing for {self._options.stall_seconds:g} s (batch {number}, clips "
                f"{some(self._names(number))}); {hint} Wait longer with `data.stall_timeout`"
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
        number = self._options.start
        with self._stage(Stage.LOAD, number, counts_as=OPEN):
            source = iter(self._source.batches(self._options.start, self._options.epochs, self._options.shuffle))
        while True:
            with self._stage(Stage.LOAD, number):
                raw: RawBatch | None = next(source, None)
            if raw is None:
                return
            with self._stage(Stage.PREPROCESS, number), guarded_copies():
                floats = self._featurize(raw)
                if self._options.exact:
                    for share in floats:
                        wait_for(share)
            # The copy is issued here and not by the training thread: it waits for what is queued on the receiver.
            with self._stage(Stage.TRANSFER, number), tf.device(self._devices.model_device), guarded_copies():
                batch = self._send_when_it_fits(floats, raw)
                if self._options.exact:
                    for shard in batch.shards:
                        wait_for(shard.floats)
            yield batch
            number += 1

    def _featurize(self, raw: RawBatch) -> list[tf.Tensor]:
        """Features of a batch, an equal share of it by each device that prepares, all at the same time."""
        devices = self._devices.preparing_devices
        if len(devices) == 1:
            return [self._featurize_share(raw.audio, raw.spans, devices[0])]
        with tf.device(HOST):
            shares = [tf.split(tensor, len(devices)) for tensor in (raw.audio, raw.spans)]
        return list(self._helpers.map(self._featurize_share, *shares, devices))

    def _featurize_share(self, audio: tf.Tensor, spans: tf.Tensor, device: str) -> tf.Tensor:
        """Features on one device; where memory runs out and is to be saved, found in smaller parts from now on."""
        rows = audio.shape[0]
        while True:
            parts = self._parts
            try:
                with tf.device(device), guarded_copies():
                    floats = self._featurize_parts(audio, spans, device, rows // parts)
                require_on(device, {"floats": floats}, "features")
                return floats
            except tf.errors.ResourceExhaustedError:
                if self._options.save_memory is None or parts == rows:
                    raise
                with self._saving:  # one of the devices that prepare finds the parts for all
                    if self._parts == parts:
                        self._parts = next(more for more in range(parts + 1, rows + 1) if rows % more == 0)
                        self._options.save_memory(
                            f"out of memory: {device} prepares batches in {self._parts} parts from now on"
                        )

    def _featurize_parts(self, audio: tf.Tensor, spans: tf.Tensor, device: str, rows: int) -> tf.Tensor:
        """Features of so many rows at a time. A copy waits for its receiver, so no lock is held meanwhile."""
        found = []
        for first in range(0, audio.shape[0], rows):
            with tf.device(HOST):
                some = [tensor[first : first + rows] if rows < audio.shape[0] else tensor for tensor in (audio, spans)]
            moved = [move(tensor, device) for tensor in some]
            with self._options.device_lock:
                found.append(self._featurizer(*moved))
        with self._options.device_lock:
            return found[0] if len(found) == 1 else tf.concat(found, 0)

    def _send_when_it_fits(self, floats: Sequence[tf.Tensor], raw: RawBatch) -> StepInput:
        """Sends a batch; where memory runs out and is to be saved, fewer batches wait on the model device."""
        while True:
            try:
                return self._send(floats, raw)
            except tf.errors.ResourceExhaustedError:
                if self._options.save_memory is None or self._buffer.slots == 1:
                    raise
                self._most = self._buffer.slots - 1
                self._buffer.resize(self._most)
                self._options.save_memory(f"out of memory: at most {self._most} batches wait for training from now on")
                self._buffer.wait_for_room()

    def _send(self, floats: Sequence[tf.Tensor], raw: RawBatch) -> StepInput:
        """A prepared batch on the devices that train."""
        devices, layout, transfer = self._devices.training_devices, self._featurizer.layout, self._options.transfer
        if self._devices.shares_batches:
            batch: StepInput = send_shards(floats, raw, layout, devices, transfer)
        else:
            batch = send(floats, raw.labels, layout, devices[0], transfer)
        for shard, device in zip(batch.shards, devices, strict=True):
            require_on(device, {"floats": shard.floats}, "batch")
        return batch

    @contextmanager
    def _stage(self, stage: str, number: int, counts_as: str = "") -> Iterator[None]:
        name = f"{self._options.purpose} {stage}".strip()
        self._at = name, number
        with self._clock.time(counts_as or stage, number), naming_stage(name, number, lambda: self._names(number)):
            yield

    def _names(self, number: int) -> list[str]:
        return self._source.names(number, self._options.shuffle)
