"""A checkpoint scored: by what it says, or by how well its vocoder copies recordings.

In: sentences and a synthesizer, or recordings and a vocoder.
Out: `Evaluation`, one for each system that is compared.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import LOG_DEVIATION, log_mel, reference_mel
from myxtts.audio.wav import read_wave, write_wave
from myxtts.config.config import AudioConfig
from myxtts.inference.synthesizer import Synthesizer
from myxtts.models.voicebox import Manner, WaveMaker
from myxtts.scoring.scores import Scores, SpokenClip, score

ITERATIONS = 60  # of the Griffin-Lim that a vocoder is compared with


@dataclass(frozen=True)
class Evaluation:
    """The scores of one system, and how many seconds of speech it makes in one."""

    system: str
    scores: Scores
    times_real_time: float


def evaluate_speech(
    synthesizer: Synthesizer,
    texts: Sequence[str],
    voice: tf.Tensor,
    language: str | None,
    manner: Manner,
    folder: Path,
    voices: Sequence[Path] = (),
) -> Evaluation:
    """Speaks each text into `folder` and has the clips scored; `voices` are recordings to be like."""
    language = language or synthesizer.tokenizer.languages[0]
    synthesizer.speak(texts[0], voice, language, manner)  # pays for tracing
    waves = (synthesizer.speak(text, voice, language, manner) for text in texts)
    names = [f"{number:04d}.wav" for number in range(1, len(texts) + 1)]
    paths, speed = _write_all(names, waves, folder, synthesizer.sample_rate)
    clips = [SpokenClip(path, text, language) for path, text in zip(paths, texts, strict=True)]
    return Evaluation("speech", score(clips, voices), speed)


def evaluate_copies(
    makers: dict[str, WaveMaker], recordings: Sequence[Path], audio: AudioConfig, folder: Path
) -> list[Evaluation]:
    """Makes waves of recordings' own mels by each maker, and scores recordings and copies alike."""
    waves = [read_wave(path, audio.sample_rate) for path in recordings]
    mels = [reference_mel(wave, audio, 1) for wave in waves]
    names = [f"{number:04d}.wav" for number in range(1, len(waves) + 1)]
    originals, _ = _write_all(names, waves, folder / "recordings", audio.sample_rate)
    found = [Evaluation("recordings", score([SpokenClip(path) for path in originals]), 0.0)]
    for system, maker in makers.items():
        maker.wave(mels[0])  # pays for tracing
        copies: list[np.ndarray] = []
        made = _keep((maker.wave(mel) for mel in mels), copies.append)
        paths, speed = _write_all(names, made, folder / system, audio.sample_rate)
        pairs = zip(paths, originals, strict=True)
        scores = score([SpokenClip(path, recording=original) for path, original in pairs])
        distance = np.mean([_mel_distance(c, w, audio) for c, w in zip(copies, waves, strict=True)])
        found.append(Evaluation(system, replace(scores, means={**scores.means, "mel": float(distance)}), speed))
    return found


def _keep(waves: Iterable[np.ndarray], note: Callable[[np.ndarray], None]) -> Iterable[np.ndarray]:
    for wave in waves:
        note(wave)
        yield wave


def _write_all(names: Sequence[str], waves: Iterable[np.ndarray], folder: Path, rate: int) -> tuple[list[Path], float]:
    """Writes waves as they are made; the second value is how much faster than real time they were made."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, spoken, begin, writing = [], 0.0, time.perf_counter(), 0.0
    for name, wave in zip(names, waves, strict=True):
        made = time.perf_counter()
        spoken += len(wave) / rate
        write_wave(folder / name, wave, rate)
        paths.append(folder / name)
        writing += time.perf_counter() - made
    return paths, spoken / max(1e-9, time.perf_counter() - begin - writing)


def _mel_distance(copy: np.ndarray, wave: np.ndarray, audio: AudioConfig) -> float:
    """Mean absolute difference of log-mel magnitudes, natural logarithm."""
    length = min(len(copy), len(wave))
    mels = [log_mel(tf.constant(w[None, :length]), audio) for w in (copy, wave)]
    return float(tf.reduce_mean(tf.abs(mels[0] - mels[1]))) * LOG_DEVIATION
