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


def make_choir(
    folder: Path,
    parts: Mapping[str, Sequence[str]],
    seed: int,
    language: str = "en",
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> None:
    """A corpus of several voices, each with the sentences it reads; what was already read is kept."""
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    readers = {voice: Reader(voice) for voice in parts}
    tasks = [
        (voice, folder / "wavs" / f"{_file_name(voice)}-{number:04d}.wav", sentence)
        for voice, sentences in parts.items()
        for number, sentence in enumerate(sentences, 1)
    ]

    def read(task: tuple[int, tuple[str, Path, str]]) -> None:
        number, (voice, target, sentence) = task
        if not target.is_file():
            wave, rate = readers[voice].read(sentence, seed + number)
            write_wave(target, wave, rate)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(read, enumerate(tasks)), 1):
            progress("reading sentences", done, len(tasks))
    rows = [f"{target.stem}|{voice}|{language}|{sentence}" for voice, target, sentence in tasks]
    (folder / "metadata.csv").write_text("\n".join(["id|speaker|language|text", *rows, ""]), encoding="utf-8")


def _file_name(voice: str) -> str:
    return re.sub("[^a-z0-9]+", "-", voice.lower())


def make_corpus(
    folder: Path,
    voice: str,
    count: int,
    seed: int,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Corpus:
    """Makes the corpus, or finds it made the same way before."""
    sentences = make_sentences(count + HELD_OUT, seed)
    unseen = [(text, folder / "unseen" / f"{number:04d}.wav") for number, text in enumerate(sentences[count:], 1)]
    recipe = json.dumps({"voice": voice, "seed": seed, "sentences": sentences})
    note = folder / "made.json"
    if note.is_file() and note.read_text(encoding="utf-8") == recipe:
        return Corpus(folder, voice, unseen)
    shutil.rmtree(folder, ignore_errors=True)
    targets = [folder / "wavs" / f"demo-{number:04d}.wav" for number in range(1, count + 1)]
    targets += [path for _, path in unseen]
    for target in (targets[0], targets[-1]):
        target.parent.mkdir(parents=True, exist_ok=True)
    reader = Reader(voice)

    def read(task: tuple[int, str, Path]) -> None:
        number, sentence, target = task
        wave, rate = reader.read(sentence, seed + number)
        write_wave(target, wave, rate)

    tasks = [(number, *pair) for number, pair in enumerate(zip(sentences, targets, strict=True))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(read, tasks), 1):
            progress("reading sentences", done, len(tasks))
    lines = [f"{target.stem}|{sentence}\n" for sentence, target in zip(sentences[:count], targets, strict=False)]
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    note.write_text(recipe, encoding="utf-8")
    return Corpus(folder, voice, unseen)
