"""What subcommands share: flags to a configuration, the lines that show it, a folder to write into."""

import argparse
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from myxtts.config.config import XTTSConfig
from myxtts.config.load import flatten, renamed_keys, resolve
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
    config, origin = resolve(Path(options.config) if options.config else None, flags, saved, keep)
    for key, today in (renamed_keys(Path(options.config)) if options.config else {}).items():
        _tell_once(f"{options.config}: {key} is called {today} today")
    for role in ("data", "model"):
        if f"data.{role}_gpu_memory" in flags and not config.data.memory_isolation:
            raise UsageError(f"--{role}-gpu-memory needs --enable-memory-isolation")
    return config, origin


@functools.cache
def _tell_once(line: str) -> None:
    """Some commands read their settings twice."""
    print(line, file=sys.stderr)


def describe(config: XTTSConfig, origin: Mapping[str, str]) -> list[str]:
    """One line for each value that is not a default, with where it came from."""
    values = flatten(config)
    return [f"{key} = {_shown(values[key])} ({source})" for key, source in origin.items()]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else repr(value)


def make_folder(folder: Path, advice: str) -> None:
    """Makes a folder for output; where that fails, says why and what to type."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}; {advice}") from None


def require_writable(flag: str, file: str | None, suffix: str = "") -> None:
    """Refuses a file that cannot be written, before the work is done."""
    if file is None:
        return
    path = Path(file).absolute()
    if not file or path.is_dir():
        raise UsageError(f"{flag} {file or repr(file)} is no file name; name a file to write")
    if suffix and path.suffix.lower() != suffix:
        raise UsageError(f"{flag} {file}: a {suffix} file is written; name it so")
    if not path.parent.is_dir():
        raise UsageError(f"{file}: there is no folder {Path(file).parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{flag} {file} cannot be written; name another file")
