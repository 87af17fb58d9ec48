"""Spoken clips scored: error rates, speaker similarity, quality of the signal.

In: WAV files with what they were to say.
Out: `Scores`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from myxtts.errors import RunError, UsageError
from myxtts.scoring.words import count_errors

LISTENER = Path(__file__).with_name("listen.py")
PYTHON = "MYXTTS_SCORER"  # environment: a Python that has the measuring packages
WHISPER = "MYXTTS_WHISPER"  # environment: a folder with a faster-whisper model, or the name of one
MEASURES = ("cer", "wer", "similarity", "dnsmos", "pesq", "stoi", "mel")
PATIENCE = 1800.0  # seconds; a recogniser may first have to be fetched
VOICES = 32  # recordings that a voice is known by


@dataclass(frozen=True)
class SpokenClip:
    """A clip to be scored."""

    wave: Path
    text: str = ""  # what it was to say; empty: nobody listens for words
    language: str = "en"
    recording: Path | None = None  # what a copy was made from


@dataclass(frozen=True)
class Scores:
    """Means over all clips by measure, each clip's own, and why a measure is missing."""

    means: dict[str, float]
    clips: list[dict[str, float | str]] = field(repr=False)
    missing: dict[str, str]


def score(clips: Sequence[SpokenClip], voices: Sequence[Path] = (), only: Sequence[str] = MEASURES) -> Scores:
    """Has clips of one language listened to, in a process of its own.

    Error rates are edits over all clips by characters over all clips; all else are plain means.

    Raises:
        RunError: the listener could not be run.
    """
    measures = ["cer"] if all(clip.text for clip in clips) else []
    measures += ["similarity"] if voices else []
    measures += ["dnsmos"]
    measures += ["pesq"] if all(clip.recording for clip in clips) else []
    measures = [name for name in measures if name in only]
    job = {
        "clips": [{"wave": str(c.wave), "recording": str(c.recording) if c.recording else None} for c in clips],
        "voices": [str(path) for path in voices[:VOICES]],
        "language": clips[0].language if clips else "en",
        "whisper": os.environ.get(WHISPER, "base"),
        "measures": measures,
    }
    python = os.environ.get(PYTHON, sys.executable)
    try:
        process = subprocess.run(
            [python, str(LISTENER)], input=json.dumps(job), capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{python} ({PYTHON}) did not answer within {PATIENCE / 60:.0f} minutes") from None
    except OSError as error:
        raise RunError(f"cannot run {python} ({PYTHON}): {error.strerror}") from None
    if process.returncode:
        last = process.stderr.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise RunError(f"the clips could not be scored by {python}: {last[0]}")
    try:
        answer = json.loads(process.stdout)
    except ValueError:
        raise RunError(f"{python} ({PYTHON}) is no Python: it did not answer with scores") from None
    return add_up(clips, answer["clips"], answer["missing"])


def require_measures(purpose: str) -> None:
    """Refuses early what would only say later that nothing can be measured.

    Raises:
        UsageError: this Python, or the one that is named, has no package that measures.
    """
    missing = score([]).missing
    if {"cer", "dnsmos"} <= set(missing):
        raise UsageError(
            f"{purpose} needs something to measure with: {missing['cer']}; or name a Python that has it in {PYTHON}"
        )


def add_up(clips: Sequence[SpokenClip], heard: list[dict], missing: dict[str, str]) -> Scores:
    """Scores out of what a listener says of each clip."""
    sums: dict[str, list[tuple[float, float]]] = {}
    rows: list[dict[str, float | str]] = []
    for clip, values in zip(clips, heard, strict=True):
        counted = {name: (value, 1.0) for name, value in values.items() if name != "heard"}
        if "heard" in values:
            counted |= count_errors(clip.text, values["heard"], clip.language)
        for name, pair in counted.items():
            sums.setdefault(name, []).append(pair)
        own = {name: round(amount / count, 4) for name, (amount, count) in counted.items()}
        words = {"heard": values["heard"]} if "heard" in values else {}
        rows.append({"wave": str(clip.wave), "text": clip.text, **words, **own})
    totals = {name: np.sum(pairs, axis=0) for name, pairs in sums.items()}
    means = {name: float(totals[name][0] / totals[name][1]) for name in MEASURES if name in totals}
    return Scores(means, rows, missing)
