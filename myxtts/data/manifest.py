"""A dataset folder's metadata file to a list of utterances; a line that cannot be used is listed too, not lost.

In: a folder with `metadata.csv` and `wavs/`.
Out: one `Entry` or `Rejection` for each line that is not blank, in the order of the file.
"""

import difflib
import os
import posixpath
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from myxtts.config.config import DataConfig
from myxtts.config.languages import LANGUAGES
from myxtts.errors import UsageError

EXTENSIONS = (".wav", ".flac", ".ogg", ".mp3")
COLUMNS = ("id", "text", "speaker", "language", "phonemes", "normalised")
_OTHER_NAMES = {
    "audio_file": "id", "file": "id", "file_name": "id", "filename": "id", "path": "id", "audio": "id",
    "sentence": "text", "transcript": "text", "transcription": "text", "speaker_name": "speaker",
    "speaker_id": "speaker", "client_id": "speaker", "lang": "language", "locale": "language", "ipa": "phonemes",
    "normalized": "normalised", "normalised_text": "normalised", "normalized_text": "normalised",
    "normalised text": "normalised", "normalized text": "normalised",
}  # fmt: skip
REASONS = (
    "missing", "unreadable", "empty", "truncated", "silent", "clipped", "too_short", "too_long", "no_text",
    "unspeakable_text", "duplicate_id", "outside_folder", "bad_row",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a clip is not trained on; `reason` is one of `REASONS`."""

    id: str
    reason: str
    detail: str

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise ValueError(f"unknown reason {self.reason!r}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the metadata file; `path` may lead to nothing."""

    id: str
    path: Path
    text: str
    speaker: str
    language: str
    phonemes: str = ""


def read_manifest(folder: Path, config: DataConfig) -> list[Entry | Rejection]:
    """Reads `metadata.csv`: two or three columns, or named columns when the first line is a header.

    Raises:
        UsageError: there is no such folder or file, or it is not UTF-8.
    """
    rows = [(number, line.split("|")) for number, line in enumerate(_read_lines(folder), 1) if line.strip()]
    columns = _header(folder, rows[0][1]) if rows else None
    reader = _RowReader(folder, columns or ["id", "text", "normalised"], config)
    results: list[Entry | Rejection] = []
    seen: set[Path] = set()
    for number, row in rows[1:] if columns else rows:
        result = reader.read(number, row)
        if isinstance(result, Entry):
            if result.path in seen:
                result = Rejection(result.id, "duplicate_id", f"line {number} repeats an earlier clip")
            else:
                seen.add(result.path)
        results.append(result)
    return results


def _read_lines(folder: Path) -> list[str]:
    source = folder / "metadata.csv"
    if not folder.is_dir():
        raise UsageError(f"no such dataset folder: {folder}")
    if not source.is_file():
        raise UsageError(
            f"{folder} holds no metadata.csv; it needs lines of id|text and the recordings in {folder / 'wavs'}"
        )
    try:
        content = source.read_bytes()
        if content[1:64:2].count(0) > 20:
            raise UnicodeDecodeError("utf-8", content, 0, 1, "every second byte is zero")
        return re.split(r"\r\n|\n|\r", content.decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[1:64:2].count(0) > 20
        guess, code = ("looks like UTF-16", "UTF-16") if wide else ("perhaps a Windows code page", "CP1256")
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{source} is not UTF-8 (line {line}, byte {error.start}; {guess}); "
            f"convert it, for example: iconv -f {code} -t UTF-8 {source} > new.csv"
        ) from None


def _header(folder: Path, row: list[str]) -> list[str] | None:
    """The column names of a first line that is a header, else None."""
    names = [name.strip().lower() for name in row]
    columns = [_OTHER_NAMES.get(name, name) for name in names]
    if "id" not in columns or not {"text", "phonemes"} & set(columns):
        return None
    source = folder / "metadata.csv"
    for name, column in zip(names, columns, strict=True):
        if column not in COLUMNS:
            near = difflib.get_close_matches(name, [*COLUMNS, *_OTHER_NAMES], 1)
            meant = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(COLUMNS)}"
            raise UsageError(f"{source}: unknown column {name!r}{meant}")
    if len(set(columns)) < len(columns):
        raise UsageError(f"{source}: a column stands twice in the header {'|'.join(names)}")
    return columns


