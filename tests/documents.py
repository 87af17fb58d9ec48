"""The commands of README and docs, extracted and run as they are printed.

In: the Markdown files of the repository.
Out: the logical lines of every `sh` block; each run by bash in a folder that holds what the document speaks of.

Only two things differ from what is printed: where cards are named, parts of the CPU stand in for them, and a training
without a near end is stopped by Ctrl-C after its first log line, as its reader may stop it.
"""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
LAUNCHERS = {
    "train_main.py": "train",
    "validate_dual_gpu_pipeline.py": "validate",
    "compare_logs.py": "compare",
    "analyze_batch_scaling.py": "scaling",
    "utilities/dual_gpu_bottleneck_profiler.py": "profile",
}
ON_CARDS = ("train", "validate", "profile")
NEAR_END = 1000  # steps that a documented training is waited for
OURS = ("TF_XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "MYXTTS_DEVICE_POLICY")  # set by the tests; a newcomer has none
NOT_HERE = {  # commands that the runner leaves out, each for its reason
    "make test": "runs what CI runs",
    "make test-slow": "would run itself",
    "make bench": "measures, alone on the machine",
    "make gpu-code": "the same with fewer sizes stands below it",
}


@dataclass(frozen=True)
class Command:
    """A line of a document, continuation lines joined, comment dropped."""

    document: str
    line: int
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def myxtts(self) -> list[str] | None:
        """What `myxtts` is told, subcommand first; None for another program."""
        words = list(self.words)
        if words[0] in ("python", "python3") and len(words) > 1 and words[1] in LAUNCHERS:
            words = ["myxtts", LAUNCHERS[words[1]], *words[2:]]
        if Path(words[0]).name != "myxtts":
            return None
        end = next((place for place, word in enumerate(words) if re.fullmatch(r"\d?>.*", word)), len(words))
        return words[1:end]

    @property
    def cards(self) -> list[int]:
        """The ids that it names."""
        words = self.myxtts or []
        if not words or words[0] not in ON_CARDS:
            return []
        given = [words[place + 1] for place, word in enumerate(words[:-1]) if word in ("--data-gpu", "--model-gpu")]
        return [int(number) for word in given for number in word.split(",") if number.isdecimal()]

    @property
    def endless(self) -> bool:
        words = self.myxtts or []
        if words[:1] != ["train"]:
            return False
        limits = [int(words[place + 1]) for place, word in enumerate(words) if word == "--max-steps"]
        return not limits or limits[-1] > NEAR_END

    def on_this_machine(self) -> str:
        """What bash is given."""
        if not self.cards or "--virtual-devices" in self.text:
            return self.text
        script = next((name for name in LAUNCHERS if name in self.words), None)
        start = script or f"myxtts {self.myxtts[0]}"
        return self.text.replace(start, f"{start} --virtual-devices {max(1, *self.cards) + 1}", 1)


def commands(document: str) -> Iterator[Command]:
    """The commands of a document in order."""
    inside, begun, parts = False, 0, []
    for number, line in enumerate((ROOT / document).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```sh"
        elif inside and line.strip():
            begun = begun if parts else number
            parts.append(line.removesuffix("\\").strip())
            if not line.endswith("\\"):
                text = _without_comment(" ".join(parts))
                parts = []
                if text:
                    yield Command(document, begun, text)


def _without_comment(text: str) -> str:
    """The text before a `#` that begins a word outside of quotes."""
    found = re.match(r"""(?:'[^']*'|"[^"]*"|(?<!\s)\#|[^#'"])*""", text)
    return found[0].strip() if found else text


def run(command: Command, folder: Path, environment: dict[str, str]) -> str:
    """Runs a command and returns what it printed; raises AssertionError with that where it failed."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command.on_this_machine()}" if command.endless else command.on_this_machine()],
        cwd=folder,
        env={**{name: value for name, value in os.environ.items() if name not in OURS}, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    printed, stopped = [], False
    for line in process.stdout:
        printed.append(line)
        if command.endless and not stopped and line.startswith("step "):
            process.send_signal(signal.SIGINT)
            stopped = True
    expected = 128 + signal.SIGINT if stopped else 0
    found = process.wait()
    text = "".join(printed)
    assert found == expected, f"{command.document}:{command.line}: {command.text}\nexit {found}\n{text[-3000:]}"
    return text
