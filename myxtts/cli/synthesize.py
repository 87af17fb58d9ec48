"""`myxtts synthesize`."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.settings import make_folder
from myxtts.errors import UsageError
from myxtts.voice import GRIFFIN_LIM

if TYPE_CHECKING:
    from myxtts.inference.engine import SynthesisOptions
    from myxtts.inference.synthesizer import Script, Synthesizer


def run(options: argparse.Namespace) -> int:
    """Checks everything that can be checked without TensorFlow, then speaks."""
    output = Path(options.output)
    texts = read_texts(options)
    references = require_recordings(options.reference)
    if options.text_file:
        make_folder(output, "with --text-file, -o is a folder")
        targets = [output / f"{number:04d}.wav" for number in range(1, len(texts) + 1)]
    else:
        check_target(output)
        targets = [output]
    keep_recordings(targets, references)
    synthesizer, how = load_synthesizer(options)
    from myxtts.audio.wav import write_wave

    scripts = read_scripts(synthesizer, texts, options.language)
    voice = synthesizer.voice(references, options.speaker)
    for script, target in zip(scripts, targets, strict=True):
        write_wave(target, synthesizer.speak(script, voice, how), synthesizer.sample_rate)
        print(target)
    return 0


def load_synthesizer(options: argparse.Namespace, compiled: bool = False) -> "tuple[Synthesizer, SynthesisOptions]":
    """The speech model with its vocoder, compiled from the first sentence on or later, and how it is to speak."""
    from myxtts.checkpoint.folder import find_checkpoint

    checkpoint = find_checkpoint(Path(options.checkpoint))
    from myxtts.runtime import import_tensorflow

    import_tensorflow()
    from myxtts.inference.engine import SynthesisOptions
    from myxtts.inference.tensorflow_engine import EAGER_SENTENCES, open_checkpoint

    synthesizer = open_checkpoint(checkpoint, options.vocoder, eager_calls=0 if compiled else EAGER_SENTENCES)
    if options.ode_steps is not None and not synthesizer.config.model.refiner_blocks:
        raise UsageError(f"{checkpoint} has no refiner (model.refiner_blocks is 0); leave --ode-steps out")
    if options.vocoder is None and synthesizer.vocoder.startswith(GRIFFIN_LIM):
        print(f"vocoder: {synthesizer.vocoder}", file=sys.stderr)
    ode_steps = SynthesisOptions.ode_steps if options.ode_steps is None else options.ode_steps
    return synthesizer, SynthesisOptions(options.speed, options.pitch, ode_steps)


def read_scripts(synthesizer: "Synthesizer", texts: dict[str, str], language: str | None) -> "list[Script]":
    """The texts, named by where they stand, ready to be spoken; tells which sounds others will stand for.

    Raises:
        UsageError: one of them cannot be spoken.
    """
    scripts = []
    for where, text in texts.items():
        try:
            scripts.append(synthesizer.read(text, language))
        except UsageError as error:
            raise UsageError(f"{where}: {error}" if len(texts) > 1 else str(error)) from None
    replaced = {sound: near for script in scripts for sound, near in script.replaced.items()}
    if told := ", ".join(f"{sound} as {near}" for sound, near in sorted(replaced.items())):
        print(f"⚠️ sounds that this voice never learned are spoken like others: {told}", file=sys.stderr)
    return scripts


def require_recordings(names: list[str]) -> list[Path]:
    """The references as paths.

    Raises:
        UsageError: one is no file.
    """
    for name in names:
        if not Path(name).is_file():
            text = "; a text stands before --reference, or after --text" if " " in name else ""
            raise UsageError(f"no such recording: {name}{text}")
    return [Path(name) for name in names]


def keep_recordings(targets: Iterable[Path], recordings: Sequence[Path]) -> None:
    """Refuses to write over a recording that is read.

    Raises:
        UsageError: a target is one of them.
    """
    read = {path.resolve() for path in recordings}
    for target in targets:
        if target.resolve() in read:
            raise UsageError(f"{target} is itself a recording that is read; choose another -o")


def read_texts(options: argparse.Namespace) -> dict[str, str]:
    """The texts to speak by where they stand, none of them empty."""
    if options.text_file:
        try:
            lines = Path(options.text_file).read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"cannot read {options.text_file}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
            ) from None
        numbered = enumerate(lines, 1)
        texts = {f"line {number} of {options.text_file}": line for number, line in numbered if line.strip()}
    elif options.text is not None:
        texts = {"the text": options.text}
    elif sys.stdin is None:
        raise UsageError("there is no text: standard input is closed and neither --text nor --text-file is given")
    else:
        try:
            texts = {"the text": sys.stdin.read()}
        except UnicodeDecodeError:
            raise UsageError("the text on standard input is not UTF-8") from None
    if not texts:
        raise UsageError(f"the text is empty: {options.text_file} has no line to speak")
    for where, text in texts.items():
        if not any(c.isalnum() for c in text):
            raise UsageError(f"{where} holds no word to speak; write at least one")
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise UsageError(f"{where} is not UTF-8")
    return texts


def check_target(target: Path) -> None:
    """Refuses before the work what would fail after it."""
    folder = target.parent
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a WAV file")
    if target.exists() and not target.is_file():
        raise UsageError(f"cannot write {target}: it is not an ordinary file")
    if target.suffix.lower() != ".wav":
        raise UsageError(f"{target} is no name for a WAV file; end it with .wav")
    if not folder.is_dir():
        raise UsageError(f"cannot write {target}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {target}: no permission in {folder}")
