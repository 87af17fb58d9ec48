"""The flags that are settings, and what flags are made of.

In: a parser.
Out: the same with flags whose values land under their configuration key ("training.lr").
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from myxtts.config.config import MODEL_SIZES, PIPELINES, PRECISIONS, XLA, XTTSConfig
from myxtts.config.languages import LANGUAGES
from myxtts.config.load import flatten
from myxtts.config.targets import TARGETS

DEFAULTS = flatten(XTTSConfig())


def between(low: float, high: float, kind: type[int] | type[float] = float) -> Callable[[str], float]:
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


def gpu(word: str) -> int | None:
    """Reads the id of a card, or none."""
    if word.lower() == "none":
        return None
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is no GPU id; give a number as in nvidia-smi, or none")
    return int(word)


def gpus(word: str) -> int | tuple[int, ...] | None:
    """Reads the ids of one card or several, or none."""
    found = tuple(gpu(part.strip()) for part in word.split(","))
    if len(found) == 1:
        return found[0]
    if None in found:
        raise argparse.ArgumentTypeError(f"{word}: give ids as in nvidia-smi, such as 1,2,3, or none")
    return tuple(number for number in found if number is not None)


class Renamed(argparse.Action):
    """Takes the word of a flag that has another name today, and says so."""

    def __init__(self, option_strings: list[str], dest: str, today: str, **more: Any):
        super().__init__(option_strings, dest, **more)
        self._today = today

    def __call__(self, _parser: object, namespace: argparse.Namespace, value: Any, flag: str | None = None) -> None:
        print(f"{flag} is called {self._today} today", file=sys.stderr)
        setattr(namespace, self.dest, value)


def add_earlier(parser: argparse._ActionsContainer, flag: str, today: str, key: str, kind: Callable) -> None:
    """An old name that scripts still type."""
    parser.add_argument(
        flag, dest=key, type=kind, default=argparse.SUPPRESS, help=argparse.SUPPRESS, action=Renamed, today=today
    )


class Flag(NamedTuple):
    """A flag that is a setting. In its help, `{default}` is what the configuration says."""

    name: str
    key: str
    kind: Callable[[str], Any]
    help: str
    metavar: str | None = None
    choices: Sequence[str] | None = None
    bare: str | None = None  # the value where the flag stands without a word

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        more: dict[str, Any] = {} if self.bare is None else {"nargs": "?", "const": self.bare}
        parser.add_argument(
            self.name,
            dest=self.key,
            type=self.kind,
            default=argparse.SUPPRESS,
            help=self.help.format(default=_shown(DEFAULTS[self.key])),
            metavar=self.metavar,
            choices=self.choices,
            **more,
        )


class Switch(NamedTuple):
    """A flag that takes no word and sets a value."""

    name: str
    key: str
    value: bool
    help: str

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        words = self.help + (" (default)" if DEFAULTS[self.key] == self.value else "")
        parser.add_argument(
            self.name, dest=self.key, action="store_const", const=self.value, default=argparse.SUPPRESS, help=words
        )


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def add(parser: argparse._ActionsContainer, flags: Sequence[Flag | Switch]) -> None:
    """Adds settings to a parser or to a group of it."""
    for flag in flags:
        flag.add_to(parser)


def add_config(parser: argparse.ArgumentParser) -> None:
    """The YAML file that flags win over."""
    parser.add_argument("--config", metavar="FILE", help="YAML file with settings; flags win over it")


def add_json(parser: argparse.ArgumentParser) -> None:
    """A document for programs."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


