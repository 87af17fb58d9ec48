"""What `train` printed into a file, read back.

In: the text of a log (`train_main.py … > baseline.log 2>&1`), with whatever else was printed between its lines.
Out: the dicts that `metrics.jsonl` holds, to the printed precision.
"""

import math
import re
from typing import Any

from myxtts.errors import UsageError

ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # colours and cursor movements of a terminal
CLOCK = r"\d+(?::\d\d)+(?:\.\d)?"
NUMBER = r"\d+(?:\.\d+)?"
FACTS = re.compile(r"Run from step (?P<step>\d+)(?P<settings>(?: \| [a-z ]+ \S+)+)$")
STEP = re.compile(
    r"(?<!at )step (?P<step>\d+) \| (?P<losses>[^|]*) "
    rf"\| (?P<step_ms>{NUMBER}) ms/step (?P<steps_per_second>{NUMBER}) steps/s "
    rf"(?P<frames_per_second>{NUMBER}) frames/s "
    rf"\| data wait (?P<data_wait>{NUMBER})% buffer (?P<buffer_fill>{NUMBER})% padding (?P<padding>{NUMBER})%"
    rf"(?: exchange (?P<exchange>{NUMBER})% slowest (?P<slowest>rank \d+ {NUMBER} ms))?"
    rf"(?: skipped (?P<skipped>\d+))? "
    rf"\| memory (?P<memory_mb>{NUMBER}) MB(?P<cards>(?: GPU \d+ {NUMBER}%)*) "
    rf"\| elapsed (?P<seconds>{CLOCK}) left (?P<seconds_left>{CLOCK})$"
)
VALIDATION = re.compile(r"validation at step (?P<step>\d+) \| (?P<losses>.*)$")
CARD = re.compile(rf"GPU (\d+) ({NUMBER})%")
TITLE = re.compile(r"Performance (so far|of the run)$")
REPORT = (  # the lines below a title; ± may have been lost on the way into the file
    re.compile(rf"(?P<steps>\d+) steps in (?P<seconds>{CLOCK}), (?P<shapes>\d+) shapes, (?P<traces>\d+) traces$"),
    re.compile(
        rf"step time (?P<mean_step_ms>{NUMBER}) \S+ (?P<deviation_step_ms>{NUMBER}) ms, "
        rf"variation (?P<variation>{NUMBER})%$"
    ),
    re.compile(rf"(?P<frames_per_second>{NUMBER}) mel frames/s, data wait (?P<data_wait>{NUMBER})%$"),
)
NO_STEP = re.compile(r"nothing was left to do$|stopped before the first step")  # a start that ended without a report
WHOLE = ("step", "skipped", "steps", "shapes", "traces")
SHARES = ("data_wait", "buffer_fill", "padding", "exchange", "variation")  # printed in percent
ONE_PROCESS = {"exchange": "0", "slowest": ""}  # what is not printed where there is only one
CLOCKS = ("seconds", "seconds_left")
NEEDED = "needed is all that `train_main.py … > a.log 2>&1` printed"
INSTEAD = "name the run's folder (its `training.checkpoint_dir`) instead"


def decode(content: bytes) -> str:
    """The text of a log; PowerShell writes UTF-16, and a byte that is no UTF-8 spoils only its own character."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def parse_log(text: str, name: str) -> list[dict[str, Any]]:
    """The lines of a run out of its printed log.

    Args:
        text: all of the log.
        name: of the file, for errors.

    Raises:
        UsageError: it is empty, of another program, or cut.
    """
    if not text.strip():
        raise UsageError(f"{name} is empty; {NEEDED}, or {INSTEAD}")
    if "\0" in text:
        raise UsageError(f"{name} is no text file; {NEEDED}, or {INSTEAD}")
    texts = [part.strip() for part in re.split(r"[\r\n]+", ESCAPE.sub("", text))]
    lines, ended = _collect(texts)
    steps = [line["step"] for line in lines if line["kind"] == "train"]
    if not lines:
        begin = next((part for part in texts if part), "")
        raise UsageError(f"{name} holds no line of a training run, it begins {begin[:40]!r}; {NEEDED}, or {INSTEAD}")
    if lines[0]["kind"] != "resumed":
        raise UsageError(f"{name} was cut: its beginning with the run's settings is missing; {NEEDED}, or {INSTEAD}")
    if not steps:
        raise UsageError(f"{name} was cut: it ends before the run's first log line; {NEEDED}, or {INSTEAD}")
    if not ended:
        raise UsageError(
            f"{name} was cut: it ends after step {steps[-1]} without the performance report of the run's end; "
            f"{NEEDED}, or {INSTEAD}"
        )
    return lines


def _collect(texts: list[str]) -> tuple[list[dict[str, Any]], bool]:
    """The lines that are a run's, and whether the last of its starts came to its end."""
    lines: list[dict[str, Any]] = []
    report: dict[str, Any] = {}
    ended = final = False
    for text in texts:
        if found := FACTS.search(text):
            step = int(found["step"])
            lines += [{"kind": "resumed", "step": step}, {"kind": "run", "step": step, **_settings(found["settings"])}]
            ended = False
        elif found := STEP.search(text):
            cards = {card: float(percent) / 100 for card, percent in CARD.findall(found["cards"])}
            values = {**_values(found), "losses": _losses(found["losses"]), "gpu_utilisation": cards}
            lines.append({"kind": "train", "skipped": 0, **values})
            ended = False
        elif found := VALIDATION.search(text):
            lines.append({"kind": "validation", "step": int(found["step"]), "losses": _losses(found["losses"])})
        elif found := TITLE.search(text):
            report, final = {"kind": "summary"}, found[1] == "of the run"
        elif report and (found := next((match for part in REPORT if (match := part.search(text))), None)):
            report |= _values(found)
            if found.re is REPORT[-1] and {"steps", "mean_step_ms"} <= report.keys():
                lines.append(report)
                report, ended = {}, final
        elif NO_STEP.search(text):
            ended = True
    return lines, ended


def _values(found: re.Match[str]) -> dict[str, Any]:
    """The numbers of a line in the units of `metrics.jsonl`."""
    values: dict[str, Any] = {}
    for name, text in found.groupdict().items():
        if name in ONE_PROCESS:
            text = text or ONE_PROCESS[name]
        if text is None or name in ("losses", "cards"):
            continue
        if name in CLOCKS:
            values[name] = sum(float(part) * 60**place for place, part in enumerate(reversed(text.split(":"))))
        elif name in SHARES:
            values[name] = float(text) / 100
        else:
            values[name] = int(text) if name in WHOLE else text if name == "slowest" else float(text)
    return values


def _losses(text: str) -> dict[str, float | None]:
    """Named values; one that is not finite is None, as in `metrics.jsonl`."""
    words = text.split()
    losses: dict[str, float | None] = {}
    for name, word in zip(words[::2], words[1::2], strict=False):
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        losses[name] = value if math.isfinite(value) else None
    return losses


def _settings(text: str) -> dict[str, Any]:
    parts = (part.rpartition(" ") for part in text.split(" | ") if part)
    return {name.replace(" ", "_"): int(value) if value.isdecimal() else value for name, _, value in parts}
