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
from myxtts.training.aside import Aside
from myxtts.training.metrics import Event, Examined, Notice, Sample


@dataclass(frozen=True)
class Speaker:
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
        make_speaker: called once, beside the loop.
        rate: of the samples.
        run: the run folder.
        aside: where it is done.
    """

    FOLDER, WHAT = "samples", "sample audio"

    def __init__(self, make_speaker: Callable[[], Speaker], rate: int, run: Path, aside: Aside[Event]):
        self._make_speaker, self._rate, self._run, self._aside = make_speaker, rate, run, aside
        self._speaker: Speaker | None = None
        self._speaking = False

    def warm_up(self) -> None:
        """Has the model made and compiled, so that no sample has to."""
        self._aside.do(self._warm_up)

    def _warm_up(self) -> None:
        self._speaker = self._make_speaker()
        self._speaker.say(0)

    def begin(self, step: int, read_average: Callable[[], dict[str, np.ndarray]]) -> None:
        """Has the sentences spoken beside the loop, unless the ones before are still being spoken."""
        if self._speaking:
            self._aside.do(lambda: Notice(step, f"⚠️ no {self.WHAT}: the last one is still being spoken"))
            return
        self._speaking = True
        self._aside.do(functools.partial(self._speak_all, step, read_average()))

    def _speak_all(self, step: int, average: dict[str, np.ndarray]) -> Sample | Examined | Notice:
        try:
            return self.speak(step, average)
        finally:
            self._speaking = False

    def speak(self, step: int, average: dict[str, np.ndarray]) -> Sample | Examined | Notice:
        """Speaks every sentence with these averaged weights."""
        speaker = self._speaker = self._speaker or self._make_speaker()
        speaker.load(average)
        folder = self._run / self.FOLDER / f"step-{step:08d}"
        waves = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(len(speaker.texts)):
                wave = limit_peak(speaker.say(number))
                write_wave(folder / f"{number + 1}.wav", wave, self._rate)
                waves.append(wave)
            lines = "".join(f"{number}.wav {text}\n" for number, text in enumerate(speaker.texts, 1))
            (folder / "sentences.txt").write_text(lines, encoding="utf-8")
            return self._report(step, speaker, folder, waves)
        except (OSError, UsageError, RunError) as error:
            return Notice(step, f"⚠️ no {self.WHAT}: {error}")

    def _report(self, step: int, speaker: Speaker, folder: Path, waves: list[np.ndarray]) -> Sample | Examined | Notice:
        return Sample(step, str(folder), self._rate, waves)


class Examiner(Sampler):
    """Speaks more sentences and has them scored."""

    FOLDER, WHAT = "evaluations", "evaluation"

    def _report(self, step: int, speaker: Speaker, folder: Path, waves: list[np.ndarray]) -> Sample | Examined | Notice:
        recordings: list[Path] = []
        for number, wave in enumerate(speaker.recordings, 1):
            recordings.append(folder.parent / f"recording-{number}.wav")
            write_wave(recordings[-1], wave, self._rate)
        clips = [
            SpokenClip(
                folder / f"{number + 1}.wav",
                "" if speaker.copies else speaker.texts[number],
                speaker.languages[number],
                recordings[number] if speaker.copies else None,
            )
            for number in range(len(waves))
            if speaker.languages[number] == speaker.languages[0]  # a recogniser listens in one language
        ]
        one_voice = len(set(speaker.speakers)) == 1  # likeness to several voices at once says nothing
        scores = score(clips, recordings if one_voice and not speaker.copies else ())
        if not scores.means:
            return Notice(step, f"⚠️ no evaluation: {'; '.join(scores.missing.values())}")
        (folder / "scores.json").write_text(json.dumps(scores.clips, ensure_ascii=False), encoding="utf-8")
        return Examined(step, str(folder), scores.means)