CLIPS = (
    Flag(
        "--language",
        "data.language",
        str,
        "language of clips without a language column (default {default})",
        choices=LANGUAGES,
    ),
    Flag(
        "--front-end",
        "data.front_end",
        str,
        "what the model reads (default {default})",
        choices=("phonemes", "characters"),
    ),
    Flag("--cache-dir", "data.cache_dir", str, "where prepared clips are kept", "DIR"),
    Flag(
        "--num-workers",
        "data.num_workers",
        int,
        "threads that read clips (0: one a core to decode, one to form batches)",
        "N",
    ),
    Flag("--min-seconds", "data.min_seconds", float, "shortest speech to accept (default {default})", "X"),
    Flag("--max-seconds", "data.max_seconds", float, "longest speech to accept (default {default})", "X"),
    Flag("--min-clips", "data.min_clips", int, "fewest good clips to go on with (default {default})", "N"),
)
DATA_FOLDER = Flag("--train-data", "data.train_data", str, "dataset folder: metadata.csv and wavs/", "DIR")
VAL_FOLDER = Flag(
    "--val-data", "data.val_data", str, "dataset folder for validation (default: some clips held out)", "DIR"
)
BATCHES = (
    Flag("--batch-size", "data.batch_size", int, "clips in a batch (default {default})", "N"),
    Flag("--buffer-size", "data.pipeline_buffer_size", int, "batches ready ahead on the host (default {default})", "N"),
)
REFERENCES = Flag(
    "--reference-gain-db",
    "data.reference_gain_db",
    float,
    "references get louder or softer at random by up to this (default {default})",
    "X",
)
SHAPES = (
    Switch("--enable-static-shapes", "data.static_shapes", True, "pad to a few fixed shapes"),
    Switch("--disable-static-shapes", "data.static_shapes", False, "pad to the longest clip of each batch"),
)
DEVICES: tuple[Flag | Switch, ...] = (
    Flag("--data-gpu", "data.data_gpu", gpu, "GPU that prepares the data, as in nvidia-smi", "ID"),
    Flag("--model-gpu", "data.model_gpu", gpus, "GPU that trains, or several, such as 1,2,3", "ID"),
    Flag("--virtual-devices", "data.virtual_devices", int, "parts of the CPU that stand in for GPUs", "N"),
    Switch("--enable-memory-isolation", "data.memory_isolation", True, "a hard memory limit for each of the two GPUs"),
    *(
        Flag(
            f"--{role}-gpu-memory",
            f"data.{role}_gpu_memory",
            int,
            f"that limit for the {role} GPU (default: its memory less 1536)",
            "MB",
        )
        for role in ("data", "model")
    ),
)
PIPELINE = (
    Flag(
        "--pipeline",
        "data.pipeline",
        str,
        "split (default with two devices), parallel (both train), buffered (default with one), sequential: no overlap",
        choices=PIPELINES,
    ),
    Flag(
        "--prefetch",
        "data.prefetch",
        int,
        "most batches ready on the model device (default: 64 / batch size, between 2 and 8)",
        "N",
    ),
    Flag(
        "--model-start-delay",
        "data.model_start_delay",
        float,
        "shortest wait for the data before the first step with two devices (default {default})",
        "S",
    ),
    Flag(
        "--stall-timeout",
        "data.stall_timeout",
        float,
        "end a run that gets no data for so long (default {default})",
        "S",
    ),
)
STEP = (
    Flag("--model-size", "model.size", str, "preset (default {default})", choices=tuple(MODEL_SIZES)),
    Flag(
        "--xla",
        "training.xla",
        str,
        "whether XLA compiles the whole step (default {default}: on GPUs)",
        choices=XLA,
        bare="on",
    ),
    Flag(
        "--mixed-precision",
        "training.mixed_precision",
        str,
        "what layers compute in (default {default}); float16 needs a GPU",
        choices=PRECISIONS,
    ),
    Flag(
        "--grad-accum",
        "training.grad_accum",
        int,
        "parts of --batch-size clips in one optimizer step (default {default}): the result of a batch N times larger",
        "N",
    ),
)
OPTIMISATION = (
    Flag("--target", "training.target", str, "what to train (default {default})", choices=tuple(TARGETS)),
    Flag(
        "--discriminators-after",
        "vocoder.discriminators_after",
        int,
        "steps of a vocoder by its spectra alone, before discriminators take part (default {default})",
        "N",
    ),
    Flag("--lr", "training.lr", float, "peak learning rate (default {default})", "X"),
    Flag("--seed", "training.seed", int, "seed of weights and order (default {default})", "N"),
    Switch(
        "--auto-batch", "training.auto_batch", True, "when memory runs out, halve --batch-size and double --grad-accum"
    ),
    Flag(
        "--max-bad-steps",
        "training.max_bad_steps",
        int,
        "end after N steps in a row that are not finite (default {default})",
        "N",
    ),
    Flag(
        "--init-from",
        "training.init_from",
        str,
        "start a new run with the weights of a checkpoint; symbols and languages may grow",
        "DIR",
    ),
    Flag(
        "--freeze",
        "training.freeze",
        str,
        "weights that do not learn, as 'text,speaker/*' (a wrong name is answered with the right ones)",
        "PATTERNS",
    ),
)
LIMITS = (
    Flag("--epochs", "training.epochs", int, "passes over the data (default {default}: no such limit)", "N"),
    Flag("--max-steps", "training.max_steps", int, "optimizer steps (default {default})", "N"),
    Flag(
        "--max-minutes",
        "training.max_minutes",
        float,
        "wall time; the learning rate falls towards it (default {default}: no such limit)",
        "X",
    ),
    Flag(
        "--early-stop",
        "training.early_stop",
        int,
        "validations without a better loss (default {default}: no such limit)",
        "N",
    ),
)
CADENCE = (
    Flag("--checkpoint-dir", "training.checkpoint_dir", str, "where to save (default {default})", "DIR"),
    *(
        Flag(f"--{name}-every", f"training.{name}_every", int, f"steps between {what} (default {{default}})", "N")
        for name, what in (
            ("log", "log lines"),
            ("val", "validations"),
            ("save", "checkpoints"),
            ("sample", "sample audio; 0: none"),
            ("eval", "scores of held-out sentences, as `evaluate` gives them; 0: none"),
        )
    ),
    Flag("--keep", "training.keep", int, "checkpoints to keep besides the best (default {default})", "N"),
)  # fmt: skip
