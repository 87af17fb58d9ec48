"""Compiled code kept between runs: XLA compiles a bucket shape once on a machine, not once in every run.

In: the user's cache folder, this machine's processor and cards, the version of TensorFlow.
Out: TF_XLA_FLAGS that name a folder for the code, set before TensorFlow is imported.
"""

import functools
import hashlib
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from myxtts.cards import find_cards
from myxtts.files import cache_home

FLAGS, FOLDER_FLAG = "TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory"
MOST_BYTES = 2 << 30  # beyond this the code that was made first is removed


def keep_compiled() -> None:
    """Has TensorFlow read and write compiled code, unless the user's own flags say where or where not."""
    found = os.environ.get(FLAGS, "")
    if FOLDER_FLAG in found:
        return
    folder = cache_home() / "compiled" / machine_key()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        make_room(folder.parent, MOST_BYTES)
    except OSError as error:
        print(f"⚠️  compiled code is not kept for the next run: {error}", file=sys.stderr)
        return
    os.environ[FLAGS] = f"{found} {FOLDER_FLAG}={folder} --tf_xla_persistent_cache_device_types=CPU,GPU".strip()


@functools.cache
def machine_key() -> str:
    """Differs between machines that must not run each other's code, which share a home folder in a cluster."""
    cards = [(card.name, card.capability) for card in find_cards().cards]
    facts = (version("tensorflow"), platform.machine(), _processor(), cards)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


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
