"""Errors that a person can act on: shown as one line, without a traceback."""


class UsageError(Exception):
    """What was asked for cannot be right: wrong flag, missing file, unreadable input. Exit code 2."""

    exit_code = 2


class TooFewDevices(UsageError):
    """This machine has fewer devices than were asked for, or may not use them."""


class RunError(Exception):
    """The request was right, but a check or the run itself failed. Exit code 1."""

    exit_code = 1
