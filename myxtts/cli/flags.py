"""Settings as a person types them.

In: text in which settings stand by their keys in backticks: "lower `training.lr`".
Out: the same with the command's flags: "lower --lr"; a key that has no flag there stays as it is.
"""

import argparse
import re

from myxtts.cli.parser import make_parser

KEY = re.compile(r"`([a-z]+\.[a-z_]+)`")


def flags_of(command: str) -> dict[str, str]:
    """The flag of each setting that the command takes."""
    commands = next(action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction))
    actions = commands.choices[command]._actions
    return {action.dest: action.option_strings[0] for action in reversed(actions) if action.option_strings}


def in_flags(text: str, command: str) -> str:
    """Text for a person at the command line."""
    if not KEY.search(text):
        return text
    flags = flags_of(command)
    return KEY.sub(lambda match: flags.get(match[1], match[1]), text)


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
