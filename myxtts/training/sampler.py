"""Sample audio while a run goes on, from the averaged weights, on a device that does not train.

In: a copy of the averaged weights; something that speaks with them.
Out: WAV files in `RUN/samples/step-…/`, and the waves for TensorBoard.
"""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.audio.wav import limit_peak, write_wave
from myxtts.errors import RunError, UsageError
from myxtts.scoring.scores import SpokenClip, score
from myxtts.training.background import BackgroundWorker
from myxtts.training.metrics import EvaluationResult, Event, Notice, Sample


@dataclass(frozen=True)
class SampleGenerator:
    """A model of its own with a few sentences to say."""

    texts: list[str]
    languages: list[str]
    load: Callable[[dict[str, np.ndarray]], None]  # takes averaged weights
    say: Callable[[int], np.ndarray]  # a sentence by its number: float32 [samples]
    recordings: list[np.ndarray]  # of the same sentences; what a vocoder copies
    speakers: list[str]
    copies: bool = False  # whether what is said is made of the recordings


class Sampler:
    """Speaks now and then.

    Args:
        make_generator: called once, beside the loop.
        rate: of the samples.
        run: the run folder.
        worker: where it is done.
    """

    FOLDER, WHAT = "samples", "sample audio"

    def __init__(
        self, make_generator: Callable[[], SampleGenerator], rate: int, run: Path, worker: BackgroundWorker[Event]
    ):
        self._make_generator, self._rate, self._run, self._worker = make_generator, rate, run, worker
        self._generator: SampleGenerator | None = None
        self._speaking = False

    def warm_up(self) -> None:
        """Has the model made and compiled, so that no sample has to."""
        self._worker.do(self._warm_up)

    def _warm_up(self) -> None:
        self._generator = self._make_generator()
        self._generator.say(0)

    def begin(self, step: int, read_average: Callable[[], dict[str, np.ndarray]]) -> None:
        """Has the sentences spoken beside the loop, unless the ones before are still being spoken."""
        if self._speaking:
            self._worker.do(lambda: Notice(step, f"no {self.WHAT}: the last one is still being spoken"))
            return
        self._speaking = True
        self._worker.do(functools.partial(self._speak_all, step, read_average()))

    def _speak_all(self, step: int, average: dict[str, np.ndarray]) -> Sample | EvaluationResult | Notice:
        try:
            return self.speak(step, average)
        finally:
            self._speaking = False

    def speak(self, step: int, average: dict[str, np.ndarray]) -> Sample | EvaluationResult | Notice:
        """Speaks every sentence with these averaged weights."""
        generator = self._generator = self._generator or self._make_generator()
        generator.load(average)
        folder = self._run / self.FOLDER / f"step-{step:08d}"
        waves = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(len(generator.texts)):
                wave = limit_peak(generator.say(number))
                write_wave(folder / f"{number + 1}.wav", wave, self._rate)
                waves.append(wave)
            lines = "".join(f"{number}.wav {text}\n" for number, text in enumerate(generator.texts, 1))
            (folder / "sentences.txt").write_text(lines, encoding="utf-8")
            return self._report(step, generator, folder, waves)
        except (OSError, UsageError, RunError) as error:
            return Notice(step, f"no {self.WHAT}: {error}")

    def _report(
        self, step: int, generator: SampleGenerator, folder: Path, waves: list[np.ndarray]
    ) -> Sample | EvaluationResult | Notice:
        return Sample(step, str(folder), self._rate, waves)


class Evaluator(Sampler):
    """Speaks more sentences and has them scored."""

    FOLDER, WHAT = "evaluations", "evaluation"

    def _report(
        self, step: int, generator: SampleGenerator, folder: Path, waves: list[np.ndarray]
    ) -> Sample | EvaluationResult | Notice:
        recordings: list[Path] = []
        for number, wave in enumerate(generator.recordings, 1):
            recordings.append(folder.parent / f"recording-{number}.wav")
            write_wave(recordings[-1], wave, self._rate)
        clips = [
            SpokenClip(
                folder / f"{number + 1}.wav",
                "" if generator.copies else generator.texts[number],
                generator.languages[number],
                recordings[number] if generator.copies else None,
            )
            for number in range(len(waves))
            if generator.languages[number] == generator.languages[0]  # a recogniser listens in one language
        ]
        one_voice = len(set(generator.speakers)) == 1  # similarity to several voices at once says nothing
        scores = score(clips, recordings if one_voice and not generator.copies else ())
        if not scores.means:
            return Notice(step, f"no evaluation: {'; '.join(scores.missing.values())}")
        (folder / "scores.json").write_text(json.dumps(scores.clips, ensure_ascii=False), encoding="utf-8")
        return EvaluationResult(step, str(folder), scores.means)
