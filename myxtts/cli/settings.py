"""What subcommands share: flags to a configuration, the lines that show it, a folder to write into."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from myxtts.config.config import XTTSConfig
from myxtts.config.load import flatten, resolve
from myxtts.errors import UsageError


def configure(
    options: argparse.Namespace, saved: Path | None = None, keep: tuple[str, ...] = ("",)
) -> tuple[XTTSConfig, Mapping[str, str]]:
    """The configuration of the flags whose names are configuration keys, on top of `--config` and a saved one.

    Args:
        options: the parsed command line.
        saved: the configuration of a checkpoint.
        keep: how the keys begin that are taken from it.
    """
    flags = {key: value for key, value in vars(options).items() if "." in key}
    return resolve(Path(options.config) if options.config else None, flags, saved, keep)


def describe(config: XTTSConfig, origin: Mapping[str, str]) -> list[str]:
    """One line for each value that is not a default, with where it came from."""
    values = flatten(config)
    return [f"{key} = {values[key]!r} ({source})" for key, source in origin.items()]


def make_folder(folder: Path, advice: str) -> None:
    """Makes a folder for output; where that fails, says why and what to type."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}; {advice}") from None


def require_parent(file: str | None) -> None:
    """Refuses a file to write whose folder does not exist, before the work is done."""
    if file and not Path(file).absolute().parent.is_dir():
        raise UsageError(f"{file}: there is no folder {Path(file).parent}; make it first")
