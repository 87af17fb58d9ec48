"""Builds a pack so that it can be killed at any moment and goes on where it was.

In: the lines of a metadata file.
Out: a pack folder, the same to the byte however often the work was interrupted.
"""

import array
import csv
import json
import os
import shutil
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from myxtts.audio.pitch import encode_pitch, track_pitch
from myxtts.config.config import XTTSConfig
from myxtts.data.check import Clip, examine
from myxtts.data.fingerprint import Fingerprint, signature
from myxtts.data.manifest import Entry, Rejection
from myxtts.data.pack import AUDIO, CLIPS, FORMAT, INDEX, PITCH, RECORD, REJECTED, UNITS, WORDS, sound_checksum
from myxtts.data.parallel import map_in_order
from myxtts.data.report import some
from myxtts.data.shards import FinishedShard, finish
from myxtts.errors import RunError
from myxtts.files import sync

JOURNAL = "journal.jsonl"
SYNC_SECONDS = 0.5  # work that a kill may cost
Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, how many of them, of how many
TOGETHER = 16  # clips whose pitch is tracked at once


@dataclass(frozen=True)
class Content:
    """The lines of a metadata file, or some of them, and what their recordings held."""

    rows: Sequence[Entry | Rejection]
    prints: Sequence[Fingerprint]  # one for each Entry

    def part(self, rows: range) -> "Content":
        """Some of the lines."""
        first = len(_entries(self.rows[: rows.start]))
        chosen = self.rows[rows.start : rows.stop]
        return Content(chosen, self.prints[first : first + len(_entries(chosen))])


def build_pack(
    unfinished: Path,
    target: Path,
    content: Content,
    config: XTTSConfig,
    workers: int,
    progress: Progress,
    shards: Sequence[FinishedShard] = (),
) -> None:
    """Goes on in `unfinished` and moves it to `target` when it is whole; a failed write leaves nothing."""
    try:
        _check_clips(unfinished, content, config, workers, progress, shards)
        _write_index(unfinished, content.rows, content.prints, config)
        (unfinished / JOURNAL).unlink()
        if target.exists():  # without an index: not a pack
            shutil.rmtree(target)
        unfinished.rename(target)
        sync(target.parent)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def build_shard(folder: Path, content: Content, config: XTTSConfig, workers: int, progress: Progress) -> int:
    """Goes on in `folder` until all lines of a shard are in it; returns how many clips were accepted."""
    try:
        accepted = _check_clips(folder, content, config, workers, progress)
        finish(folder, accepted)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return accepted


def _check_clips(
    folder: Path,
    content: Content,
    config: XTTSConfig,
    workers: int,
    progress: Progress,
    shards: Sequence[FinishedShard] = (),
) -> int:
    """Audio, pitch and a journal of all lines, those of finished shards copied; returns how many are accepted."""
    rows, prints = content.rows, content.prints
    before = {row.path: found.signature for row, found in zip(_entries(rows), prints, strict=True)}

    def check(row: Entry | Rejection) -> Clip | Rejection:
        if isinstance(row, Rejection):
            return row
        result = examine(row, config)
        if signature(row.path) != before[row.path]:
            raise RunError(f"{row.path} changed while it was being prepared; run it again")
        return result

    def work(group: Sequence[Entry | Rejection]) -> list[tuple[Clip, np.ndarray] | Rejection]:
        """Each row's clip with its pitch, or its rejection."""
        found = [check(row) for row in group]
        waves = [one.wave.astype(np.float32) / 32768.0 for one in found if isinstance(one, Clip)]
        pitches = iter(track_pitch(waves, config.audio))
        return [(one, encode_pitch(next(pitches))) if isinstance(one, Clip) else one for one in found]

    folder.mkdir(exist_ok=True)
    with _Journal(folder) as journal:
        for shard in (*shards, None):
            stop = len(rows) if shard is None else shard.rows.start
            groups = (rows[first : min(stop, first + TOGETHER)] for first in range(journal.done, stop, TOGETHER))
            for group in map_in_order(work, groups, workers, ahead=1):
                for result in group:
                    journal.add(result)
                    progress("checking clips", journal.done, len(rows))
            if shard is not None and journal.done in shard.rows:
                for _ in journal.copy(shard):
                    progress("joining shards", journal.done, len(rows))
        return journal.accepted


