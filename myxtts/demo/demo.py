"""The whole story on any machine: corpus, preparation, training, speech, page.

In: minutes, sentences to say, a folder.
Out: `index.html` in that folder, every unseen sentence spoken, and the facts of the run.
"""

import os
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import log_mel
from myxtts.audio.wav import read_wave, trim_silence, write_wave
from myxtts.config.config import XTTSConfig
from myxtts.config.load import build
from myxtts.demo.corpus import Corpus
from myxtts.demo.page import Pair, Sound, make_page
from myxtts.inference.tensorflow_engine import open_checkpoint
from myxtts.training.metrics import Event, Metrics, Summary, Validation
from myxtts.training.trainer import XTTSTrainer

SHOWN = 6  # unseen sentences on the page
NEXT_STEP = (
    "To train on your own recordings, put them in a folder as wavs/NAME.wav with a metadata.csv of NAME|text lines, "
    "and run: myxtts train --train-data FOLDER"
)


@dataclass(frozen=True)
class Timings:
    """Seconds of each part."""

    corpus: float
    prepare: float
    train: float
    speak: float
    spoken: float  # seconds of speech made in `speak`


MOST_MINUTES = 15.0  # of a training that goes on until it is clear
CLEAR = {"hibari": 0.195, "flite": 0.185, "espeak": 0.185}  # held-out mel loss by voice


def demo_config(folder: Path, voice: str, minutes: float | None, seed: int) -> XTTSConfig:
    """`tiny` with small batches: in a few minutes many small steps learn more than few large ones.

    The rate is for the few thousand steps of a small model, and short references are enough for one voice: both were
    chosen by the held-out loss after 500 steps.

    Args:
        minutes: how long to train; None: until the held-out loss says that the voice is clear.
    """
    return build(
        {
            "model.size": "tiny",
            "model.reference_frames": 96,
            "data.train_data": str(folder / "corpus"),
            "data.cache_dir": str(folder / "cache"),
            "data.batch_size": 4,
            "data.pipeline_buffer_size": 16,
            "training.checkpoint_dir": str(folder / "run"),
            "training.max_minutes": MOST_MINUTES if minutes is None else minutes,
            "training.clear_loss": CLEAR[voice] if minutes is None else 0.0,
            "training.lr": 5e-3,
            "training.val_every": 200,
            "training.seed": seed,
            "training.log_every": 10,
            "training.save_every": 1000,
            "training.sample_every": 0,
        }
    )


class Recorder:
    """Passes events on and keeps what the page shows."""

    def __init__(self, show: Callable[[Event], None]):
        self._show = show
        self.curve: list[tuple[float, float]] = []
        self.validation: Validation | None = None

    def clear(self, config: XTTSConfig) -> bool:
        """Whether the held-out loss is as low as in runs that a recogniser understood."""
        bound = config.training.clear_loss
        return not bound or (self.validation is not None and self.validation.losses["mel"] <= bound)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Metrics):
            self.curve.append((event.seconds / 60, event.losses["mel"]))
        elif isinstance(event, Validation):
            self.validation = event
        self._show(event)


def train(config: XTTSConfig, show: Callable[[Event], None]) -> tuple[Summary, Recorder]:
    """Trains from nothing; an earlier run of the demo is replaced."""
    shutil.rmtree(config.training.checkpoint_dir, ignore_errors=True)
    recorder = Recorder(show)
    return XTTSTrainer(config).train(recorder), recorder


def speak(
    config: XTTSConfig, corpus: Corpus, say: Sequence[str], folder: Path
) -> tuple[list[Pair], list[tuple[Path, str]], float]:
    """Speaks the unseen sentences and the user's own into `folder`.

    Returns:
        The pairs for the page, (recording, text) of every unseen sentence, and the seconds of speech made.
    """
    synthesizer = open_checkpoint(Path(config.training.checkpoint_dir))
    voice = synthesizer.voice()
    folder.mkdir(parents=True, exist_ok=True)
    pairs: list[Pair] = []
    spoken: list[tuple[Path, str]] = []
    seconds = 0.0
    own = [(text, None) for text in say]
    for number, (text, recording) in enumerate([*own, *corpus.unseen], 1):
        wave = synthesizer.speak(synthesizer.read(text), voice)
        seconds += len(wave) / synthesizer.sample_rate
        target = folder / f"{number:04d}.wav"
        write_wave(target, wave, synthesizer.sample_rate)
        if recording is not None:
            spoken.append((target, text))
        if len(pairs) < len(own) + SHOWN:
            pairs.append(Pair(text, _sound(wave, config), _sound_of(recording, config) if recording else None))
    return pairs, spoken, seconds


def _sound(wave: np.ndarray, config: XTTSConfig) -> Sound:
    mel = log_mel(tf.constant(wave[None]), config.audio)[0].numpy()
    return Sound(wave, config.audio.sample_rate, mel)


def _sound_of(recording: Path, config: XTTSConfig) -> Sound:
    wave = read_wave(recording, config.audio.sample_rate)
    return _sound(trim_silence(wave, config.audio.sample_rate), config)


def write_page(
    folder: Path, corpus: Corpus, pairs: Sequence[Pair], recorder: Recorder, summary: Summary, timings: Timings
) -> Path:
    """Writes `index.html` and returns its path."""
    minutes = timings.train / 60
    facts = [
        ("machine", f"{platform.machine()}, {os.cpu_count()} cores"),
        ("corpus made in", f"{timings.corpus:.0f} s"),
        ("clips checked and packed in", f"{timings.prepare:.0f} s"),
        ("training", f"{minutes:.1f} min, {summary.steps} steps"),
        ("step time", f"{summary.mean_step_ms:.0f} ± {summary.deviation_step_ms:.0f} ms"),
        ("data wait", f"{summary.data_wait:.1%}"),
        ("batch shapes / traces", f"{summary.shapes} / {summary.traces}"),
        ("speech", f"{timings.spoken:.0f} s in {timings.speak:.1f} s, loading included"),
    ]
    page = make_page(
        title="A voice trained on this machine",
        lead=f"From random weights to speech in {minutes:.1f} minutes. None of these sentences was trained on.",
        voice=corpus.voice,
        pairs=pairs,
        curve=recorder.curve,
        path=recorder.validation.pictures.path if recorder.validation else None,
        facts=facts,
        next_step=NEXT_STEP,
    )
    target = folder / "index.html"
    target.write_text(page, encoding="utf-8")
    return target


def stopwatch() -> Callable[[], float]:
    """A function that returns the seconds since it was last called."""
    last = time.perf_counter()

    def lap() -> float:
        nonlocal last
        now = time.perf_counter()
        elapsed, last = now - last, now
        return elapsed

    return lap
