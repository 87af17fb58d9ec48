"""Checks that go on after a failure: each is made unless one has failed that it needs.

In: steps, each with the work that it takes and the earlier ones that it needs.
Out: checks that passed, that failed, or that were not made and name the failures that kept them from it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from myxtts.errors import RunError, UsageError

LONGEST_REASON = 300  # characters of an error that a line repeats


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str  # what is true when it has passed
    passed: bool
    detail: str = ""  # what was found, or what to do
    needs: tuple[str, ...] = ()  # the failed checks because of which it was not run
    line: str = ""  # as it is printed, without the mark


@dataclass
class Section:
    """A title and the checks under it, as far as they have been made."""

    name: str
    checks: list[Check] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """A check that is still to be made."""

    key: str
    name: str
    work: Callable[[], str]  # returns what was found
    needs: tuple[str, ...] = ()  # keys of earlier steps
    advice: str = ""  # what to do when it fails in a way that does not tell by itself
    shows_detail: bool = False


class Checks:
    """The checks of one report, in order."""

    def __init__(self) -> None:
        self._failed: dict[str, tuple[str, ...]] = {}  # by key: the checks that failed by themselves and caused it

    def run(self, step: Step) -> Check:
        """Makes a check, or says which failed ones keep it from being made."""
        causes = tuple(dict.fromkeys(cause for key in step.needs for cause in self._failed.get(key, ())))
        if causes:
            self._failed[step.key] = causes
            detail = f"not run, it needs {' and '.join(repr(cause) for cause in causes)}"
            return Check(step.name, False, detail, causes, f"{step.name} – {detail}")
        try:
            detail = step.work()
        except UsageError as error:  # it says what to type
            detail = str(error)
        except RunError as error:
            detail = f"{error}; {step.advice}"
        except Exception as error:  # a check that breaks has failed; the report says how
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]
            detail = f"{reason}; {step.advice}"
        else:
            return Check(step.name, True, detail, (), f"{step.name} ({detail})" if step.shows_detail else step.name)
        self._failed[step.key] = (step.name,)
        return Check(step.name, False, detail, (), f"{step.name} – {detail}")
