"""What subcommands share: flags to a configuration, the lines that show it, a folder to write into."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from myxtts.config.config import XTTSConfig
from myxtts.config.load import flatten, resolve
from myxtts.errors import UsageError


def configure(
    options: argparse.Namespace, resumed: Path | None = None, **fixed: object
) -> tuple[XTTSConfig, Mapping[str, str]]:
    """The configuration of the flags whose names are configuration keys, on top of `--config` and a resumed run's."""
    flags = {key: value for key, value in vars(options).items() if "." in key} | fixed
    return resolve(Path(options.config) if options.config else None, flags, resumed)


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
