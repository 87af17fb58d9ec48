"""`--cluster`: what processes compare before they train together, whose settings count, how they start over.

In: flags; a cluster.
Out: a greeting, the settings of all, packs that are the same everywhere.
"""

import _thread
import argparse
import importlib.metadata
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import myxtts
from myxtts.checkpoint.folder import list_checkpoints
from myxtts.cli.settings import configure
from myxtts.cluster.cluster import PREPARE_SECONDS, Cluster
from myxtts.cluster.rendezvous import Greeting
from myxtts.config.config import XTTSConfig
from myxtts.config.load import build, flatten
from myxtts.data.cache import cache_root
from myxtts.data.pack import Pack
from myxtts.data.packs import Packs, prepare_packs
from myxtts.devices import check_request
from myxtts.errors import UsageError

MADE = "MYXTTS_RESTARTS_MADE"
OWN = (  # settings that each process may have its own of
    "data.train_data", "data.val_data", "data.cache_dir", "data.data_gpu", "data.model_gpu", "data.virtual_devices",
    "data.data_gpu_memory", "data.model_gpu_memory", "data.memory_isolation", "data.num_workers", "data.processes",
    "data.pipeline_buffer_size", "data.prefetch", "data.stall_timeout", "data.model_start_delay",
    "training.checkpoint_dir",
)  # fmt: skip


def refuse_cluster_flags(options: argparse.Namespace) -> None:
    """Refuses flags that mean nothing to a process that trains by itself."""
    for name in ("cluster_timeout", "restarts"):
        if getattr(options, name, None):
            raise UsageError(f"--{name.replace('_', '-')} goes with --cluster")


def refuse_what_is_for_one(options: argparse.Namespace, config: XTTSConfig) -> None:
    """Refuses settings that no cluster can have, before anybody waits for anybody."""
    if getattr(options, "auto", False):
        raise UsageError("--auto is for one process; profile in the cluster and choose by that")
    check_request(replace(config, data=replace(config.data, processes=2)).data)


@contextmanager
def interrupting(cluster: Cluster) -> Iterator[None]:
    """Has the loss of another process end what this one does in the block, by an interrupt as Ctrl-C's."""
    cluster.on_lost = _thread.interrupt_main
    try:
        cluster.require_whole()
        yield
    except KeyboardInterrupt:
        cluster.require_whole()
        raise
    finally:
        cluster.on_lost = lambda: None


def greet(config: XTTSConfig, origin: Mapping[str, str], only_typed: bool, **more: object) -> Greeting:
    """What this process says of itself, and `more`; where rank 0 reads a checkpoint, only settings typed here."""
    settings = {key: value for key, value in flatten(config).items() if key not in OWN}
    if only_typed:
        settings = {key: value for key, value in settings.items() if key in origin}
    versions = {"MyXTTS": myxtts.__version__, "TensorFlow": _version_of("tensorflow", "tensorflow-cpu")}
    return Greeting(versions, {**more, **settings, "devices that train": config.data.replicas})


def _version_of(*packages: str) -> str:
    for package in packages:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "none"


def take_settings(cluster: Cluster, config: XTTSConfig) -> XTTSConfig:
    """Rank 0's settings with this process's own places and devices."""
    own = {key: value for key, value in flatten(config).items() if key in OWN}
    shared = cluster.share_document(flatten(config), "tell its settings")
    return build({**shared, **own, "data.processes": cluster.size})


def prepare_together(cluster: Cluster, config: XTTSConfig, prepare: Callable[[Path, XTTSConfig], Pack]) -> Packs:
    """The same packs on all ranks. Where they share the cache folder rank 0 prepares; else each does, at once.

    Raises:
        UsageError: the ranks have other recordings.
    """
    root = cache_root(config)
    root.mkdir(parents=True, exist_ok=True)
    mark = root / f".cluster-{uuid.uuid4().hex}"
    try:
        if cluster.leads:
            mark.touch()
        seen = cluster.share_document({"mark": mark.name}, "look at its cache")["mark"]
        waits = not cluster.leads and (root / seen).exists()
        with interrupting(cluster):
            packs = None if waits else prepare_packs(config, prepare)
        cluster.share(b"" if cluster.leads else None, "prepare the data", PREPARE_SECONDS)
        packs = packs or prepare_packs(config, prepare)
        cluster.require_equal(
            _keys(packs), "prepare the data", "give all the same recordings and texts", PREPARE_SECONDS
        )
        return packs
    finally:
        mark.unlink(missing_ok=True)


def _keys(packs: Packs) -> dict[str, Any]:
    found = {"clips": len(packs.train), "recordings and texts": packs.train.folder.name}
    return found if packs.held_out is packs.train else {**found, "those for validation": packs.held_out.folder.name}


def resume_if_possible(options: argparse.Namespace) -> None:
    """Has a run that starts over go on from its last checkpoint, if it got that far."""
    vars(options).pop("training.init_from", None)
    options.auto = options.reset_optimizer = False
    options.resume = "" if holds_run(options) else None


def holds_run(options: argparse.Namespace) -> bool:
    """Whether the run folder has checkpoints."""
    return bool(list_checkpoints(Path(configure(options)[0].training.checkpoint_dir)))


@dataclass(frozen=True)
class Restarts:
    """How often this command starts over when a process is lost."""

    made: int
    left: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Restarts":
        made = int(os.environ.get(MADE, "0"))
        return cls(made, max(0, options.restarts - made))

    def start_over(self) -> NoReturn:
        """Becomes the same command again, because TensorFlow joins a cluster once in a process."""
        os.environ[MADE] = str(self.made + 1)
        sys.stdout.flush()
        sys.stderr.flush()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # ports and cards that TensorFlow still holds
        os.execv(sys.executable, sys.orig_argv)
