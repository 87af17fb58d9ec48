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
from myxtts.cli.synthesize import load_synthesizer, read_texts, require_recordings
from myxtts.config.config import AudioConfig
from myxtts.config.load import load
from myxtts.devices import import_tensorflow
from myxtts.errors import UsageError
from myxtts.scoring.scores import MEASURES, require_measures

CLIPS = 32  # that are copied unless told otherwise
SOUNDS = (".wav", ".flac", ".ogg", ".mp3")
LABELS = {
    "cer": "CER", "wer": "WER", "similarity": "likeness", "dnsmos": "DNSMOS", "pesq": "PESQ", "stoi": "STOI",
    "mel": "mel distance",
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Speaks or copies, has it scored, prints a table or JSON."""
    if options.clips is not None and (options.clips < 1 or not options.copy):
        raise UsageError(f"--clips is {options.clips}; give a positive number, with --copy")
    with _folder(options.output) as folder:
        found = _copy(options, folder) if options.copy else [_speak(options, folder)]
    if options.json:
        print(json.dumps([_document(one) for one in found]))
    else:
        _print_table(found)
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
    like = find_recordings(Path(options.like)) if options.like else []
    references = require_recordings(options.reference)
    require_measures("evaluate")
    synthesizer, manner = load_synthesizer(options)
    from myxtts.inference.evaluation import evaluate_speech

    language = options.language or synthesizer.tokenizer.languages[0]
    if texts is None:
        if language != "en":
            raise UsageError(f"there are no sentences of our own in {language}; give --text-file")
        from myxtts.demo.sentences import evaluation_sentences

        texts = evaluation_sentences()
    synthesizer.require_speakable(texts, language)
    voice = synthesizer.voice(references, options.speaker)
    return evaluate_speech(synthesizer, texts, voice, language, manner, folder, like)


def _copy(options: argparse.Namespace, folder: Path) -> list[Any]:
    for flag, unset in (("text_file", None), ("like", None), ("speaker", None), ("language", None), ("steps", None),
                        ("reference", []), ("speed", 1.0), ("pitch", 1.0)):  # fmt: skip
        if getattr(options, flag) != unset:
            raise UsageError(f"--{flag.replace('_', '-')} goes with --checkpoint, not with --copy")
    recordings = find_recordings(Path(options.copy), options.output)[: options.clips or CLIPS]
    import_tensorflow()
    from myxtts.devices import plan_devices
    from myxtts.inference.evaluation import YARDSTICKS, evaluate_copies
    from myxtts.models.voicebox import WaveMaker
    from myxtts.training.packaged import find_vocoder, read_vocoder

    path, told = find_vocoder(options.vocoder, AudioConfig())
    if options.vocoder is None and path is None:
        print(f"vocoder: {told}", file=sys.stderr)
    audio = load(path / "config.yaml").audio if path else AudioConfig()
    device = plan_devices().model_device
    makers = {name: WaveMaker(way, audio, device) for name, way in YARDSTICKS.items()}
    if path:
        makers["vocoder"] = WaveMaker(read_vocoder(path, audio, device), audio, device)
    return evaluate_copies(makers, recordings, audio, folder)


def find_recordings(folder: Path, besides: str | None = None) -> list[Path]:
    """The sound files in a folder and below it, but for those in the folder `besides`.

    Raises:
        UsageError: there are none.
    """
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SOUNDS)
    found = [path for path in found if besides is None or Path(besides).resolve() not in path.resolve().parents]
    if not found:
        raise UsageError(f"{folder} holds no recordings ({', '.join(SOUNDS)})")
    return found


def _document(found: Any) -> dict[str, Any]:
    return {"system": found.system, "times_real_time": found.times_real_time, **dataclasses.asdict(found.scores)}


def _print_table(found: list[Any]) -> None:
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
