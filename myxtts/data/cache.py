"""Prepared clips on disk: one memory-mapped pack of int16 audio with tokens and an index, keyed by content.

In: a dataset folder and the settings that shape its clips.
Out: an open `Pack`, built first when there is none for exactly this content and these settings.
"""

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import myxtts
from myxtts.config.config import XTTSConfig
from myxtts.config.languages import LANGUAGES
from myxtts.data.build import Content, Progress, build_pack, build_shard
from myxtts.data.fingerprint import Fingerprint, Fingerprints
from myxtts.data.manifest import Entry, Rejection, read_manifest
from myxtts.data.pack import FORMAT, INDEX, Pack, open_pack
from myxtts.data.shards import Shard, accepted_in, find_shards, remove_shards, shard_folder, shard_lock
from myxtts.errors import RunError, UsageError
from myxtts.files import cache_home, lock
from myxtts.text.languages import get_language
from myxtts.text.tokenizer import Tokenizer

# Code that decides what becomes of a clip: with other code the same dataset is another pack.
_SHAPING_CODE = (
    "text", "audio/wav.py", "audio/container.py", "audio/pitch.py", "data/check.py", "data/manifest.py",
    "data/build.py",
)  # fmt: skip
_SHAPING_PACKAGES = ("soundfile", "soxr", "espeakng-loader", "num2words")


def learn_tokenizer(packs: Sequence[Pack], config: XTTSConfig) -> Tokenizer:
    """The symbols and languages of some packs."""
    languages = (language for pack in packs for language in pack.languages)
    return Tokenizer.learn((pack.symbols for pack in packs), config.data.front_end, languages)


def cache_root(config: XTTSConfig) -> Path:
    """Where packs live: as configured, else in the user's cache folder."""
    if config.data.cache_dir:
        return Path(config.data.cache_dir)
    return cache_home()


def prepare(folder: Path | str, config: XTTSConfig, progress: Progress = lambda what, done, total: None) -> Pack:
    """Opens the pack of a dataset folder, checking and packing its clips first when needed.

    Raises:
        UsageError: the folder or its metadata cannot be read, or there is no place for the cache.
        RunError: the cache cannot be written, is damaged, or a recording changed meanwhile.
    """
    folder = Path(folder)
    rows, root = _read(folder, config)
    workers = _workers(config)
    with _naming_cache(root):
        content = _hash(folder, rows, root, workers, progress)
        key = _content_key(folder, content, config)
        target = root / key
        if not (target / INDEX).is_file():
            with lock(root / f".lock-{key}", lambda: progress("waiting for another prepare", 0, 0)):
                if not (target / INDEX).is_file():
                    _remove_abandoned(root, folder, key)
                    unfinished = root / f".building-{_name(folder)}-{key}"
                    key_of = lambda some: _content_key(folder, content.part(some), config)  # noqa: E731
                    shards = find_shards(root, _name(folder), len(rows), key_of)
                    build_pack(unfinished, target, content, config, workers, progress, shards)
                    remove_shards(root, _name(folder))
    return open_pack(target)


def prepare_shard(
    folder: Path, config: XTTSConfig, shard: Shard, progress: Progress = lambda what, done, total: None
) -> tuple[int, int]:
    """Checks the clips of one shard of a dataset; `prepare` joins what it finds of them.

    Returns:
        Clips that were accepted, and lines that the shard has.

    Raises:
        UsageError, RunError: as `prepare`.
    """
    rows, root = _read(folder, config)
    workers, chosen = _workers(config), shard.rows(len(rows))
    with _naming_cache(root):
        content = _hash(folder, rows[chosen.start : chosen.stop], root, workers, progress)
        key = _content_key(folder, content, config)
        target = shard_folder(root, _name(folder), shard, key)
        with lock(shard_lock(root, key), lambda: progress("waiting for another prepare", 0, 0)):
            accepted = accepted_in(target)
            if accepted is None:
                accepted = build_shard(target, content, config, workers, progress)
    return accepted, len(chosen)


def _read(folder: Path, config: XTTSConfig) -> tuple[list[Entry | Rejection], Path]:
    """The lines of the metadata file and the cache folder, which must not lie in the dataset."""
    rows, root = read_manifest(folder, config.data), cache_root(config)
    if root.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"the cache {root} lies in the dataset {folder}, which is never changed; choose another `data.cache_dir`"
        )
    return rows, root


def _workers(config: XTTSConfig) -> int:
    return config.data.num_workers or os.cpu_count() or 1


def _hash(folder: Path, rows: Sequence[Entry | Rejection], root: Path, workers: int, progress: Progress) -> Content:
    """The lines with what their recordings hold."""
    root.mkdir(parents=True, exist_ok=True)
    paths = [row.path for row in rows if isinstance(row, Entry)]
    prints: list[Fingerprint] = []
    with Fingerprints(folder, root) as fingerprints:
        for found in fingerprints.hash_files(paths, workers):
            prints.append(found)
            progress("reading recordings", len(prints), len(paths))
    return Content(rows, prints)


@contextmanager
def _naming_cache(root: Path) -> Iterator[None]:
    """Turns what the file system refuses into what to do about it."""
    try:
        yield
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UsageError(f"cannot write the cache {root}: {error.strerror}; choose another `data.cache_dir`") from None
    except OSError as error:
        free = shutil.disk_usage(root).free / 2**20
        raise RunError(
            f"cannot write the cache {root}: {error.strerror or error} ({free:.0f} MB free); nothing half-written was "
            "left; make room or choose another `data.cache_dir`"
        ) from None


def require_clips(pack: Pack, config: XTTSConfig) -> None:
    """Refuses to go on with fewer than `min_clips` clips."""
    if len(pack) < config.data.min_clips:
        raise RunError(
            f"{len(pack)} of {pack.listed} clips can be used, at least {config.data.min_clips} are needed "
            "(`data.min_clips`)"
        )


def _name(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]


def _content_key(folder: Path, content: Content, config: XTTSConfig) -> str:
    """A hash over every line, every recording's bytes, every setting and all code that shapes a clip."""
    digest = hashlib.sha256()
    data = config.data
    shaping = (data.front_end, data.trim_silence, data.min_seconds, data.max_seconds, config.model.frames_per_step)
    readers = {package for language in LANGUAGES for package in get_language(language).packages}
    versions = [_version(package) for package in (*_SHAPING_PACKAGES, *sorted(readers))]
    digest.update(json.dumps([FORMAT, dataclasses.asdict(config.audio), shaping, versions]).encode())
    home = Path(myxtts.__file__).parent
    for part in _SHAPING_CODE:
        for source in sorted((home / part).rglob("*.py")) if (home / part).is_dir() else [home / part]:
            digest.update(source.read_bytes())
    contents = (found.content for found in content.prints)
    for row in content.rows:
        if isinstance(row, Entry):
            path = row.path.relative_to(folder).as_posix()
            described = [row.id, path, row.text, row.speaker, row.language, row.phonemes, next(contents)]
        else:
            described = [row.id, row.reason, row.detail]
        digest.update(json.dumps(described).encode())
    return digest.hexdigest()[:32]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _remove_abandoned(root: Path, folder: Path, key: str) -> None:
    """Deletes unfinished packs of this folder as it was before it changed; one that is being built is locked."""
    for unfinished in root.glob(f".building-{_name(folder)}-*"):
        other = unfinished.name.rsplit("-", 1)[1]
        if other != key:
            with lock(root / f".lock-{other}", None) as ours:
                if ours:
                    shutil.rmtree(unfinished)
