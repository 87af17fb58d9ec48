"""Settings as a person types them.

In: text in which settings are named by their keys in backticks: "lower `training.lr`", "set `data.batch_size=8`".
Out: the same with the command's flags: "lower --lr", "set --batch-size 8"; where it has none, with those of `train`,
     which is what a run is told. A key without any flag stays as it is.
"""

import argparse
import functools
import re
from collections.abc import Mapping

from myxtts.cli.parser import make_parser

KEY = re.compile(
    r"`([a-z]+\.[a-z_]+)(?:=([^`]*))?`|`(resume|vocoder|checkpoint|cluster|rank|cluster_timeout)(?:=([^`]*))?`"
)  # the rest are no settings


@functools.cache
def _actions(command: str) -> tuple[argparse.Action, ...]:
    """What the command can be told, first what `--help` names first."""
    found = (action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return tuple(next(found).choices[command]._actions)


def flags_of(command: str) -> dict[str, str]:
    """The flag of each setting that the command takes."""
    return {action.dest: action.option_strings[0] for action in reversed(_actions(command)) if action.option_strings}


def every_flag(command: str) -> set[str]:
    """All that may be typed behind it, with names of before and of the opposite."""
    return {flag for action in _actions(command) for flag in action.option_strings if flag.startswith("--")}


def in_flags(text: str, command: str) -> str:
    """Text for a person at the command line."""

    def typed(match: re.Match[str]) -> str:
        key, value, word, told = match.groups()
        if word:
            return flags.get(word, word) + (f" {told}" if told is not None else "")
        if value is None:
            return flags.get(key, key)
        return " ".join(flag_words(command, key, value) or flag_words("train", key, value)) or f"{key}={value}"

    flags = flags_of("train") | flags_of(command) if KEY.search(text) else {}
    return KEY.sub(typed, text)


def flag_words(command: str, key: str, value: object) -> list[str]:
    """What to type for a setting; empty where the command has no flag for that value."""
    for action in _actions(command):
        if action.dest != key or not action.option_strings:
            continue
        if action.nargs == 0:
            if str(action.const).lower() == str(value).lower():
                return [action.option_strings[0]]
            continue
        word = "none" if value is None else ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        return [f"{action.option_strings[0]}={word}"] if word.startswith("-") else [action.option_strings[0], word]
    return []


def typed_flags(command: str, settings: Mapping[str, object]) -> str:
    """What to type for several settings."""
    return " ".join(word for key, value in settings.items() for word in flag_words(command, key, value))
