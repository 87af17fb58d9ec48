"""Dataset, features and transfer joined: an iterator of batches on the model device.

In: a `tf.data.Dataset` of RawBatch, a Featurizer and a DevicePlan.
Out: Batch objects on the model device, prepared by a thread of their own while the model trains.
"""

import threading
from collections.abc import Iterator
from typing import Self

import tensorflow as tf

from myxtts.batch import Batch, RawBatch
from myxtts.devices import DevicePlan
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.transfer import BoundedBuffer, Closed

SLOTS = 3  # batches that may wait, ready, on the model device


class Feed:
    """Use it as a context manager: leaving it ends the thread, however far the iteration has come."""

    def __init__(
        self, batches: tf.data.Dataset, featurizer: Featurizer, devices: DevicePlan, clock: StageClock, start: int = 0
    ):
        self._batches, self._featurizer, self._devices = batches, featurizer, devices
        self._clock, self._number = clock, start
        self._buffer: BoundedBuffer[Batch] = BoundedBuffer(SLOTS)
        self._thread = threading.Thread(target=self._produce, name="feed", daemon=True)

    @property
    def ready(self) -> int:
        """Batches that wait in the buffer."""
        return len(self._buffer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._buffer.close()
        self._thread.join()

    def __iter__(self) -> Iterator[Batch]:
        while True:
            with self._clock.time("wait"):
                try:
                    batch = self._buffer.get()
                except Closed:
                    return
            yield batch

    def _produce(self) -> None:
        try:
            source = iter(self._batches)
            while True:
                with self._clock.time("load"):
                    raw: RawBatch | None = next(source, None)
                if raw is None:
                    break
                with self._clock.time("preprocess"), tf.device(self._devices.data_device):
                    batch = self._featurizer(raw, tf.constant([self._number, self._featurizer.seed]))
                with self._clock.time("transfer"), tf.device(self._devices.model_device):
                    batch = Batch(*[tf.identity(part) for part in batch])
                self._number += 1
                self._buffer.put(batch)
            self._buffer.close()
        except Closed:
            pass
        except BaseException as error:  # handed to the training thread, which raises it
            self._buffer.close(error)
