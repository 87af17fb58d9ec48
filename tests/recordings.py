"""Dataset folders with made-up recordings."""

from pathlib import Path

import numpy as np
import soundfile

from myxtts.config.config import XTTSConfig
from myxtts.config.load import build

RATE = 22050


def voice(seconds: float, seed: int = 0) -> np.ndarray:
    time_ = np.arange(int(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).standard_normal(len(time_))
    return (0.3 * np.sin(2 * np.pi * (150 + 20 * seed) * time_) + 0.01 * noise).astype(np.float32)


def make_set(folder: Path, lines: str | bytes, **clips: np.ndarray) -> Path:
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    for name, wave in clips.items():
        soundfile.write(folder / "wavs" / f"{name}.wav", wave, RATE)
    content = lines if isinstance(lines, bytes) else lines.encode()
    (folder / "metadata.csv").write_bytes(content)
    return folder


def config_for(tmp_path: Path, **values: object) -> XTTSConfig:
    return build({"data.cache_dir": str(tmp_path / "cache"), **values})
