"""Clips that cost nothing to make."""

from pathlib import Path

import numpy as np
import soundfile

RATE = 22050
WORDS = "Good morning, all of you who listen to this."


def make_hums(folder: Path, count: int, longest: float = 3.0) -> Path:
    """A dataset of hums from one second to `longest`."""
    if (folder / "metadata.csv").is_file():
        return folder
    (folder / "wavs").mkdir(parents=True)
    for number in range(count):
        time = np.arange(int((1.0 + (longest - 1.0) * number / count) * RATE)) / RATE
        wave = 0.3 * np.sin(2 * np.pi * (120 + 10 * number) * time) * (0.6 + 0.4 * np.sin(8 * time))
        soundfile.write(folder / "wavs" / f"hum-{number:03d}.wav", wave, RATE)
    lines = "".join(f"hum-{number:03d}|{WORDS[: 8 + 2 * number % 30]}\n" for number in range(count))
    (folder / "metadata.csv").write_text(lines, encoding="utf-8")
    return folder
