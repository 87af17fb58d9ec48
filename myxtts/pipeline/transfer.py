"""The copy: a prepared batch to the devices that train on it, and back to one where it is needed whole.

In: floats on the device or the devices that prepared them, labels on the host.
Out: a `PackedBatch` where one device trains, else a `ShardedBatch`.
     Host to data device: two copies a batch; data to model device: one; host to model device: one; none back.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from myxtts.batch import Layout, PackedBatch, RawBatch, ShardedBatch, StepInput
from myxtts.devices import HOST, move, plain_name

Transfer: TypeAlias = Callable[[tf.Tensor, str], tf.Tensor]


def send(
    floats: Sequence[tf.Tensor], labels: tf.Tensor, layout: Layout, device: str, transfer: Transfer = move
) -> PackedBatch:
    """A batch on the one device that trains on it."""
    return PackedBatch(transfer(floats[0], device), move(labels, device), layout)


def send_shards(
    floats: Sequence[tf.Tensor],
    raw: RawBatch,
    layout: Layout,
    devices: Sequence[str],
    transfer: Transfer = move,
) -> ShardedBatch:
    """A batch on some devices, an equal shard on each; what was prepared as a whole is cut where it was prepared."""
    parts = floats
    if len(floats) < len(devices):
        with tf.device(plain_name(floats[0].backing_device)):
            parts = tf.split(floats[0], len(devices))
    with tf.device(HOST):
        labels = tf.split(raw.labels, len(devices))
    shards = tuple(
        PackedBatch(transfer(part, device), move(told, device), layout)
        for part, told, device in zip(parts, labels, devices, strict=True)
    )
    return ShardedBatch(shards, tuple(move(raw.heads, device) for device in devices))


def join(batch: StepInput, device: str) -> PackedBatch:
    """A whole batch on one device, from its shards where it comes in several."""
    if isinstance(batch, PackedBatch):
        return batch
    floats = [move(shard.floats, device) for shard in batch.shards]
    labels = [move(shard.labels, device) for shard in batch.shards]
    with tf.device(device):
        return PackedBatch(tf.concat(floats, 0), tf.concat(labels, 0), batch.shards[0].layout)