def _entries(rows: Sequence[Entry | Rejection]) -> list[Entry]:
    return [row for row in rows if isinstance(row, Entry)]


class _Journal:
    """Audio, pitch and one line for each row that is done; a line is written only when they are safe on disk."""

    def __init__(self, folder: Path):
        self._paths = {"samples": folder / AUDIO, "frames": folder / PITCH, "log": folder / JOURNAL}
        self.done = self.accepted = 0
        self._lines: list[str] = []
        self._synced = time.monotonic()

    def __enter__(self) -> Self:
        for path in self._paths.values():
            path.touch()
        sizes = {"samples": 0, "frames": 0, "log": 0}  # in bytes
        with self._paths["log"].open("rb") as log:
            for line in log:
                try:
                    if not line.endswith(b"\n"):
                        break  # cut off in the middle
                    row = json.loads(line)
                    samples, frames = row.get("samples", 0), row.get("frames", 0)
                except (ValueError, AttributeError):
                    break  # what a power cut left; it goes on from here
                sizes["samples"] += 2 * samples
                sizes["frames"] += frames
                sizes["log"] += len(line)
                self.done += 1
                self.accepted += "reason" not in row
        if any(path.stat().st_size < sizes[name] for name, path in self._paths.items()):  # not what we wrote
            self.done = self.accepted = 0
            sizes = dict.fromkeys(sizes, 0)
        for name, path in self._paths.items():
            os.truncate(path, sizes[name])
        self._audio, self._pitch, self._log = (path.open("ab") for path in self._paths.values())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        try:
            if kind is None or not issubclass(kind, OSError):  # an interruption keeps what is done
                self._sync()
        finally:
            for file in (self._audio, self._pitch, self._log):
                file.close()

    def add(self, result: tuple[Clip, np.ndarray] | Rejection) -> None:
        """Takes the next row's result."""
        if isinstance(result, Rejection):
            line = {"id": result.id, "reason": result.reason, "detail": result.detail}
            self._note(json.dumps(line), b"", b"")
        else:
            clip, pitch = result
            entry, source = clip.entry, clip.source
            found: dict[str, Any] = {
                "id": entry.id,
                "text": entry.text,
                "speaker": entry.speaker,
                "language": entry.language,
                "units": clip.units,
                "samples": len(clip.wave),
                "frames": len(pitch),
                "checksum": sound_checksum(clip.wave, pitch),
                "source": f"{source.rate} Hz, {source.channels} channel{'s' if source.channels > 1 else ''}",
            }
            self._note(json.dumps(found), clip.wave.tobytes(), pitch.tobytes())

    def copy(self, shard: FinishedShard) -> Iterator[None]:
        """Takes the rows of a shard that are still missing; yields after each."""
        with (
            (shard.folder / JOURNAL).open(encoding="utf-8") as log,
            (shard.folder / AUDIO).open("rb") as audio,
            (shard.folder / PITCH).open("rb") as pitch,
        ):
            for row, line in zip(shard.rows, log, strict=True):
                facts = json.loads(line)
                wave, heard = audio.read(2 * facts.get("samples", 0)), pitch.read(facts.get("frames", 0))
                if row >= self.done:
                    self._note(line.rstrip("\n"), wave, heard)
                    yield

    def _note(self, line: str, audio: bytes, pitch: bytes) -> None:
        self._audio.write(audio)
        self._pitch.write(pitch)
        self._lines.append(line + "\n")
        self.done += 1
        self.accepted += bool(audio)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()

    def _sync(self) -> None:
        for file in (self._audio, self._pitch, self._log):  # the log last: it vouches for the others
            if file is self._log:
                file.write("".join(self._lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self._lines.clear()
        self._synced = time.monotonic()


class _Numbers(dict[str, int]):
    """Names numbered in the order in which they come."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def _write_index(
    folder: Path, rows: Sequence[Entry | Rejection], prints: Sequence[Fingerprint], config: XTTSConfig
) -> None:
    """Journal to index files, the table of rejected clips and, last, the file that makes it a pack."""
    speakers, languages, symbols = _Numbers(), _Numbers(), _Numbers()
    sources: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    accepted: list[bool] = []
    units = array.array("H")
    records = np.zeros(len(rows), RECORD)
    count = position = frames = words = 0
    with (
        (folder / JOURNAL).open(encoding="utf-8") as journal,
        (folder / WORDS).open("wb") as text_file,
        (folder / REJECTED).open("w", newline="", encoding="utf-8") as rejected,
    ):
        table = csv.writer(rejected, lineterminator="\n")
        table.writerow(("id", "reason", "detail"))
        for line in map(json.loads, journal):
            accepted.append("reason" not in line)
            if not accepted[-1]:
                table.writerow((line["id"], line["reason"], line["detail"]))
                continue
            name, text = line["id"].encode(), line["text"].encode()
            records[count] = (
                position, line["samples"], line["checksum"], frames, line["frames"], len(units), len(line["units"]),
                speakers[line["speaker"]], languages[line["language"]], words, len(name), len(text),
            )  # fmt: skip
            units.extend(symbols[unit] for unit in line["units"])
            text_file.write(name + text)
            count, words = count + 1, words + len(name) + len(text)
            position, frames = position + line["samples"], frames + line["frames"]
            sources[line["source"]] += 1
            texts[line["text"]] += 1
    (folder / CLIPS).write_bytes(records[:count].tobytes())
    (folder / UNITS).write_bytes(units.tobytes())
    good = {row.id for row, fine in zip(rows, accepted, strict=True) if fine}
    checked = (CLIPS, UNITS, WORDS, REJECTED)
    index = {
        "format": FORMAT,
        "sample_rate": config.audio.sample_rate,
        "listed": len(rows),
        "speakers": list(speakers),
        "languages": list(languages),
        "symbols": list(symbols),
        "sources": dict(sources),
        "warnings": [*_same_recordings(rows, prints, good), *_same_texts(texts, count)],
        "sizes": {name: (folder / name).stat().st_size for name in (AUDIO, PITCH, *checked)},
        "checksums": {name: zlib.crc32((folder / name).read_bytes()) for name in checked},
    }
    (folder / INDEX).write_text(json.dumps(index, ensure_ascii=False, indent=1), encoding="utf-8")
    for name in (AUDIO, PITCH, *checked, INDEX, "."):
        sync(folder / name)


def _same_recordings(rows: Sequence[Entry | Rejection], prints: Sequence[Fingerprint], good: set[str]) -> Iterator[str]:
    first: dict[str, str] = {}
    repeated: list[str] = []
    for entry, found in zip(_entries(rows), prints, strict=True):
        if entry.id in good and first.setdefault(found.content, entry.id) != entry.id:
            repeated.append(f"{entry.id} = {first[found.content]}")
    if repeated:
        yield f"{_clips(len(repeated))} the same recording as another: {some(repeated, len(repeated))}"


def _same_texts(texts: Counter[str], count: int) -> Iterator[str]:
    text, often = texts.most_common(1)[0] if texts else ("", 0)
    if often > max(3, count // 50):
        yield f"{often} clips have the same text {text[:40]!r}; is it the right column?"


def _clips(count: int) -> str:
    return "1 clip is" if count == 1 else f"{count} clips are"
