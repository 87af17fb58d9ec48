"""TensorFlow's engine for several devices: those of one process, or those of several.

In: a device plan; the cluster that this process has joined.
Out: a strategy, which runs something on all devices of this process and adds what those of all found.
"""

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from myxtts.cluster.cluster import Cluster
from myxtts.devices import DevicePlan
from myxtts.errors import RunError

CONNECT_SECONDS = 50
_joined: dict[str, tuple] = {}  # what this process has set up; TensorFlow does that once


def strategy_for(devices: DevicePlan) -> tuple[tf.distribute.Strategy, int]:
    """The strategy for the training devices of a plan, and the number of the first of them among all.

    Raises:
        RunError: this process has joined other devices before.
    """
    names = devices.training_devices
    before, strategy, first = _joined.setdefault("devices", (names, None, 0))
    if set(before) != set(names):
        raise RunError(
            f"this process has trained on {', '.join(before)}; to train on {', '.join(names)}, start another"
        )
    return strategy or tf.distribute.MirroredStrategy(names), first


def join_processes(cluster: Cluster, devices: DevicePlan) -> None:
    """Connects this process's devices with those of the others; before TensorFlow has done anything on them.

    Should one be lost later, what waits for it ends with an error. A second call changes nothing.

    Raises:
        UsageError: the processes have other numbers or kinds of devices.
    """
    if "devices" in _joined:
        return
    shape = {"training devices": len(devices.training_devices), "GPUs": devices.trains_on_gpu}
    cluster.require_equal(shape, "set its devices up", "give every process as many devices")
    gpus = len(devices.training_devices) if devices.trains_on_gpu else 0
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
        task_type="worker",
        task_id=cluster.rank,
        num_accelerators={"GPU": gpus},
        rpc_layer="grpc",
    )
    try:
        cluster.say(
            f"🌐 TensorFlow connects all {cluster.size}; if it cannot within {CONNECT_SECONDS} s, this one ends"
        )
        with _at_most(CONNECT_SECONDS):
            strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    except tf.errors.OpError as error:
        raise cluster.explain(0) or RunError(
            f"TensorFlow cannot connect rank {cluster.rank} with the others: {error.message.splitlines()[0]:.200}"
        ) from error
    found = strategy.num_replicas_in_sync
    if found != cluster.size * len(devices.training_devices):
        raise RunError(
            f"TensorFlow found {found} devices in {cluster.size} processes, and each of these has "
            f"{len(devices.training_devices)} that train; give every process the same number"
        )
    _joined["devices"] = devices.training_devices, strategy, cluster.rank * len(devices.training_devices)
    cluster.on_lost = end_waits


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Ends this process, with exit code 1, where the block takes longer.

    TensorFlow holds Python's lock while it connects, so that no thread can see who is lost meanwhile, and it has the
    patience of an hour. Nothing has been learned by then.
    """
    with Path(os.devnull).open("w") as nowhere:
        faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def end_waits() -> None:
    """Ends what waits for a process that is lost; TensorFlow's own checks find some losses later, or never."""
    from tensorflow.python.eager import context  # no public name does it

    context.context().abort_collective_ops(tf.errors.UNAVAILABLE, "a process of the cluster is lost")
