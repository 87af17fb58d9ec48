"""README and docs followed to the letter in a fresh clone, as a newcomer would (`make test-slow`).

A stand-in scores what is evaluated: the measuring packages of `make scores` fetch their models from the network.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from myxtts.demo.corpus import make_corpus
from myxtts.scoring.scores import PYTHON
from tests.documents import DOCUMENTS, NOT_HERE, ROOT, Command, commands, run
from tests.helpers import make_listener

ADDRESS = "<this repository>"
INSTEAD = {"pip install -e '.[gpu]'": "pip install --dry-run -e '.[gpu]'"}  # CUDA's packages are several gigabytes
NEEDS_A_RUN = ("docs/speaking.md",)  # documents for readers who have trained as README says


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """The clone, installed by the first commands of README, with the recordings that the documents speak of."""
    home = tmp_path_factory.mktemp("newcomer")
    clone = home / "myxtts"
    environment = {
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": f"{clone / '.venv' / 'bin'}:{os.environ['PATH']}",
        PYTHON: str(make_listener(home)),
    }
    first, *_ = commands("README.md")
    assert ADDRESS in first.text
    subprocess.run(["bash", "-c", first.text.replace(ADDRESS, str(ROOT))], cwd=home, check=True)
    for number, name in enumerate(("my-voice", "new-voice")):
        made = make_corpus(home / name, "espeak", 40, seed=number).folder
        shutil.copytree(made, clone / name)
    clips = sorted((clone / "my-voice" / "wavs").glob("*.wav"))
    shutil.copy(clips[0], clone / "a.wav")
    shutil.copy(clips[1], clone / "b.wav")
    (clone / "recordings").mkdir()
    for clip in clips[:2]:
        shutil.copy(clip, clone / "recordings")
    for name in ("lines.txt", "unseen.txt"):
        (clone / name).write_text("The first line of a file.\nAnd the second one.\n", encoding="utf-8")
    return clone, environment


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_runs_as_it_is_printed(document, newcomer):
    clone, environment = newcomer
    runs, kept = clone / "runs", clone / "runs of the README"
    if document != "README.md":
        shutil.rmtree(runs, ignore_errors=True)
        if document in NEEDS_A_RUN:
            shutil.copytree(kept, runs, symlinks=True)
    for command in commands(document):
        if ADDRESS in command.text or command.text in NOT_HERE:
            continue
        command = Command(document, command.line, INSTEAD.get(command.text, command.text))
        print(f"{document}:{command.line}: {command.on_this_machine()}", flush=True)
        print(run(command, clone, environment)[-2000:], flush=True)
    if document == "README.md":
        shutil.copytree(runs, kept, symlinks=True)
