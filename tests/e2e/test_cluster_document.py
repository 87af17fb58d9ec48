"""The examples of docs/cluster.md: run with stand-ins for ssh and srun, or read as the scheduler would read them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from myxtts.checkpoint.folder import read_checkpoint
from myxtts.cli.parser import make_parser
from myxtts.cluster.members import find_members
from tests.clusters import free_addresses
from tests.documents import ROOT
from tests.helpers import PATIENCE

DOCUMENT = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
SSH = '#!/bin/bash\nshift\nexec bash -c "$*"\n'  # the machine is this one
SRUN = """#!/bin/bash
# Two tasks on this host, as srun would start them there.
while [[ $1 == --* ]]; do shift; done
export SLURM_STEP_NODELIST=localhost SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=0
for rank in 0 1; do SLURM_PROCID=$rank SLURM_LOCALID=$rank "$@" > "task-$rank.log" 2>&1 & done
wait -n && wait -n
"""


def block(begins: str) -> str:
    """The fenced block that holds some words."""
    found = [text for text in re.findall(r"^```\w+\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE) if begins in text]
    assert len(found) == 1, begins
    return found[0]


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def place(tmp_path) -> Path:
    """A folder with `.venv/bin/myxtts`, as the examples expect it."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    program(tmp_path, ".venv/bin/myxtts", f'#!/bin/bash\nexec {shlex.quote(sys.executable)} -m myxtts "$@"\n')
    return tmp_path


def few_steps(corpus: Path, tiny_yaml: Path, place: Path) -> list[str]:
    words = ["--config", tiny_yaml, "--train-data", corpus, "--checkpoint-dir", place / "run", "--max-steps", 4]
    return [str(word) for word in [*words, "--cache-dir", place / "cache"]]


def test_every_command_of_the_examples_can_be_typed():
    parser = make_parser()
    by_hand = block("--cluster 127.0.0.1:2301").splitlines()
    assert [parser.parse_args(shlex.split(line)[1:]).rank for line in by_hand] == [0, 1]
    slurm = block("#SBATCH").replace("\\\n", " ")
    words = shlex.split(next(line for line in slurm.splitlines() if "myxtts train" in line))
    options = parser.parse_args(words[words.index("train") : -1])
    assert options.cluster == "slurm" and vars(options)["data.model_gpu"] == (0, 1, 2, 3)


def test_the_job_of_kubernetes_is_whole():
    service, job = yaml.safe_load_all(block("kind: Job"))
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    assert service["spec"]["clusterIP"] == "None" and pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    (container,) = pod["containers"]
    typed = container["args"][0].replace('"$JOB_COMPLETION_INDEX"', "2")
    options = make_parser().parse_args(shlex.split(typed)[2:])
    members = find_members(options.cluster, options.rank, {})
    name = job["metadata"]["name"]
    assert members.addresses == tuple(f"{name}-{rank}.{pod['subdomain']}:2222" for rank in range(spec["completions"]))
    assert {int(address.rsplit(":", 1)[1]) for address in members.addresses} == {container["ports"][0]["containerPort"]}
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.slow
def test_the_script_for_ssh_trains_and_tells_a_failure(place, corpus, tiny_yaml):
    script = program(place, "train-ssh.sh", block("usage: HOSTS"))
    program(place, "ssh", SSH)
    environment = {
        **os.environ,
        "PATH": f"{place}:{os.environ['PATH']}",
        "HOSTS": " ".join(free_addresses(2)),
        "FOLDER": str(place),
    }
    words = [str(script), *few_steps(corpus, tiny_yaml, place)]
    done = subprocess.run(words, cwd=place, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, (place / "rank-0.log").read_text()
    assert read_checkpoint(place / "run" / "latest").state.step == 4
    assert "Ended by rank 0" in (place / "rank-1.log").read_text()
    assert subprocess.run(words, cwd=place, env=environment, timeout=PATIENCE).returncode == 1  # the folder has a run
    assert "already holds a run" in (place / "rank-1.log").read_text()


@pytest.mark.slow
def test_the_batch_script_for_slurm_trains_and_resumes(place, corpus, tiny_yaml):
    text = block("#SBATCH").replace("--model-gpu 0,1,2,3 ", "")  # there are no cards here
    script = program(place, "train.sbatch", text)
    program(place, "srun", SRUN)
    environment = {
        **os.environ, "PATH": f"{place}:{os.environ['PATH']}", "DATA": str(corpus), "RUN": str(place / "run"),
    }  # fmt: skip
    for steps in (4, 6):
        words = [str(script), "--config", str(tiny_yaml), "--cache-dir", str(place / "cache")]
        done = subprocess.run([*words, "--max-steps", str(steps)], cwd=place, env=environment, timeout=PATIENCE)
        assert done.returncode == 0, (place / "task-0.log").read_text()
        assert read_checkpoint(place / "run" / "latest").state.step == steps
    assert "localhost:2223" in (place / "task-0.log").read_text()
