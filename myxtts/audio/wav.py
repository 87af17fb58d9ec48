"""Sound files to mono float32 at the model's rate, and back.

In: a path to WAV, FLAC, OGG or MP3 of any rate and channel count.
Out: float32 [samples] in [-1, 1].
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import soundfile
import soxr

from myxtts.errors import UsageError


def read_wave(path: Path, sample_rate: int) -> np.ndarray:
    """Reads, mixes down and resamples.

    Raises:
        UsageError: the file is missing, is no audio or holds no samples.
    """
    if not path.is_file():
        raise UsageError(f"no such recording: {path}")
    try:
        wave, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, TypeError) as error:  # TypeError: samples without a header (.raw)
        reason = getattr(error, "error_string", "it has no header")
        raise UsageError(f"{path} is not a recording that can be read: {reason}") from None
    if not len(wave):
        raise UsageError(f"{path} holds no samples")
    if not np.isfinite(wave).all():
        raise UsageError(f"{path} holds samples that are not numbers")
    mono = mix_down(wave)
    mono = soxr.resample(mono, rate, sample_rate) if rate != sample_rate else mono
    if not len(mono):
        raise UsageError(f"{path} holds no samples at {sample_rate} Hz")
    return mono


def mix_down(wave: np.ndarray) -> np.ndarray:
    """Float32 [samples, channels] to [samples]."""
    return wave[:, 0] if wave.shape[1] == 1 else wave.mean(axis=1)


def write_wave(path: Path, wave: np.ndarray, sample_rate: int) -> None:
    """16-bit WAV, written under a temporary name and moved, so that no half file is left behind."""
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        raise UsageError(f"cannot write {path}: it is not an ordinary file")
    try:
        handle, name = tempfile.mkstemp(prefix=".myxtts-", suffix=".wav", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    partial = Path(name)
    try:
        partial.chmod(0o644)
        soundfile.write(partial, np.clip(wave, -1.0, 1.0), sample_rate, subtype="PCM_16", format="WAV")
        partial.replace(path)
    except (OSError, soundfile.LibsndfileError) as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None


def limit_peak(wave: np.ndarray, peak: float = 0.95) -> np.ndarray:
    """The same wave, softer where it would be cut off."""
    return wave * min(1.0, peak / max(float(np.abs(wave).max()), 1e-6))


def trim_silence(wave: np.ndarray, sample_rate: int, keep_seconds: float = 0.05, below_db: float = 42.0) -> np.ndarray:
    """Cuts the silence before and after the speech, leaving a short margin.

    Silence is what stays `below_db` under the loudest 20 ms. A wave without any sound comes back whole.
    """
    frame = max(1, sample_rate // 50)
    count = len(wave) // frame
    if count < 3:
        return wave
    level = np.sqrt(np.mean(wave[: count * frame].reshape(count, frame) ** 2, axis=1))
    loud = np.flatnonzero(level > level.max() * 10 ** (-below_db / 20))
    if not len(loud):
        return wave
    keep = int(keep_seconds * sample_rate)
    return wave[max(0, loud[0] * frame - keep) : (loud[-1] + 1) * frame + keep]
