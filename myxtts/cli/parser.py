"""The command line, without TensorFlow: `--help` and wrong usage answer at once.

In: the words of the command line.
Out: a namespace; settings are under their configuration key ("training.lr").
"""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

from myxtts import __version__
from myxtts.config.config import LANGUAGES, MODEL_SIZES, PIPELINES, PRECISIONS, TARGETS, XLA


class _Parser(argparse.ArgumentParser):
    """One line for wrong usage, exit code 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _between(low: float, high: float, kind: type[int] | type[float] = float) -> Callable[[str], float]:
    """Reads a number of that kind and range."""

    def read(word: str) -> float:
        try:
            number = kind(word)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{word!r}: give {what} between {low:g} and {high:g}")
        return number

    return read


def _gpu(word: str) -> int | None:
    if word.lower() == "none":
        return None
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is no GPU id; give a number as in nvidia-smi, or none")
    return int(word)


def _setting(
    parser: argparse._ActionsContainer, flag: str, key: str, kind: Callable, help: str, **more: object
) -> None:
    parser.add_argument(flag, dest=key, type=kind, default=argparse.SUPPRESS, help=help, **more)  # type: ignore[arg-type]


class _Renamed(argparse.Action):
    """Takes the word of a flag that has another name today, and says so."""

    def __init__(self, option_strings: list[str], dest: str, today: str, **more: Any):
        super().__init__(option_strings, dest, **more)
        self._today = today

    def __call__(self, _parser: object, namespace: argparse.Namespace, value: Any, flag: str | None = None) -> None:
        print(f"{flag} is called {self._today} today", file=sys.stderr)
        setattr(namespace, self.dest, value)


def _earlier(parser: argparse._ActionsContainer, flag: str, today: str, key: str, kind: Callable) -> None:
    """An old name that scripts still type."""
    parser.add_argument(
        flag, dest=key, type=kind, default=argparse.SUPPRESS, help=argparse.SUPPRESS, action=_Renamed, today=today
    )


def _switch(parser: argparse._ActionsContainer, flag: str, key: str, value: bool, help: str) -> None:
    """A flag that takes no word and sets a value."""
    parser.add_argument(flag, dest=key, action="store_const", const=value, default=argparse.SUPPRESS, help=help)


def _data_settings(parser: argparse.ArgumentParser) -> None:
    _setting(
        parser, "--language", "data.language", str, "language of clips without a language column", choices=LANGUAGES
    )
    _setting(parser, "--front-end", "data.front_end", str, "what the model reads", choices=("phonemes", "characters"))
    _setting(parser, "--cache-dir", "data.cache_dir", str, "where prepared clips are kept", metavar="DIR")
    _setting(parser, "--num-workers", "data.num_workers", int, "threads that read clips (0: one per core)", metavar="N")
    _setting(parser, "--min-seconds", "data.min_seconds", float, "shortest speech to accept (0.4)", metavar="X")
    _setting(parser, "--max-seconds", "data.max_seconds", float, "longest speech to accept (15)", metavar="X")
    _setting(parser, "--min-clips", "data.min_clips", int, "fewest good clips to go on with", metavar="N")
    parser.add_argument("--config", metavar="FILE", help="YAML file with settings; flags win over it")


def _device_settings(parser: argparse.ArgumentParser) -> None:
    devices = parser.add_argument_group("devices (neither id: one device does both)")
    _setting(devices, "--data-gpu", "data.data_gpu", _gpu, "GPU that prepares the data, as in nvidia-smi", metavar="ID")
    _setting(devices, "--model-gpu", "data.model_gpu", _gpu, "GPU that trains", metavar="ID")
    _setting(
        devices,
        "--virtual-devices",
        "data.virtual_devices",
        int,
        "parts of the CPU that stand in for GPUs",
        metavar="N",
    )
    isolation = "a hard memory limit for each of the two GPUs"
    _switch(devices, "--enable-memory-isolation", "data.memory_isolation", True, isolation)
    for role in ("data", "model"):
        _setting(
            devices,
            f"--{role}-gpu-memory",
            f"data.{role}_gpu_memory",
            int,
            f"that limit for the {role} GPU (default: its memory less 1536)",
            metavar="MB",
        )


def _pipeline_settings(parser: argparse._ActionsContainer) -> None:
    _setting(
        parser,
        "--pipeline",
        "data.pipeline",
        str,
        "split (default with two devices), parallel (both train), buffered (default with one), sequential: no overlap",
        choices=PIPELINES,
    )
    _setting(
        parser,
        "--prefetch",
        "data.prefetch",
        int,
        "most batches ready on the model device (default: 64 / batch size, between 2 and 8)",
        metavar="N",
    )
    _setting(
        parser,
        "--model-start-delay",
        "data.model_start_delay",
        float,
        "shortest wait for the data before the first step with two devices (default 2)",
        metavar="S",
    )
    _setting(
        parser,
        "--stall-timeout",
        "data.stall_timeout",
        float,
        "end a run that gets no data for so long (default 120)",
        metavar="S",
    )


def _batch_settings(parser: argparse._ActionsContainer) -> None:
    _setting(parser, "--batch-size", "data.batch_size", int, "clips in a batch (default 16)", metavar="N")
    words = "batches ready ahead on the host (default 50)"
    _setting(parser, "--buffer-size", "data.pipeline_buffer_size", int, words, metavar="N")


def _model_settings(parser: argparse._ActionsContainer) -> None:
    _setting(parser, "--model-size", "model.size", str, "preset (default tiny)", choices=tuple(MODEL_SIZES))
    words = "whether XLA compiles the whole step (default auto: on GPUs)"
    _setting(parser, "--xla", "training.xla", str, words, choices=XLA, nargs="?", const="on")
    words = "what layers compute in (default float32); float16 needs a GPU"
    _setting(parser, "--mixed-precision", "training.mixed_precision", str, words, choices=PRECISIONS)
    words = "parts of --batch-size clips in one optimizer step (default 1): as a batch so many times larger"
    _setting(parser, "--grad-accum", "training.grad_accum", int, words, metavar="N")


def _add_train(commands: argparse._SubParsersAction) -> None:
    train = commands.add_parser(
        "train",
        help="train the speech model or the vocoder",
        description="Train the speech model, or with --target vocoder the vocoder, on a dataset folder.",
    )
    data = train.add_argument_group("data")
    _setting(data, "--train-data", "data.train_data", str, "dataset folder: metadata.csv and wavs/", metavar="DIR")
    _setting(
        data,
        "--val-data",
        "data.val_data",
        str,
        "dataset folder for validation (default: some clips held out)",
        metavar="DIR",
    )
    _batch_settings(data)
    _setting(
        data,
        "--reference-gain-db",
        "data.reference_gain_db",
        float,
        "references get louder or softer at random by up to this (default 6)",
        metavar="X",
    )
    shapes = data.add_mutually_exclusive_group()
    for flag, value in (("--enable-static-shapes", True), ("--disable-static-shapes", False)):
        words = "pad to a few fixed shapes (default)" if value else "pad to the longest clip of each batch"
        _switch(shapes, flag, "data.static_shapes", value, words)
    _data_settings(train)
    _pipeline_settings(data)
    _device_settings(train)
    model = train.add_argument_group("model and optimisation")
    _model_settings(model)
    _setting(model, "--target", "training.target", str, "what to train (default speech)", choices=TARGETS)
    words = "steps of a vocoder by its spectra alone, before discriminators take part (default 10000)"
    _setting(model, "--discriminators-after", "vocoder.discriminators_after", int, words, metavar="N")
    _earlier(model, "--critics-after", "--discriminators-after", "vocoder.discriminators_after", int)
    _setting(model, "--lr", "training.lr", float, "peak learning rate", metavar="X")
    _setting(model, "--seed", "training.seed", int, "seed of weights and order", metavar="N")
    words = "when memory runs out, halve --batch-size and double --grad-accum"
    _switch(model, "--auto-batch", "training.auto_batch", True, words)
    words = "end after so many steps in a row that are not finite (default 10)"
    _setting(model, "--max-bad-steps", "training.max_bad_steps", int, words, metavar="N")
    words = "start a new run with the weights of a checkpoint; symbols and languages may grow"
    _setting(model, "--init-from", "training.init_from", str, words, metavar="DIR")
    words = "weights that do not learn, as 'text,speaker/*' (a wrong name is answered with the right ones)"
    _setting(model, "--freeze", "training.freeze", str, words, metavar="PATTERNS")
    limits = train.add_argument_group("limits (the first one reached ends the run)")
    _setting(limits, "--epochs", "training.epochs", int, "passes over the data", metavar="N")
    _setting(limits, "--max-steps", "training.max_steps", int, "optimizer steps", metavar="N")
    _setting(
        limits,
        "--max-minutes",
        "training.max_minutes",
        float,
        "wall time; the learning rate falls towards it",
        metavar="X",
    )
    words = "validations without a better loss (default: no such limit)"
    _setting(limits, "--early-stop", "training.early_stop", int, words, metavar="N")
    run = train.add_argument_group("run")
    _setting(
        run, "--checkpoint-dir", "training.checkpoint_dir", str, "where to save (default checkpoints)", metavar="DIR"
    )
    run.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="DIR",
        help="go on from the newest checkpoint of --checkpoint-dir, or from the named one",
    )
    run.add_argument(
        "--reset-optimizer", action="store_true", help="with --resume: forget what the optimizer remembers"
    )
    run.add_argument(
        "--auto", action="store_true", help="measure a few steps first and choose workers, buffers and pipeline by them"
    )
    words = "steps between {} (default {})"
    for name, what, default in (
        ("log", "log lines", 25),
        ("val", "validations", 500),
        ("save", "checkpoints", 500),
        ("sample", "sample audio", "1000, 0: none"),
        ("eval", "scores of held-out sentences, as `evaluate` gives them", "0: none"),
    ):
        _setting(run, f"--{name}-every", f"training.{name}_every", int, words.format(what, default), metavar="N")
    _setting(run, "--keep", "training.keep", int, "checkpoints to keep besides the best (default 3)", metavar="N")


def _add_prepare(commands: argparse._SubParsersAction) -> None:
    prepare = commands.add_parser(
        "prepare",
        help="check a dataset and build its cache",
        description="Check every clip of a dataset folder, build the cache, report.",
    )
    prepare.add_argument("data.train_data", metavar="DATASET", help="folder with metadata.csv and wavs/")
    _data_settings(prepare)
    prepare.add_argument(
        "--show", metavar="ID", help="what became of one clip: its checks, text, phonemes, tokens and a picture"
    )
    prepare.add_argument("--picture", metavar="FILE", help="where --show writes its PNG (default: in the cache folder)")
    prepare.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def _add_validate(commands: argparse._SubParsersAction) -> None:
    validate = commands.add_parser(
        "validate",
        help="check the machine for training on two devices",
        description="Check this machine for training on two devices, step by step (default: GPUs 0 and 1).",
    )
    _device_settings(validate)
    validate.add_argument("--config", metavar="FILE", help="YAML file with settings; flags win over it")
    validate.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def _add_profile(commands: argparse._SubParsersAction) -> None:
    profile = commands.add_parser(
        "profile",
        help="measure the pipeline, name the bottleneck, recommend",
        description="Measure the real feed and the real training step, name what limits them, say what to type.",
    )
    words = "dataset folder to measure with (default: clips of noise)"
    _setting(profile, "--train-data", "data.train_data", str, words, metavar="DIR")
    profile.add_argument("--num-steps", type=int, metavar="N", help="steps to measure (default 50)")
    _batch_settings(profile)
    _data_settings(profile)
    _pipeline_settings(profile)
    _device_settings(profile)
    _model_settings(profile)
    profile.add_argument(
        "--step-parts", action="store_true", help="also time forward, backward and update by themselves"
    )
    profile.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    profile.add_argument("--trace", metavar="FILE", help="write a timeline for Perfetto or chrome://tracing")
    profile.add_argument("--html", metavar="FILE", help="write a page with the timeline, the charts and the advice")
    profile.add_argument("--run", metavar="RUN", help="with --html: the page of a training run instead, from its log")


def _add_runs(commands: argparse._SubParsersAction) -> None:
    for name, words in (
        ("compare", "compare runs: step time, its variation, GPU utilisation, memory, total time"),
        ("scaling", "how throughput and memory scale with the batch size"),
    ):
        command = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
        command.add_argument(
            "runs", nargs="+", metavar="RUN", help="run folder, its metrics.jsonl, or what train printed"
        )
        command.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        command.add_argument("--plot", metavar="FILE.png", help="write the curves as a picture")


def _add_synthesize(commands: argparse._SubParsersAction) -> None:
    speak = commands.add_parser(
        "synthesize",
        help="speak a text",
        description="Speak a text with a trained checkpoint. Without --text and --text-file it reads standard input.",
    )
    speak.add_argument("--checkpoint", required=True, metavar="DIR", help="run folder or one checkpoint of it")
    words = speak.add_mutually_exclusive_group()
    words.add_argument("--text", help="what to say")
    words.add_argument("--text-file", metavar="FILE", help="one sentence a line; -o is then a folder")
    _voice_settings(speak)
    speak.add_argument("-o", "--output", required=True, metavar="PATH", help="WAV file, or a folder with --text-file")


def _add_evaluate(commands: argparse._SubParsersAction) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="score a checkpoint",
        description=(
            "Score a speech model by sentences it speaks (--checkpoint), or a vocoder by recordings it copies (--copy)."
        ),
    )
    what = evaluate.add_mutually_exclusive_group(required=True)
    what.add_argument("--checkpoint", metavar="DIR", help="run folder of a speech model, or one checkpoint of it")
    what.add_argument("--copy", metavar="DIR", help="folder of recordings for the vocoder to copy")
    evaluate.add_argument("--text-file", metavar="FILE", help="one sentence a line (default: 50 English ones)")
    evaluate.add_argument("--like", metavar="DIR", help="recordings of the voice that the speech should be like")
    evaluate.add_argument("--clips", type=int, metavar="N", help="most recordings to copy (default 32)")
    evaluate.add_argument(
        "-o", "--output", metavar="DIR", help="folder that keeps what was spoken (default: none is kept)"
    )
    evaluate.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    _voice_settings(evaluate)


def _voice_settings(speak: argparse.ArgumentParser) -> None:
    voice = speak.add_mutually_exclusive_group()
    voice.add_argument(
        "--reference",
        nargs="+",
        default=[],
        metavar="WAV",
        help="recordings whose voice to use (the first 30 s of each)",
    )
    voice.add_argument("--speaker", help="a speaker of the training data instead of a reference")
    speak.add_argument("--language", choices=LANGUAGES, help="language of the text (default: the checkpoint's first)")
    for flag, reads, help in (
        ("--speed", _between(0.25, 2), "1.2 speaks a fifth faster (default 1)"),
        ("--pitch", _between(0.5, 1.5), "1.2 speaks a fifth higher (default 1)"),
    ):
        speak.add_argument(flag, type=reads, default=1.0, metavar="X", help=help)
    words = "steps in which a refiner samples the residual; 0: none (default 4)"
    speak.add_argument("--ode-steps", type=_between(0, 100, int), metavar="N", help=words)
    _earlier(speak, "--steps", "--ode-steps", "ode_steps", _between(0, 100, int))
    speak.add_argument(
        "--vocoder",
        metavar="DIR",
        help="run folder of `train --target vocoder`, or griffin-lim (default: the vocoder in the package)",
    )


def _add_say(commands: argparse._SubParsersAction) -> None:
    say = commands.add_parser(
        "say",
        help="speak at once with the voice in the package",
        description="Speak a text with the voice that ships in the package. Without a text it reads standard input.",
    )
    say.add_argument("text", nargs="?", help="what to say")
    say.add_argument("-o", "--output", metavar="FILE", help="WAV file to write (default: play it, else say.wav)")
    _voice_settings(say)


def _add_demo(commands: argparse._SubParsersAction) -> None:
    demo = commands.add_parser(
        "demo",
        help="make a corpus, train, speak, report",
        description="The whole story on any machine: make a small corpus, train a tiny model, speak, write a page.",
    )
    time_help = "training time, at most 120 (default: until the voice is clear, at most 15)"
    demo.add_argument("--minutes", type=float, metavar="X", help=time_help)
    demo.add_argument("--say", action="append", default=[], metavar="TEXT", help="also speak this; may be repeated")
    demo.add_argument("--sentences", type=int, default=1200, metavar="N", help="size of the corpus (default 1200)")
    demo.add_argument(
        "--voice",
        choices=("auto", "hibari", "flite", "espeak"),
        default="auto",
        help="who reads the corpus (default: the best one installed)",
    )
    demo.add_argument("--folder", default="demo", metavar="DIR", help="where everything is written (default demo)")
    demo.add_argument("--seed", type=int, default=0, metavar="N", help="seed of sentences and training")


def make_parser() -> argparse.ArgumentParser:
    """The parser of every subcommand."""
    parser = _Parser(prog="myxtts", description="Train a voice on your own recordings and speak with it.")
    parser.add_argument("--version", action="version", version=f"myxtts {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    _add_train(commands)
    _add_prepare(commands)
    _add_validate(commands)
    _add_profile(commands)
    _add_runs(commands)
    _add_synthesize(commands)
    _add_say(commands)
    _add_evaluate(commands)
    _add_demo(commands)
    return parser


def flag_words(command: str, key: str, value: object) -> list[str]:
    """What to type for a setting; empty where the command has no flag for that value."""
    commands = next(action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for action in commands.choices[command]._actions:
        if action.dest != key:
            continue
        if action.nargs == 0:
            if action.const == value:
                return [action.option_strings[0]]
            continue
        word = "none" if value is None else str(value)
        return [f"{action.option_strings[0]}={word}"] if word.startswith("-") else [action.option_strings[0], word]
    return []
