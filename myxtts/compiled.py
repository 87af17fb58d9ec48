"""Compiled code kept between runs: XLA compiles a bucket shape once on a machine, not once in every run.

In: the user's cache folder, this machine's processor and cards, the version of TensorFlow.
Out: TF_XLA_FLAGS that name a folder for the code, set before TensorFlow is imported.
"""

import contextlib
import functools
import hashlib
import logging
import os
import platform
import re
import resource
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from myxtts.cards import find_cards
from myxtts.errors import UsageError
from myxtts.files import cache_home

FLAGS, FOLDER_FLAG = "TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory"
MOST_BYTES = 2 << 30  # beyond this the code that was made first is removed
_LOGGER = logging.getLogger(__name__)
FREE_BYTES = 256 << 20  # TensorFlow ends the step whose code it cannot write, so there must be room for all of it


def keep_compiled() -> None:
    """Has TensorFlow read and write compiled code, unless the user's own flags say where or where not."""
    found = os.environ.get(FLAGS, "").strip()
    if FOLDER_FLAG in found or (found and not found.startswith("-")):  # the name of a file with flags
        return
    try:
        folder = cache_home() / "compiled" / machine_key()
        folder.mkdir(parents=True, exist_ok=True)
        make_room(folder.parent, MOST_BYTES)
        _require_room(folder)
    except (OSError, UsageError) as error:
        _LOGGER.warning("compiled code is not kept for the next run: %s", error)
        return
    os.environ[FLAGS] = f"{found} {FOLDER_FLAG}='{folder}' --tf_xla_persistent_cache_device_types=CPU,GPU".strip()


def _require_room(folder: Path) -> None:
    """Raises OSError where code could not be written."""
    free = shutil.disk_usage(folder).free
    largest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if free < FREE_BYTES:
        raise OSError(f"{folder} has {free >> 20} MB free, needed {FREE_BYTES >> 20}")
    if largest != resource.RLIM_INFINITY and largest < FREE_BYTES:
        raise OSError(f"files may have at most {largest} bytes here (ulimit -f), needed {FREE_BYTES}")
    with tempfile.TemporaryFile(dir=folder):
        pass


def explain_unwritten(message: str) -> str | None:
    """What to do where TensorFlow's error is that it could not write compiled code; None where it is another."""
    try:
        folder = cache_home() / "compiled"
    except UsageError:  # there is none, so nothing was written to it
        return None
    found = re.search(rf"{re.escape(str(folder))}\S*; ([^\[\n]+)", message)
    if not found:
        return None
    return (
        f"compiled code cannot be written to {folder} ({found[1].strip()}); "
        f"make room there, or go without: export {FLAGS}={FOLDER_FLAG}="
    )


@functools.cache
def machine_key() -> str:
    """Differs between machines that must not run each other's code, which share a home folder in a cluster."""
    cards = [(card.name, card.capability) for card in find_cards().cards]
    flags = os.environ.get("XLA_FLAGS", "")
    facts = (_tensorflow_version(), platform.machine(), _processor(), cards, flags)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _tensorflow_version() -> str:
    for name in ("tensorflow", "tensorflow-cpu", "tf-nightly"):
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    raise OSError("the version of TensorFlow is not known")


def _processor() -> str:
    """The instructions that the processor knows, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def make_room(folder: Path, most_bytes: int) -> None:
    """Removes the oldest files until the rest is small enough."""
    files = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                files.append((path.stat().st_mtime, path.stat().st_size, path))
        except FileNotFoundError:  # another run made room at the same time
            continue
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most_bytes:
            return
        path.unlink(missing_ok=True)
        total -= size
