"""A dataset folder's metadata file to a list of utterances; a line that cannot be read is listed too, not lost.

In: a folder with `metadata.csv` and `wavs/`.
Out: `Entry` objects in the order of the file, some of them already with a rejection.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from myxtts.config.config import LANGUAGES, DataConfig
from myxtts.errors import UsageError

EXTENSIONS = (".wav", ".flac", ".ogg", ".mp3")
COLUMNS = ("id", "text", "speaker", "language", "phonemes", "normalised")
REASONS = (
    "missing", "unreadable", "empty", "truncated", "silent", "clipped", "too_short", "too_long", "no_text",
    "unspeakable_text", "duplicate_id", "outside_folder", "bad_row",
)  # fmt: skip


@dataclass(frozen=True)
class Rejection:
    """Why a clip is not trained on; `reason` is one of `REASONS`."""

    id: str
    reason: str
    detail: str

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise ValueError(f"unknown reason {self.reason!r}")


@dataclass(frozen=True)
class Entry:
    """One line of the metadata file."""

    id: str
    path: Path
    text: str
    speaker: str
    language: str
    phonemes: str = ""


def read_manifest(folder: Path, config: DataConfig) -> tuple[list[Entry], list[Rejection]]:
    """Reads `metadata.csv`: two or three columns, or named columns when the first line is a header.

    Raises:
        UsageError: there is no such folder or file, or it is not UTF-8.
    """
    source = folder / "metadata.csv"
    if not folder.is_dir():
        raise UsageError(f"no such dataset folder: {folder}")
    if not source.is_file():
        raise UsageError(
            f"{folder} holds no metadata.csv; it needs lines of id|text and the recordings in {folder / 'wavs'}"
        )
    try:
        lines = source.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 (byte {error.start}); save it as UTF-8 and try again") from None
    csv.field_size_limit(2**30)
    lines = [line.removesuffix("\r") for line in lines]
    rows = [
        (number, row)
        for number, row in enumerate(csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE), 1)
        if any(row)
    ]
    header = [name.strip().lower() for name in rows[0][1]] if rows else []
    if "id" in header and {"text", "phonemes"} & set(header):
        columns, rows = header, rows[1:]
        if unknown := [name for name in columns if name not in COLUMNS]:
            raise UsageError(f"{source}: unknown column {unknown[0]!r}; known: {', '.join(COLUMNS)}")
        if len(set(columns)) < len(columns):
            raise UsageError(f"{source}: a column stands twice in the header {'|'.join(columns)}")
    else:
        columns = ["id", "text", "normalised"]
    entries: list[Entry] = []
    rejections: list[Rejection] = []
    seen: set[Path] = set()
    for number, row in rows:
        try:
            result = _read_row(folder, number, dict(zip(columns, row, strict=False)), len(row), columns, config)
        except (OSError, ValueError) as error:  # an id that no file can have
            result = Rejection(row[0][:60], "bad_row", f"line {number}: {error}"[:200])
        if isinstance(result, Entry) and result.path.resolve() in seen:
            result = Rejection(result.id, "duplicate_id", f"line {number} repeats an earlier clip")
        if isinstance(result, Rejection):
            rejections.append(result)
        else:
            seen.add(result.path.resolve())
            entries.append(result)
    return entries, rejections


def _read_row(
    folder: Path, number: int, cells: dict[str, str], count: int, columns: list[str], config: DataConfig
) -> Entry | Rejection:
    name = cells.get("id", "").strip()
    if not name or count < 2 or count > len(columns):
        return Rejection(
            name or f"line {number}", "bad_row", f"line {number} has {count} columns, expected {'|'.join(columns)}"
        )
    language = cells.get("language", "").strip() or config.language
    if language not in LANGUAGES:
        return Rejection(name, "bad_row", f"line {number} has language {language!r}; known: {', '.join(LANGUAGES)}")
    path = _find_recording(folder, name)
    if path is None:
        return Rejection(name, "outside_folder", f"{name!r} leads out of {folder / 'wavs'}")
    text = (cells.get("normalised", "").strip() or cells.get("text", "")).strip()
    phonemes = cells.get("phonemes", "").strip()
    if not text and not phonemes:
        return Rejection(name, "no_text", f"line {number} has no text")
    parts = Path(name).parts
    speaker = cells.get("speaker", "").strip() or (parts[0] if len(parts) > 1 else folder.resolve().name)
    return Entry(name, path, text, speaker, language, phonemes)


def _find_recording(folder: Path, name: str) -> Path | None:
    """The recording of an id; the WAV path where none exists; None when the id leads out of the folder."""
    root = (folder / "wavs").resolve()
    stem = root / name
    if not stem.resolve().is_relative_to(root):
        return None
    candidates = [stem] if stem.suffix.lower() in EXTENSIONS else []
    candidates += [stem.with_name(stem.name + extension) for extension in EXTENSIONS]
    return next((path for path in candidates if path.is_file()), stem.with_name(stem.name + ".wav"))
