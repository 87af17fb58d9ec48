"""A small corpus made on this machine, in the layout that users' own recordings have.

In: a folder, a voice, how many sentences.
Out: `metadata.csv` and `wavs/`, the sentences that were kept out of it, and a note of how it was made.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from myxtts.audio.wav import write_wave
from myxtts.demo.sentences import make_sentences
from myxtts.demo.voices import Reader

HELD_OUT = 30


@dataclass(frozen=True)
class Corpus:
    """A made corpus: `unseen` sentences are read by the same voice but never trained on."""

    folder: Path
    voice: str
    unseen: list[tuple[str, Path]]  # sentence, recording by the target voice


Progress = Callable[[str, int, int], None]


def make_multispeaker_corpus(
    folder: Path,
    parts: Mapping[str, Sequence[str]],
    seed: int,
    progress: Progress = lambda what, done, total: None,
) -> None:
    """An English corpus of several voices, each with the sentences it reads; what was read the same way is kept."""
    _begin(folder, {"parts": {voice: list(sentences) for voice, sentences in parts.items()}, "seed": seed})
    tasks = [
        Task(voice, folder / "wavs" / f"{_file_name(voice)}-{number:04d}.wav", sentence)
        for voice, sentences in parts.items()
        for number, sentence in enumerate(sentences, 1)
    ]
    _read_all(tasks, seed, progress)
    rows = [f"{task.target.stem}|{task.voice}|en|{task.sentence}" for task in tasks]
    (folder / "metadata.csv").write_text("\n".join(["id|speaker|language|text", *rows, ""]), encoding="utf-8")


def make_corpus(
    folder: Path, voice: str, count: int, seed: int, progress: Progress = lambda what, done, total: None
) -> Corpus:
    """A corpus of one voice; what was read the same way is kept."""
    sentences = make_sentences(count + HELD_OUT, seed)
    _begin(folder, {"voice": voice, "seed": seed, "sentences": sentences})
    targets = [folder / "wavs" / f"demo-{number:04d}.wav" for number in range(1, count + 1)]
    targets += [folder / "unseen" / f"{number:04d}.wav" for number in range(1, HELD_OUT + 1)]
    tasks = [Task(voice, target, sentence) for target, sentence in zip(targets, sentences, strict=True)]
    _read_all(tasks, seed, progress)
    lines = [f"{task.target.stem}|{task.sentence}\n" for task in tasks[:count]]
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    return Corpus(folder, voice, [(task.sentence, task.target) for task in tasks[count:]])


@dataclass(frozen=True)
class Task:
    """A sentence to be read into a file."""

    voice: str
    target: Path
    sentence: str


def _begin(folder: Path, recipe: dict[str, object]) -> None:
    """Clears a folder away that was made in another way, and notes the way it is made now."""
    note, words = folder / "made.json", json.dumps(recipe)
    if note.is_file() and note.read_text(encoding="utf-8") == words:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    note.write_text(words, encoding="utf-8")


def _read_all(tasks: Sequence[Task], seed: int, progress: Progress) -> None:
    """Reads what is not there yet, each sentence with a seed of its own."""
    readers = {voice: Reader(voice) for voice in {task.voice for task in tasks}}
    for folder in {task.target.parent for task in tasks}:
        folder.mkdir(exist_ok=True)

    def read(numbered: tuple[int, Task]) -> None:
        number, task = numbered
        if not task.target.is_file():
            wave, rate = readers[task.voice].read(task.sentence, seed + number)
            write_wave(task.target, wave, rate)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(read, enumerate(tasks)), 1):
            progress("reading sentences", done, len(tasks))


def _file_name(voice: str) -> str:
    return re.sub("[^a-z0-9]+", "-", voice.lower())
