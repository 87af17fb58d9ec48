"""A checkpoint scored: by what it says, or by how well its vocoder copies recordings.

In: sentences and a synthesizer, or recordings and a vocoder.
Out: `Evaluation`, one for each system that is compared.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import LOG_DEVIATION, GriffinLim, log_mel, reference_mel
from myxtts.audio.wav import read_wave, write_wave
from myxtts.config.config import AudioConfig
from myxtts.inference.engine import SynthesisOptions
from myxtts.inference.synthesizer import Script, Synthesizer
from myxtts.inference.tensorflow_engine import VocoderEngine
from myxtts.scoring.scores import Scores, SpokenClip, score

T = TypeVar("T")
YARDSTICKS = {  # what a vocoder is compared with: Griffin-Lim as published, and as it is spoken with here
    "griffin-lim-60-plain": GriffinLim(60, momentum=0.0, corrections=0),
    "griffin-lim-60": GriffinLim(60),
}


@dataclass(frozen=True)
class Evaluation:
    """The scores of one system, and how many seconds of speech it makes in one."""

    system: str
    scores: Scores
    times_real_time: float


def evaluate_speech(
    synthesizer: Synthesizer,
    scripts: Sequence[Script],
    voice: np.ndarray,
    how: SynthesisOptions,
    folder: Path,
    voices: Sequence[Path] = (),
) -> Evaluation:
    """Speaks each text into `folder` and has the clips scored; `voices` are recordings to be like."""
    synthesizer.speak(scripts[0], voice, how)  # pays for compiling
    waves, speed = _timed(lambda script: synthesizer.speak(script, voice, how), scripts, synthesizer.sample_rate)
    paths = _write_all(waves, folder, synthesizer.sample_rate)
    clips = [SpokenClip(path, script.text, script.language) for path, script in zip(paths, scripts, strict=True)]
    return Evaluation("speech", score(clips, voices), speed)


def evaluate_copies(
    engines: dict[str, VocoderEngine], recordings: Sequence[Path], audio: AudioConfig, folder: Path
) -> list[Evaluation]:
    """Makes waves of recordings' own mels by each engine, and scores recordings and copies alike."""
    waves = [read_wave(path, audio.sample_rate) for path in recordings]
    mels = [reference_mel(wave, audio, 1) for wave in waves]
    originals = _write_all(waves, folder / "recordings", audio.sample_rate)
    found = [Evaluation("recordings", score([SpokenClip(path) for path in originals]), 0.0)]
    for system, engine in engines.items():
        engine.wave(mels[0])  # pays for tracing
        copies, speed = _timed(engine.wave, mels, audio.sample_rate)
        paths = _write_all(copies, folder / system, audio.sample_rate)
        pairs = zip(paths, originals, strict=True)
        scores = score([SpokenClip(path, recording=original) for path, original in pairs])
        distance = np.mean([_mel_distance(c, w, audio) for c, w in zip(copies, waves, strict=True)])
        rows = [{**row, "source": str(path)} for row, path in zip(scores.clips, recordings, strict=True)]
        means = {**scores.means, "mel": float(distance)}
        found.append(Evaluation(system, replace(scores, means=means, clips=rows), speed))
    return found


def _timed(make: Callable[[T], np.ndarray], sources: Sequence[T], rate: int) -> tuple[list[np.ndarray], float]:
    """What is made of each, and how much faster than real time."""
    begin = time.perf_counter()
    waves = [make(source) for source in sources]
    seconds = time.perf_counter() - begin
    return waves, sum(map(len, waves)) / rate / max(1e-9, seconds)


def _write_all(waves: Sequence[np.ndarray], folder: Path, rate: int) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number:04d}.wav" for number in range(1, len(waves) + 1)]
    for path, wave in zip(paths, waves, strict=True):
        write_wave(path, wave, rate)
    return paths


def _mel_distance(copy: np.ndarray, wave: np.ndarray, audio: AudioConfig) -> float:
    """Mean absolute difference of log-mel magnitudes, natural logarithm."""
    length = min(len(copy), len(wave))
    mels = [log_mel(tf.constant(w[None, :length]), audio) for w in (copy, wave)]
    return float(tf.reduce_mean(tf.abs(mels[0] - mels[1]))) * LOG_DEVIATION
