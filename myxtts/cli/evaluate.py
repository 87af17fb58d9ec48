"""`myxtts evaluate`."""

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from myxtts.cli.settings import make_folder
from myxtts.cli.synthesize import load_synthesizer, read_scripts, read_texts, require_recordings
from myxtts.config.config import AudioConfig
from myxtts.config.load import load
from myxtts.errors import UsageError
from myxtts.runtime import import_tensorflow
from myxtts.scoring.scores import MEASURES, VOICES, require_measures

CLIPS = 32  # that are copied unless told otherwise
SHORTEST_SECONDS = 0.25  # of a recording that is copied
SOUNDS = (".wav", ".flac", ".ogg", ".mp3")
LABELS = {
    "cer": "CER", "wer": "WER", "similarity": "similarity", "dnsmos": "DNSMOS", "pesq": "PESQ", "stoi": "STOI",
    "mel": "mel distance",
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Speaks or copies, has it scored, prints a table or JSON."""
    if options.clips is not None and (options.clips < 1 or not options.copy):
        raise UsageError(f"--clips is {options.clips}; give a positive number, with --copy")
    with _folder(options.output) as folder:
        found = _copy(options, folder) if options.copy else [_speak(options, folder)]
    if options.json:
        print(json.dumps([_document(one, kept=options.output is not None) for one in found]))
    else:
        print_table(found)
    missing = {name for one in found for name in one.scores.missing}
    return 1 if not any(one.scores.means for one in found) and missing else 0


@contextmanager
def _folder(output: str | None) -> Iterator[Path]:
    if output is None:
        with tempfile.TemporaryDirectory() as home:
            yield Path(home)
    else:
        make_folder(Path(output), "choose another -o")
        yield Path(output)


def _speak(options: argparse.Namespace, folder: Path) -> Any:
    texts = read_texts(options) if options.text_file else None
    like = find_recordings(Path(options.like))[:VOICES] if options.like else []
    for path in like:
        _seconds(path)  # one that cannot be read is refused before the work
    references = require_recordings(options.reference)
    if options.output and any(_lies_in(path, options.output) for path in (*like, *references)):
        raise UsageError(f"-o {options.output} holds recordings that are read; choose another folder")
    require_measures("evaluate")
    synthesizer, how = load_synthesizer(options, compiled=True)
    from myxtts.inference.evaluation import evaluate_speech

    language = options.language or synthesizer.tokenizer.languages[0]
    if texts is None:
        if language != "en":
            raise UsageError(f"there are no sentences of our own in {language}; give --text-file")
        from myxtts.demo.sentences import evaluation_sentences

        texts = {f"sentence {number}": text for number, text in enumerate(evaluation_sentences(), 1)}
    scripts = read_scripts(synthesizer, texts, language)
    voice = synthesizer.voice(references, options.speaker)
    return evaluate_speech(synthesizer, scripts, voice, how, folder, like)


def _copy(options: argparse.Namespace, folder: Path) -> list[Any]:
    for flag, unset in (("text_file", None), ("like", None), ("speaker", None), ("language", None), ("ode_steps", None),
                        ("reference", []), ("speed", 1.0), ("pitch", 1.0)):  # fmt: skip
        if getattr(options, flag) != unset:
            raise UsageError(f"--{flag.replace('_', '-')} goes with --checkpoint, not with --copy")
    recordings = find_recordings(Path(options.copy), options.output)[: options.clips or CLIPS]
    if short := [path for path in recordings if _seconds(path) < SHORTEST_SECONDS]:
        print(f"left out, shorter than {SHORTEST_SECONDS} s: {', '.join(map(str, short))}", file=sys.stderr)
        recordings = [path for path in recordings if path not in short]
    if not recordings:
        raise UsageError(f"{options.copy} holds no recording of {SHORTEST_SECONDS} s or more")
    import_tensorflow()
    from myxtts.checkpoint.packaged import find_vocoder, read_vocoder
    from myxtts.devices import Place, plan_devices
    from myxtts.inference.evaluation import YARDSTICKS, evaluate_copies
    from myxtts.inference.tensorflow_engine import VocoderEngine

    path, told = find_vocoder(options.vocoder, AudioConfig())
    if options.vocoder is None and path is None:
        print(f"vocoder: {told}", file=sys.stderr)
    audio = load(path / "config.yaml").audio if path else AudioConfig()
    place = Place(plan_devices().model_device)
    engines = {name: VocoderEngine(way, audio, place) for name, way in YARDSTICKS.items()}
    if path:
        engines["vocoder"] = VocoderEngine(read_vocoder(path, audio, place.device), audio, place)
    return evaluate_copies(engines, recordings, audio, folder)


def find_recordings(folder: Path, besides: str | None = None) -> list[Path]:
    """The sound files in a folder and below it, but for those in the folder `besides`.

    Raises:
        UsageError: there are none.
    """
    every = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SOUNDS and path.is_file())
    if not every:
        raise UsageError(f"{folder} holds no recordings ({', '.join(SOUNDS)})")
    found = [path for path in every if besides is None or not _lies_in(path, besides)]
    if not found:
        raise UsageError(f"-o {besides} holds all recordings of {folder}; choose another folder")
    return found


def _lies_in(path: Path, folder: str) -> bool:
    return Path(folder).resolve() in path.resolve().parents


def _seconds(path: Path) -> float:
    """How long a recording is.

    Raises:
        UsageError: it cannot be read.
    """
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except soundfile.LibsndfileError as error:
        raise UsageError(f"{path} is not a recording that can be read: {error.error_string}") from None


def _document(found: Any, kept: bool) -> dict[str, Any]:
    """As JSON; a clip names its file where that was kept."""
    scores = dataclasses.asdict(found.scores)
    if not kept:
        scores["clips"] = [{name: value for name, value in row.items() if name != "wave"} for row in scores["clips"]]
    return {"system": found.system, "times_real_time": found.times_real_time, **scores}


def print_table(found: list[Any]) -> None:
    console, table = Console(), Table(title=f"{len(found[0].scores.clips)} clips")
    measures = [name for name in MEASURES if any(name in one.scores.means for one in found)]
    for column in ("system", *(LABELS[name] for name in measures), "× real time"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for one in found:
        values = [_cell(name, one.scores.means.get(name)) for name in measures]
        table.add_row(one.system, *values, f"{one.times_real_time:.0f}" if one.times_real_time else "")
    console.print(table)
    for name, reason in {name: why for one in found for name, why in one.scores.missing.items()}.items():
        console.print(f"⚠️ {LABELS[name]}: not measured; {reason}", highlight=False, markup=False, soft_wrap=True)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if name in ("cer", "wer") else f"{value:.3f}"
