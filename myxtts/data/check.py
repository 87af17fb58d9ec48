"""Every clip examined, every rejection with its reason.

In: an Entry.
Out: a `Clip` ready for the cache (int16 at the model's rate, spelled text), or a `Rejection`.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from myxtts.audio.wav import read_wave, trim_silence
from myxtts.config.config import XTTSConfig
from myxtts.data.manifest import Entry, Rejection
from myxtts.errors import UsageError
from myxtts.text.tokenizer import spell, spell_phonemes

SILENT_PEAK = 0.003  # about -50 dB of full scale
CLIPPED_SHARE = 0.01  # of the samples at full scale


@dataclass(frozen=True)
class Clip:
    """A clip that can be trained on."""

    entry: Entry
    wave: np.ndarray  # int16 [samples]
    units: list[str]


def examine(entry: Entry, config: XTTSConfig) -> Clip | Rejection:
    """Reads, checks, trims and spells one clip."""

    def reject(reason: str, detail: str) -> Rejection:
        return Rejection(entry.id, reason, detail)

    data = config.data
    if not entry.path.is_file():
        return reject("missing", f"no {entry.path.name} (nor .flac, .ogg, .mp3)")
    if entry.path.stat().st_size == 0:
        return reject("empty", "the file has 0 bytes")
    try:
        if missing := _missing_bytes(entry.path):
            return reject("truncated", f"the header promises {missing} bytes more than the file holds")
        if soundfile.info(entry.path).frames == 0:
            return reject("empty", "the file holds no samples")
        wave = read_wave(entry.path, config.audio.sample_rate)
    except (UsageError, OSError, soundfile.LibsndfileError) as error:
        return reject("unreadable", str(error))
    peak = float(np.abs(wave).max())
    if peak < SILENT_PEAK:
        return reject("silent", f"loudest sample {peak:.4f} of full scale")
    clipped = float(np.mean(np.abs(wave) >= min(0.999, peak * 0.9999))) if peak >= 0.99 else 0.0
    if clipped > CLIPPED_SHARE:
        return reject("clipped", f"{clipped:.1%} of the samples at full scale")
    if data.trim_silence:
        wave = trim_silence(wave, config.audio.sample_rate)
    seconds = len(wave) / config.audio.sample_rate
    if seconds < data.min_seconds:
        return reject("too_short", f"{seconds:.2f} s of speech, shortest allowed {data.min_seconds:g} s")
    if seconds > data.max_seconds:
        return reject("too_long", f"{seconds:.2f} s of speech, longest allowed {data.max_seconds:g} s")
    use_column = entry.phonemes and data.front_end == "phonemes"
    try:
        units = spell_phonemes(entry.phonemes) if use_column else spell(entry.text, entry.language, data.front_end)
    except UsageError as error:
        return reject("unspeakable_text", str(error))
    steps = len(wave) // config.audio.hop_samples // config.model.frames_per_step
    if len(units) + 2 > steps:
        return reject("too_short", f"{seconds:.2f} s of speech for {len(units)} sounds; is it the right text?")
    return Clip(entry, (np.clip(wave, -1.0, 1.0) * 32767).astype(np.int16), units)


def _missing_bytes(path: Path) -> int:
    """How many bytes a WAV file's own data chunk promises beyond the end of the file."""
    with path.open("rb") as file:
        head = file.read(12)
        if head[:4] != b"RIFF" or head[8:] != b"WAVE":
            return 0
        size = path.stat().st_size
        while len(chunk := file.read(8)) == 8:
            name, length = struct.unpack("<4sI", chunk)
            if name == b"data":
                return 0 if length == 0xFFFFFFFF else max(0, file.tell() + length - size)
            file.seek(length + length % 2, 1)
    return 0
