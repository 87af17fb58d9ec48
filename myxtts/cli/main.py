"""The `myxtts` command: parse, check, run one subcommand, and turn errors into one line and an exit code.

In: the command line.
Out: an exit code: 0 done, 1 a check or the run failed, 2 wrong usage, 130 interrupted.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from myxtts.cli.parser import make_parser
from myxtts.errors import RunError, UsageError


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line `words` (default: the process's own)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without emoji, a file name that is not UTF-8
    options = make_parser().parse_args(words)
    run: Callable[[argparse.Namespace], int] = import_module(f"myxtts.cli.{options.command}").run
    try:
        return run(options)
    except (UsageError, RunError) as error:
        print(f"myxtts {options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except UnicodeEncodeError as error:
        print(f"myxtts {options.command}: {error.object!r:.80} is not UTF-8", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        else:
            print(f"myxtts {options.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"myxtts {options.command}: interrupted", file=sys.stderr)
        return 130
