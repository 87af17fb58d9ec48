"""Every clip examined, every rejection with its reason.

In: an Entry.
Out: a `Clip` ready for the cache (int16 at the model's rate, spelled text), or a `Rejection`.
"""

import errno
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

from myxtts.audio.container import missing_part
from myxtts.audio.wav import mix_down, trim_silence
from myxtts.config.config import XTTSConfig
from myxtts.data.manifest import Entry, Rejection
from myxtts.errors import UsageError
from myxtts.text.tokenizer import spell, spell_phonemes

SILENT_LEVEL = 0.003  # half the swing of the wave, about -50 dB of full scale
CLIPPED_SHARE = 0.01  # of the samples at full scale
RATES = (1_000, 768_000)  # what a recording's header may say
ROOM_SECONDS = 60.0  # silence that may surround a clip of the longest allowed speech


@dataclass(frozen=True)
class Source:
    """A recording as it lies in the dataset folder."""

    rate: int
    channels: int
    seconds: float


@dataclass(frozen=True)
class Clip:
    """A clip that can be trained on."""

    entry: Entry
    wave: np.ndarray  # int16 [samples]
    units: list[str]
    source: Source


class Reject(Exception):
    """Ends an examination: (reason, detail)."""


def examine(entry: Entry, config: XTTSConfig) -> Clip | Rejection:
    """Reads, checks, trims and spells one clip."""
    try:
        wave, source = read_clip(entry.path, config)
        units = spell_entry(entry, config)
        seconds = len(wave) / config.audio.sample_rate
        steps = len(wave) // config.audio.hop_samples // config.model.frames_per_step
        if len(units) + 2 > steps:
            raise Reject("too_short", f"{seconds:.2f} s of speech for {len(units)} sounds; is it the right text?")
    except Reject as rejection:
        return Rejection(entry.id, *rejection.args)
    return Clip(entry, wave, units, source)


def read_clip(path: Path, config: XTTSConfig) -> tuple[np.ndarray, Source]:
    """A recording at the model's rate as int16, checked and trimmed; raises `Reject` where it cannot be used."""
    wave, source = decode(path, config)
    swing = float(wave.max() - wave.min()) / 2
    if swing < SILENT_LEVEL:
        raise Reject("silent", f"the wave swings by {swing:.4f} of full scale, at least {SILENT_LEVEL} is needed")
    peak = max(float(wave.max()), -float(wave.min()))
    if peak >= 0.99:
        clipped = float(np.mean(np.abs(wave) >= min(0.999, peak * 0.9999)))
        if clipped > CLIPPED_SHARE:
            raise Reject("clipped", f"{clipped:.1%} of the samples at full scale, at most {CLIPPED_SHARE:.0%} may be")
    rate, seconds = config.audio.sample_rate, source.seconds
    if seconds >= config.data.min_seconds:
        wave = soxr.resample(wave, source.rate, rate) if source.rate != rate else wave
        wave = trim_silence(wave, rate) if config.data.trim_silence else wave
        seconds = len(wave) / rate
    if seconds < config.data.min_seconds:
        raise Reject("too_short", f"{seconds:.2f} s of speech, shortest allowed {config.data.min_seconds:g} s")
    if seconds > config.data.max_seconds:
        raise Reject("too_long", f"{seconds:.2f} s of speech, longest allowed {config.data.max_seconds:g} s")
    # 32768 and not 32767: what was 16 bit comes out as it went in.
    return np.clip(np.rint(wave * np.float32(32768)), -32768, 32767).astype(np.int16), source


def decode(path: Path, config: XTTSConfig) -> tuple[np.ndarray, Source]:
    """Float32 mono at the file's own rate; a file far too long is not decoded."""
    longest = config.data.max_seconds + ROOM_SECONDS
    try:
        if not path.is_file():
            raise Reject("missing", f"no {path.name} (nor .flac, .ogg, .mp3)")
        if path.stat().st_size == 0:
            raise Reject("empty", "the file has 0 bytes")
        if missing := missing_part(path):
            raise Reject("truncated", missing)
        with soundfile.SoundFile(path) as file:
            rate, channels, promised = file.samplerate, file.channels, file.frames
            if promised == 0:
                raise Reject("empty", "the file holds no samples")
            if not RATES[0] <= rate <= RATES[1]:
                raise Reject("unreadable", f"a sampling rate of {rate} Hz")
            if promised > rate * longest:
                raise Reject("too_long", f"{promised / rate:.0f} s long")
            wave = file.read(promised, dtype="float32", always_2d=True)
    except OSError as error:
        reason = "missing" if error.errno == errno.ENAMETOOLONG else "unreadable"
        raise Reject(reason, error.strerror or str(error)) from None
    except soundfile.LibsndfileError as error:
        if _ends_early(path):
            raise Reject("truncated", "the file ends before its last samples") from None
        raise Reject("unreadable", f"no sound that can be read: {error.error_string}") from None
    if len(wave) < promised * 0.995:
        raise Reject("truncated", f"the header promises {promised} samples, the file holds {len(wave)}")
    if not np.isfinite(wave).all():
        raise Reject("unreadable", "it holds samples that are not numbers")
    return mix_down(wave), Source(rate, channels, len(wave) / rate)


def _ends_early(path: Path) -> bool:
    """Whether a decoder that failed on a file's samples had come to the end of the file, which then is too short."""
    content = io.BytesIO(path.read_bytes())
    try:
        file = soundfile.SoundFile(content)
    except soundfile.LibsndfileError:
        return False
    with file:
        try:
            file.read(dtype="float32")
        except soundfile.LibsndfileError:
            return content.tell() == len(content.getbuffer())
    return False


def spell_entry(entry: Entry, config: XTTSConfig) -> list[str]:
    """The units of a line's phonemes or text; raises `Reject` where it cannot be spoken."""
    use_column = entry.phonemes and config.data.front_end == "phonemes"
    if not use_column and not entry.text:
        raise Reject("no_text", "there is a phonemes column only, and `data.front_end=characters` reads the text")
    try:
        if use_column:
            return spell_phonemes(entry.phonemes)
        return spell(entry.text, entry.language, config.data.front_end)
    except UsageError as error:
        raise Reject("unspeakable_text", str(error)) from None
