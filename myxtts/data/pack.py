"""The pack's files: written by `build`, opened by everyone else without reading them.

In: a pack folder.
Out: a `Pack` of memory maps; nothing in it grows with the number of clips but the files on disk.
"""

import csv
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from myxtts.data.manifest import Rejection
from myxtts.errors import RunError

FORMAT = 4
INDEX = "pack.json"  # written last: a folder without it is no pack
AUDIO, PITCH = "audio.i16", "pitch.u8"
CLIPS, UNITS, WORDS, REJECTED = "clips.bin", "units.u16", "words.utf8", "rejected.csv"
RECORD = np.dtype(
    [
        ("start", "<i8"),  # first sample in the audio
        ("samples", "<i4"),
        ("checksum", "<u4"),  # CRC-32 of those samples and of their pitch
        ("first_frame", "<i8"),  # first frame in the pitch
        ("frames", "<i4"),
        ("first_unit", "<i8"),
        ("units", "<i4"),
        ("speaker", "<i4"),  # number in `speakers`
        ("language", "<i4"),  # number in `languages`
        ("words", "<i8"),  # where the id begins, its text right behind it
        ("id_bytes", "<i4"),
        ("text_bytes", "<i4"),
    ]
)


def sound_checksum(wave: np.ndarray, pitch: np.ndarray) -> int:
    """CRC-32 of a clip's samples and pitch."""
    return zlib.crc32(pitch.data, zlib.crc32(wave.data))


@dataclass(frozen=True)
class PackedClip:
    """One clip, unpacked for a reader; `number` is its place in the pack."""

    number: int
    id: str
    text: str
    speaker: str
    language: str
    units: list[str]
    samples: int


@dataclass(frozen=True)
class Pack:
    """An opened cache. Arrays are read-only memory maps; clips are known by their number."""

    folder: Path
    sample_rate: int
    listed: int  # lines of the metadata file: accepted and rejected
    speakers: list[str]
    languages: list[str]
    symbols: list[str]
    sources: dict[str, int]  # "44100 Hz, 2 channels": how many clips came so
    warnings: list[str]
    audio: np.ndarray  # int16 [samples]
    frame_pitch: np.ndarray  # uint8 [frames], as `encode_pitch` makes it
    records: np.ndarray  # RECORD [clips]
    units: np.ndarray  # uint16, numbers in `symbols`
    words: np.ndarray  # uint8
    _checked: np.ndarray = field(repr=False)  # bool [clips]

    def __len__(self) -> int:
        return len(self.records)

    @property
    def seconds(self) -> float:
        return len(self.audio) / self.sample_rate

    def wave(self, number: int) -> np.ndarray:
        """A clip's samples, int16, without copying."""
        return self._sound(number)[0]

    def pitch(self, number: int) -> np.ndarray:
        """A clip's pitch, one byte a mel frame, without copying."""
        return self._sound(number)[1]

    def _sound(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples and pitch; the first time they are compared with their checksum."""
        record = self.records[number]
        start, first = int(record["start"]), int(record["first_frame"])
        wave = self.audio[start : start + int(record["samples"])]
        pitch = self.frame_pitch[first : first + int(record["frames"])]
        if not self._checked[number]:
            if sound_checksum(wave, pitch) != record["checksum"]:
                raise RunError(
                    f"the cache {self.folder} is damaged (the audio of clip {self[number].id}); "
                    "delete that folder and run again"
                )
            self._checked[number] = True
        return wave, pitch

    def unit_numbers(self, number: int) -> np.ndarray:
        """A clip's units as numbers in `symbols`."""
        record = self.records[number]
        first = int(record["first_unit"])
        return self.units[first : first + int(record["units"])]

    def __getitem__(self, number: int) -> PackedClip:
        record = self.records[number]
        start, middle = int(record["words"]), int(record["words"]) + int(record["id_bytes"])
        name = bytes(self.words[start:middle]).decode("utf-8", "surrogateescape")
        text = bytes(self.words[middle : middle + int(record["text_bytes"])]).decode("utf-8", "surrogateescape")
        units = [self.symbols[unit] for unit in self.unit_numbers(number)]
        return PackedClip(
            number,
            name,
            text,
            self.speakers[record["speaker"]],
            self.languages[record["language"]],
            units,
            int(record["samples"]),
        )

    def __iter__(self) -> Iterator[PackedClip]:
        return (self[number] for number in range(len(self)))

    def count(self, column: str) -> dict[str, int]:
        """Clips of each "speaker" or "language", the most frequent first."""
        names = self.speakers if column == "speaker" else self.languages
        numbers, counts = np.unique(self.records[column], return_counts=True)
        return dict(Counter({names[n]: int(c) for n, c in zip(numbers, counts, strict=True)}).most_common())

    @property
    def rejections(self) -> list[Rejection]:
        """Every clip that was not accepted, in the order of the metadata file; read from disk."""
        with (self.folder / REJECTED).open(newline="", encoding="utf-8") as file:
            return [Rejection(*row) for row in list(csv.reader(file))[1:]]


def open_pack(folder: Path) -> Pack:
    """Opens a built pack and checks that its parts are as long as its index says.

    Raises:
        RunError: they are not.
    """
    damaged = f"the cache {folder} is damaged ({{}}); delete that folder and run again"
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if index["format"] != FORMAT:
            raise RunError(damaged.format(f"format {index['format']}, this version reads {FORMAT}"))
        for name, size in index["sizes"].items():
            found = (folder / name).stat().st_size
            if found != size:
                raise RunError(damaged.format(f"{name} has {found} bytes, expected {size}"))
        parts = {name: _map(folder / name, kind) for name, kind in _KINDS.items()}
        for name, checksum in index["checksums"].items():  # the audio's are looked at clip by clip
            content = parts[name].data if name in parts else (folder / name).read_bytes()
            if zlib.crc32(content) != checksum:
                raise RunError(damaged.format(f"the content of {name}"))
        return Pack(
            folder=folder,
            sample_rate=index["sample_rate"],
            listed=index["listed"],
            speakers=index["speakers"],
            languages=index["languages"],
            symbols=index["symbols"],
            sources=index["sources"],
            warnings=index["warnings"],
            audio=parts[AUDIO],
            frame_pitch=parts[PITCH],
            records=parts[CLIPS],
            units=parts[UNITS],
            words=parts[WORDS],
            _checked=np.zeros(len(parts[CLIPS]), bool),
        )
    except FileNotFoundError as error:
        raise RunError(damaged.format(f"{Path(error.filename).name} is missing")) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RunError(damaged.format(INDEX)) from None


_KINDS: dict[str, np.dtype] = {
    AUDIO: np.dtype("<i2"),
    PITCH: np.dtype("u1"),
    CLIPS: RECORD,
    UNITS: np.dtype("<u2"),
    WORDS: np.dtype("u1"),
}


def _map(path: Path, kind: np.dtype) -> np.ndarray:
    if path.stat().st_size == 0:
        return np.zeros(0, kind)
    mapped = np.memmap(path, kind, mode="r")
    return mapped.view(np.ndarray)  # indexing a memmap itself is many times slower
