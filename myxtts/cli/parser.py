"""The command line, without TensorFlow: `--help` and wrong usage answer at once.

In: the words of the command line.
Out: a namespace; settings are under their configuration key ("training.lr").
"""

import argparse

from myxtts import __version__
from myxtts.cli.arguments import (
    BATCHES,
    CADENCE,
    CLIPS,
    DATA_FOLDER,
    DEVICES,
    LIMITS,
    OPTIMISATION,
    PIPELINE,
    REFERENCES,
    SHAPES,
    STEP,
    VAL_FOLDER,
    add,
    add_config,
    add_earlier,
    add_json,
    between,
)  # fmt: skip
from myxtts.config.languages import LANGUAGES


class _Parser(argparse.ArgumentParser):
    """One line for wrong usage, exit code 2."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _add_train(commands: argparse._SubParsersAction) -> None:
    train = commands.add_parser(
        "train",
        help="train the speech model or the vocoder",
        description="Train the speech model, or with --target vocoder the vocoder, on a dataset folder.",
    )
    data = train.add_argument_group("data")
    add(data, [DATA_FOLDER, VAL_FOLDER, *BATCHES, REFERENCES])
    add(data.add_mutually_exclusive_group(), SHAPES)
    add(data, [*CLIPS, *PIPELINE])
    add_config(train)
    _add_devices(train)
    model = train.add_argument_group("model and optimisation")
    add(model, [*STEP, *OPTIMISATION])
    add_earlier(model, "--critics-after", "--discriminators-after", "vocoder.discriminators_after", int)
    add(train.add_argument_group("limits (the first one reached ends the run)"), LIMITS)
    run = train.add_argument_group("run")
    add(run, CADENCE)
    run.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="DIR",
        help="resume from the newest checkpoint of --checkpoint-dir, or from the named one",
    )
    run.add_argument(
        "--reset-optimizer", action="store_true", help="with --resume: forget what the optimizer remembers"
    )
    _add_cluster(train).add_argument(
        "--restarts",
        type=between(0, 1e6, int),
        default=0,
        metavar="N",
        help="when a process is lost, start over so often from the last checkpoint, with those that are there",
    )
    run.add_argument(
        "--auto", action="store_true", help="measure a few steps first and choose workers, buffers and pipeline by them"
    )


def _add_cluster(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    cluster = parser.add_argument_group("several processes, on one machine or many")
    cluster.add_argument(
        "--cluster",
        metavar="ADDRESSES",
        help="all that train together: host1:2222,host2:2222, a file with an address a line, TF_CONFIG or slurm",
    )
    cluster.add_argument("--rank", type=between(0, 1e6, int), metavar="N", help="which of them this is, from 0 on")
    cluster.add_argument(
        "--cluster-timeout",
        type=between(1, 1e6),
        metavar="S",
        help="how long to wait for all to come (default: 120, and 20 for an address that no way leads to)",
    )
    return cluster


def _add_devices(parser: argparse.ArgumentParser) -> None:
    add(parser.add_argument_group("devices (neither id: one device does both)"), DEVICES)


def _add_prepare(commands: argparse._SubParsersAction) -> None:
    prepare = commands.add_parser(
        "prepare",
        help="check a dataset and build its cache",
        description="Check every clip of a dataset folder, build the cache, report.",
    )
    prepare.add_argument("data.train_data", metavar="DATASET", help="folder with metadata.csv and wavs/")
    add(prepare, CLIPS)
    add_config(prepare)
    prepare.add_argument(
        "--show", metavar="ID", help="what became of one clip: its checks, text, phonemes, tokens and a picture"
    )
    prepare.add_argument(
        "--shard", metavar="K/N", help="check only this part of the clips, as one of N jobs; without it all are joined"
    )
    prepare.add_argument("--picture", metavar="FILE", help="where --show writes its PNG (default: in the cache folder)")
    add_json(prepare)


def _add_validate(commands: argparse._SubParsersAction) -> None:
    validate = commands.add_parser(
        "validate",
        help="check the machine for training on two devices",
        description="Check this machine for training on two devices, step by step (default: GPUs 0 and 1).",
    )
    _add_devices(validate)
    add_config(validate)
    add_json(validate)


def _add_profile(commands: argparse._SubParsersAction) -> None:
    profile = commands.add_parser(
        "profile",
        help="measure the pipeline, name the bottleneck, recommend",
        description="Measure the real feed and the real training step, name what limits them, say what to type.",
    )
    add(profile, [DATA_FOLDER._replace(help="dataset folder to measure with (default: clips of noise)")])
    profile.add_argument("--num-steps", type=int, metavar="N", help="steps to measure (default 50)")
    add(profile, [*BATCHES, *CLIPS, *PIPELINE, *STEP])
    add_config(profile)
    _add_devices(profile)
    _add_cluster(profile)
    profile.add_argument(
        "--step-parts", action="store_true", help="also time forward, backward and update by themselves"
    )
    add_json(profile)
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
        add_json(command)
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
    add_json(evaluate)
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
        ("--speed", between(0.25, 2), "1.2 speaks a fifth faster (default 1)"),
        ("--pitch", between(0.5, 1.5), "1.2 speaks a fifth higher (default 1)"),
    ):
        speak.add_argument(flag, type=reads, default=1.0, metavar="X", help=help)
    words = "steps in which a refiner samples the residual; 0: none (default 4)"
    speak.add_argument("--ode-steps", type=between(0, 100, int), metavar="N", help=words)
    add_earlier(speak, "--steps", "--ode-steps", "ode_steps", between(0, 100, int))
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
