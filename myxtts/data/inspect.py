"""What the checks and the front end made of one clip.

In: a dataset folder and an id.
Out: a `ClipView` with everything that could be found out, for a rejected clip too.
"""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from myxtts.config.config import XTTSConfig
from myxtts.data.check import Reject, Source, decode, examine, spell_entry
from myxtts.data.manifest import Entry, Rejection, read_manifest
from myxtts.errors import UsageError
from myxtts.text.normalize import normalize
from myxtts.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class ClipView:
    """Empty or None is what could not be found out."""

    id: str
    verdict: str  # "accepted" or a reason of rejection
    detail: str = ""
    path: str = ""
    speaker: str = ""
    language: str = ""
    text: str = ""
    normalised: str = ""
    units: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    source: Source | None = None
    speech_seconds: float = 0.0
    wave: np.ndarray | None = None  # float32 at the model's rate


def inspect_clip(folder: Path, name: str, config: XTTSConfig, tokenizer: Tokenizer) -> ClipView:
    """Examines the first line with that id.

    Raises:
        UsageError: there is none.
    """
    rows = read_manifest(folder, config.data)
    row = next((row for row in rows if row.id == name), None)
    if row is None:
        near = difflib.get_close_matches(name, [row.id for row in rows[:100_000]], 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{folder / 'metadata.csv'} lists no clip {name!r}{meant}")
    if isinstance(row, Rejection):
        return ClipView(row.id, row.reason, row.detail)
    known: dict[str, Any] = {"path": str(row.path), "speaker": row.speaker, "language": row.language, "text": row.text}
    result = examine(row, config)
    if isinstance(result, Rejection):
        wave, source = _hear(row, config)
        return ClipView(
            row.id, result.reason, result.detail, **known, normalised=_normalised(row), units=_units(row, config),
            source=source, wave=wave,
        )  # fmt: skip
    return ClipView(
        row.id,
        "accepted",
        **known,
        normalised=_normalised(row),
        units=tuple(result.units),
        tokens=tuple(int(i) for i in tokenizer.encode_units(result.units, row.language)),
        source=result.source,
        speech_seconds=len(result.wave) / config.audio.sample_rate,
        wave=result.wave.astype(np.float32) / 32768.0,
    )


def _hear(row: Entry, config: XTTSConfig) -> tuple[np.ndarray | None, Source | None]:
    try:
        wave, source = decode(row.path, config)
    except Reject:
        return None, None
    return soxr.resample(wave, source.rate, config.audio.sample_rate), source


def _units(row: Entry, config: XTTSConfig) -> tuple[str, ...]:
    try:
        return tuple(spell_entry(row, config))
    except Reject:
        return ()


def _normalised(row: Entry) -> str:
    try:
        return normalize(row.text, row.language)
    except UsageError:
        return ""
