"""The `myxtts` command: parse, check, run one subcommand, and turn errors into one line and an exit code.

In: the command line.
Out: an exit code: 0 done, 1 a check or the run failed, 2 wrong usage, 130 interrupted, 143 terminated.
"""

import argparse
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from myxtts.cli.flags import in_flags
from myxtts.cli.parser import make_parser
from myxtts.errors import RunError, TooFewDevices, UsageError


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line `words` (default: the process's own)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without emoji, a file name that is not UTF-8
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the life of the process)
    options = make_parser().parse_args(words)
    _show_warnings()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        run: Callable[[argparse.Namespace], int] = import_module(f"myxtts.cli.{options.command}").run
        return run(options)
    except (UsageError, RunError) as error:
        mark = "❌ " if isinstance(error, TooFewDevices) else ""
        print(f"myxtts {options.command}: {mark}{in_flags(str(error), options.command)}", file=sys.stderr)
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
    except Terminated:
        print(f"myxtts {options.command}: terminated", file=sys.stderr)
        return 128 + signal.SIGTERM


def _show_warnings() -> None:
    """Has what the package warns of printed; several calls in a process print it once."""
    logger = logging.getLogger("myxtts")
    logger.handlers.clear()
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("⚠️ %(message)s"))
    logger.addHandler(handler)
    logger.propagate = False


class Terminated(BaseException):
    """SIGTERM came; temporary files are removed on the way out."""


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated
