"""Prepared clips on disk: one memory-mapped pack of int16 audio, and an index with tokens, keyed by content.

In: a dataset folder and the settings that shape its clips.
Out: an open `Pack`, built first when there is none for exactly this content and these settings.
"""

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.data.check import Clip, examine
from myxtts.data.manifest import Entry, Rejection, read_manifest
from myxtts.errors import RunError, UsageError
from myxtts.text.tokenizer import Tokenizer

FORMAT = 1
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PackedClip:
    """Where a clip lies in the pack, and what it says."""

    id: str
    speaker: str
    language: str
    text: str
    units: list[str]
    start: int
    samples: int


@dataclass(frozen=True)
class Pack:
    """An opened cache: `audio` is a read-only memory map of int16 samples."""

    folder: Path
    clips: list[PackedClip]
    rejections: list[Rejection]
    audio: np.ndarray
    sample_rate: int

    def wave(self, clip: PackedClip) -> np.ndarray:
        """A clip's samples, int16, without copying."""
        return self.audio[clip.start : clip.start + clip.samples]

    @property
    def seconds(self) -> float:
        return len(self.audio) / self.sample_rate


def learn_tokenizer(clips: Sequence[PackedClip], config: XTTSConfig) -> Tokenizer:
    """The symbols and languages of some clips."""
    return Tokenizer.learn((c.units for c in clips), config.data.front_end, (c.language for c in clips))


def cache_root(config: XTTSConfig) -> Path:
    """Where packs live: as configured, else in the user's cache folder."""
    if config.data.cache_dir:
        return Path(config.data.cache_dir)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "myxtts"


def _content_key(entries: list[Entry], rejections: list[Rejection], config: XTTSConfig) -> str:
    """A hash over every text, every recording's bytes and every setting that shapes a clip."""
    digest = hashlib.sha256()
    data = config.data
    shaping = (data.front_end, data.trim_silence, data.min_seconds, data.max_seconds, config.model.frames_per_step)
    digest.update(json.dumps([FORMAT, dataclasses.asdict(config.audio), shaping]).encode())
    for rejection in rejections:
        digest.update(repr(rejection).encode())

    def file_hash(entry: Entry) -> bytes:
        if not entry.path.is_file():
            return b"missing"
        try:
            with entry.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").digest()
        except OSError:
            return b"unreadable"  # `examine` says why

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, content in zip(entries, pool.map(file_hash, entries), strict=True):
            described = [entry.id, entry.path.name, entry.text, entry.speaker, entry.language, entry.phonemes]
            digest.update(json.dumps(described).encode() + content)
    return digest.hexdigest()[:32]


def prepare(folder: Path, config: XTTSConfig, progress: Progress = lambda done, total: None) -> Pack:
    """Opens the pack of a dataset folder, checking and packing its clips first when needed.

    Raises:
        UsageError: the folder or its metadata cannot be read.
        RunError: the cache cannot be written or is damaged.
    """
    entries, rejections = read_manifest(folder, config.data)
    target = cache_root(config) / _content_key(entries, rejections, config)
    if not (target / "index.json").is_file():
        _build(target, entries, rejections, config, progress)
    return open_pack(target)


def require_clips(pack: Pack, config: XTTSConfig) -> None:
    """Refuses to go on with fewer than `min_clips` clips."""
    found, listed = len(pack.clips), len(pack.clips) + len(pack.rejections)
    if found < config.data.min_clips:
        raise RunError(
            f"{found} of {listed} clips can be used, at least {config.data.min_clips} are needed (--min-clips)"
        )


def _build(
    target: Path, entries: list[Entry], rejections: list[Rejection], config: XTTSConfig, progress: Progress
) -> None:
    """Packs into a temporary folder and moves it into place; the first of two builders wins."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    except OSError as error:
        raise UsageError(
            f"cannot write the cache {target.parent}: {error.strerror}; choose another with --cache-dir"
        ) from None
    try:
        clips, rejected, position = [], list(rejections), 0
        workers = config.data.num_workers or os.cpu_count() or 1
        with (partial / "audio.i16").open("wb") as audio, ThreadPoolExecutor(workers) as pool:
            for done, result in enumerate(pool.map(lambda entry: examine(entry, config), entries), 1):
                if isinstance(result, Clip):
                    audio.write(result.wave.tobytes())
                    clips.append(_describe(result, position))
                    position += len(result.wave)
                else:
                    rejected.append(result)
                progress(done, len(entries))
            audio.flush()
            os.fsync(audio.fileno())
        index = {
            "format": FORMAT,
            "sample_rate": config.audio.sample_rate,
            "samples": position,
            "clips": [dataclasses.asdict(clip) for clip in clips],
            "rejected": [dataclasses.asdict(rejection) for rejection in rejected],
        }
        with (partial / "index.json").open("w", encoding="utf-8") as file:
            json.dump(index, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:
            if not (target / "index.json").is_file():
                raise
    except OSError as error:
        raise RunError(
            f"cannot write the cache {target.parent}: {error.strerror}; nothing half-written was left"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _describe(clip: Clip, position: int) -> PackedClip:
    entry = clip.entry
    return PackedClip(entry.id, entry.speaker, entry.language, entry.text, clip.units, position, len(clip.wave))


def open_pack(folder: Path) -> Pack:
    """Opens a built pack and checks that its audio is as long as its index says."""
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        clips = [PackedClip(**clip) for clip in index["clips"]]
        rejections = [Rejection(**rejection) for rejection in index["rejected"]]
        form, samples, rate = index["format"], index["samples"], index["sample_rate"]
    except (ValueError, KeyError, TypeError):
        raise RunError(f"the cache {folder} is damaged (index.json); delete it") from None
    source = folder / "audio.i16"
    found = source.stat().st_size if source.is_file() else 0
    if form != FORMAT or found != 2 * samples:
        raise RunError(f"the cache {folder} is damaged ({found} bytes of audio, {2 * samples} expected); delete it")
    audio = np.memmap(source, np.int16, mode="r") if found else np.zeros(0, np.int16)
    return Pack(folder, clips, rejections, audio, rate)