def _inside(name: str) -> str:
    """An id as a path in `wavs/`; it begins with ".." or nothing where it leads out of there."""
    return posixpath.normpath(name.removeprefix("./").removeprefix("wavs/"))


def _apart(name: str) -> str:
    return unicodedata.normalize("NFD", name)


class _RowReader:
    """Cells of a line to an Entry or a Rejection."""

    def __init__(self, folder: Path, columns: list[str], config: DataConfig):
        self._folder, self._columns, self._default_language = folder, columns, config.language
        self._root = folder / "wavs"

    def read(self, number: int, row: list[str]) -> Entry | Rejection:
        cells = {name: cell.strip() for name, cell in zip(self._columns, row, strict=False)}
        name = cells.get("id", "")
        if not name or not 2 <= len(row) <= len(self._columns) or "\0" in name:
            detail = f"line {number} has {len(row)} columns, expected {'|'.join(self._columns)}"
            if "\0" in name or not name:
                detail = f"line {number} has {'an id that no file can have' if name else 'no id'}"
            elif len(row) > 3:
                detail += "; name the columns in a first line"
            return Rejection(name[:60] or f"line {number}", "bad_row", detail)
        written = cells.get("language", "")
        language = re.split("[-_]", written.lower())[0] or self._default_language
        if language not in LANGUAGES:
            detail = f"line {number} has language {written!r}; known: {', '.join(LANGUAGES)}"
            return Rejection(name, "bad_row", detail)
        inside = _inside(name)
        if {"", ".."} & {spelling.split("/")[0] for spelling in (inside, _inside(name.replace("\\", "/")))}:
            return Rejection(name, "outside_folder", f"line {number}: {name!r} leads out of {self._root}")
        text, phonemes = cells.get("normalised") or cells.get("text", ""), cells.get("phonemes", "")
        if not text and not phonemes:
            return Rejection(name, "no_text", f"line {number} has no text")
        found = self._find(inside) or self._find(_inside(name.replace("\\", "/")))
        if len(found) > 1:
            return Rejection(
                name, "bad_row", f"line {number}: {name!r} may be {' or '.join(found[:3])}; write the folder too"
            )
        relative = found[0] if found else f"{inside}.wav"
        parts = relative.split("/")
        speaker = cells.get("speaker") or (parts[0] if len(parts) > 1 else self._folder.resolve().name)
        return Entry(name, self._root / relative, text, speaker, language, phonemes)

    def _find(self, name: str) -> list[str]:
        """The recording of an id as a path in `wavs/`; a bare name may lie in any folder there."""
        candidates = [name] if name.lower().endswith(EXTENSIONS) else []
        candidates += [name + ending for ending in (*EXTENSIONS, *(e.upper() for e in EXTENSIONS))]
        # macOS stores accents apart from their letters, whatever the metadata file does.
        for candidate in candidates if name.isascii() else [*candidates, *(_apart(c) for c in candidates)]:
            if os.path.isfile(f"{self._root}/{candidate}"):  # noqa: PTH113 (a hundred thousand of these add up)
                return [candidate]
        return [] if "/" in name else sorted(self._nested.get(name, []))

    @cached_property
    def _nested(self) -> dict[str, list[str]]:
        """Recordings in folders under `wavs/` by their bare name, with and without the extension."""
        found: dict[str, list[str]] = {}
        visited: set[str] = set()
        for folder, folders, files in os.walk(self._root, followlinks=True):
            real = os.path.realpath(folder)
            if real in visited:  # a link that leads back
                folders.clear()
                continue
            visited.add(real)
            inside = os.path.relpath(folder, self._root)
            for file in files:
                stem, ending = posixpath.splitext(file)
                if ending.lower() in EXTENSIONS:
                    for key in (stem, file):
                        found.setdefault(key, []).append(posixpath.normpath(f"{inside}/{file}"))
        return found
