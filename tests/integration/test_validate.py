"""`myxtts validate`: what it prints, what a failure keeps from running and what not, exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

import myxtts
from myxtts import devices
from myxtts.cards import Card, FoundCards
from myxtts.cli.parser import make_parser
from myxtts.cli.validate import run
from myxtts.config.config import XTTSConfig
from myxtts.devices import DevicePlan, move
from myxtts.diagnostics import validate as validation
from myxtts.errors import RunError
from myxtts.pipeline.featurize import Featurizer
from myxtts.training import run as training_run

ROOT = Path(myxtts.__file__).parent.parent
RULE = "=" * 60
ENDING = f"""\
{RULE}
🎉 All validation checks passed!
Your system is ready for dual-GPU training.
"""
ON_GPUS = f"""\
Dual-GPU Pipeline Validation
{RULE}
1. Checking prerequisites...
   ✅ NVIDIA driver installed (2 GPUs detected)
   ✅ TensorFlow installed (version {tf.__version__})
   ✅ TensorFlow can see 2 GPUs
2. Validating device placement configuration...
   ✅ GPU indices valid: data_gpu=0, model_gpu=1
   ✅ Set visible devices: GPU 0 and GPU 1
   ✅ Memory growth configured for GPU 0
   ✅ Memory growth configured for GPU 1
   ✅ Device policy set to 'silent'
3. Testing model creation on GPU:1...
   ✅ Model created successfully on GPU:1
   ✅ Forward pass successful
4. Testing data transfer between GPUs...
   ✅ Created data on GPU:0
   ✅ Transferred data to GPU:1
   ✅ Data integrity verified after transfer
5. Simulating training pipeline...
   ✅ Created dataset on GPU:0
   ✅ Created model on GPU:1
   ✅ Processed 3 batches successfully
   ✅ Pipeline simulation successful
{ENDING}{RULE}
"""


def on_virtual(count: int, data: int, model: int) -> str:
    one, two = f"/CPU:{data}", f"/CPU:{model}"
    shared = "(virtual devices share the computer's memory)"
    return f"""\
Dual-GPU Pipeline Validation
{RULE}
1. Checking prerequisites...
   ✅ NVIDIA driver not needed ({count} virtual devices, parts of the CPU, stand in for GPUs)
   ✅ TensorFlow installed (version {tf.__version__})
   ✅ TensorFlow can see {count} virtual devices
2. Validating device placement configuration...
   ✅ GPU indices valid: data_gpu={data}, model_gpu={model}
   ✅ Set visible devices: {one} and {two}
   ✅ Memory growth not needed for {one} {shared}
   ✅ Memory growth not needed for {two} {shared}
   ✅ Device policy set to 'silent'
3. Testing model creation on {two}...
   ✅ Model created successfully on {two}
   ✅ Forward pass successful
4. Testing data transfer between {one} and {two}...
   ✅ Created data on {one}
   ✅ Transferred data to {two}
   ✅ Data integrity verified after transfer
5. Simulating training pipeline...
   ✅ Created dataset on {one}
   ✅ Created model on {two}
   ✅ Processed 3 batches successfully
   ✅ Pipeline simulation successful
{ENDING}"""


def test_the_whole_report_on_virtual_devices_through_the_script_that_notes_quote():
    words = ["--virtual-devices", "3", "--data-gpu", "2", "--model-gpu", "0"]
    result = subprocess.run(
        [sys.executable, ROOT / "validate_dual_gpu_pipeline.py", *words], capture_output=True, text=True, cwd=ROOT
    )
    report = on_virtual(3, 2, 0)
    assert result.returncode == 0 and result.stdout.startswith(report), result.stdout + result.stderr
    assert result.stderr == ""
    note = result.stdout.removeprefix(report)
    assert note.endswith(f"\n{RULE}\n")
    assert "virtual devices (/CPU:2 and /CPU:0, parts of the CPU)" in note
    assert "It proves that" in note and "it proves nothing about GPUs" in note


def test_without_gpus_one_document_says_what_failed_and_what_ran_all_the_same(run_myxtts):
    result = run_myxtts("validate", "--json")
    document = json.loads(result.stdout)
    assert result.returncode == 1 and result.stderr == ""
    assert not document["passed"] and document["failures"] == 1 and document["virtual_devices"] == 0
    assert len(document["sections"]) == 5
    checks = [check for section in document["sections"] for check in section["checks"]]
    assert "found 0" in checks[0]["detail"] and "install NVIDIA's driver" in checks[0]["detail"]
    passed = [check["name"] for check in checks if check["passed"]]
    assert passed == ["TensorFlow installed", "Device policy set to 'silent'"]
    assert document["not_run"] == len(checks) - 3
    assert all(check["needs"] == ["NVIDIA driver installed"] for check in checks[1:] if not check["passed"])


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--data-gpu", "0"], "--data-gpu 0 needs --model-gpu too"),
        (["--data-gpu", "1", "--model-gpu", "1"], "are both 1"),
        (["--data-gpu", "first"], "first is no GPU id"),
        (["--virtual-devices", "1"], "set --virtual-devices 2"),
        (["--virtual-devices", "two"], "--virtual-devices"),
        (["--virtual-devices", "2", "--enable-memory-isolation"], "virtual devices share the computer's memory"),
        (["--data-gpu-memory", "4096"], "needs --enable-memory-isolation"),
        (["--batch-size", "4"], "--batch-size"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(run_here, words, answer):
    result = run_here("validate", *words)
    assert result.returncode == 2 and result.stdout == ""
    [line] = result.stderr.splitlines()
    assert answer in line


# A machine with GPUs, played by two parts of the CPU


class Machine:
    """Cards and GPUs that are claimed to be there; the work is done by the virtual devices of the tests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.patch = monkeypatch.setattr
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
            monkeypatch.setenv(name, "")  # so that what is set meanwhile is taken back
            monkeypatch.delenv(name)
        monkeypatch.setattr(devices, "_chosen", {})
        self.patch(devices, "_has_listed_devices", lambda: False)
        plan = DevicePlan("/CPU:0", "/CPU:1", "0", "1", pipeline="split")
        for module in (validation, training_run):
            self.patch(module, "plan_devices", lambda *_: plan)
        self.patch(tf.config.experimental, "get_memory_growth", lambda gpu: True)
        self.patch(
            tf.config,
            "get_logical_device_configuration",
            lambda gpu: [SimpleNamespace(memory_limit={"GPU 0": 2048, "GPU 1": 4096}[gpu.name])],
        )
        self.has_cards(2)

    def has_cards(self, count: int, seen: int | None = None) -> None:
        """So many in the computer, so many that TensorFlow sees."""
        found = FoundCards(tuple(Card(f"GPU-{number}") for number in range(count)), "" if count else "no driver")
        self.patch(devices, "find_cards", lambda: found)
        self.patch(validation, "find_cards", lambda: found)
        gpus = [SimpleNamespace(name=f"GPU {number}") for number in range(count if seen is None else seen)]
        self.patch(tf.config, "list_physical_devices", lambda kind=None: gpus)


@pytest.fixture
def machine(monkeypatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture(scope="module")
def featurizers() -> dict[XTTSConfig, Featurizer]:
    return {}


@pytest.fixture
def quick(monkeypatch, featurizers) -> None:
    """The model is made, and its compiled passes are left out; features are compiled once for all tests."""

    def evaluate(step: Any, batch: Any) -> tuple[dict, Any]:
        return {}, SimpleNamespace(mel=tf.identity(batch.floats))

    monkeypatch.setattr(
        "myxtts.pipeline.featurize.Featurizer", lambda config: featurizers.setdefault(config, Featurizer(config))
    )
    monkeypatch.setattr("myxtts.training.step.EvaluateStep.__call__", evaluate)
    monkeypatch.setattr(
        "myxtts.training.step.TrainStep.__call__", lambda step, batch, adversarial: {"loss": tf.constant(1.0)}
    )


def steps_with_loss(loss: float) -> Callable[..., dict[str, tf.Tensor]]:
    """What stands in for a training step."""
    return lambda step, batch, adversarial: {"loss": tf.constant(loss)}


def report(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(make_parser().parse_args(["validate", *words]))
    return code, capsys.readouterr().out


def test_the_whole_report_on_gpus(machine, capsys):
    code, text = report(capsys, "--data-gpu", "0", "--model-gpu", "1")
    assert (code, text) == (0, ON_GPUS)


def test_other_ids_are_named_and_the_devices_keep_their_order(machine, quick, capsys):
    machine.has_cards(4, seen=2)
    code, text = report(capsys, "--data-gpu", "3", "--model-gpu", "1")
    assert code == 0 and os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-3,GPU-1"
    lines = text.splitlines()
    assert "   ✅ NVIDIA driver installed (4 GPUs detected)" in lines
    assert "   ✅ GPU indices valid: data_gpu=3, model_gpu=1" in lines
    assert "   ✅ Set visible devices: GPU 3 and GPU 1" in lines
    assert "   ✅ Memory growth configured for GPU 3" in lines
    assert "   ✅ Created data on GPU:0" in lines and "   ✅ Transferred data to GPU:1" in lines


def test_memory_limits_are_read_back_for_each_gpu(machine, quick, capsys):
    limits = ("--enable-memory-isolation", "--data-gpu-memory", "2048", "--model-gpu-memory")
    code, text = report(capsys, *limits, "4096")
    assert code == 0
    assert "   ✅ Memory limit configured for GPU 0 (2048 MB)" in text.splitlines()
    assert "   ✅ Memory limit configured for GPU 1 (4096 MB)" in text.splitlines()
    code, text = report(capsys, *limits, "8192")
    assert code == 1 and "❌ Memory limit configured for GPU 1 – it is 4096 MB and was to be 8192 MB; start" in text
    assert text.count("❌") == 2  # the check and the count at the end


DRIVER, TENSORFLOW, SEEN = "NVIDIA driver installed", "TensorFlow installed", "TensorFlow can see 2 GPUs"
IDS, PLAN = "GPU indices valid: data_gpu=0, model_gpu=1", "Set visible devices: GPU 0 and GPU 1"
GROWTH = ["Memory growth configured for GPU 0", "Memory growth configured for GPU 1"]
POLICY = "Device policy set to 'silent'"
MODEL, FORWARD = "Model created successfully on GPU:1", "Forward pass successful"
DATA, MOVED, EQUAL = "Created data on GPU:0", "Transferred data to GPU:1", "Data integrity verified after transfer"
DATASET, TRAINED = "Created dataset on GPU:0", "Created model on GPU:1"
BATCHES, SIMULATION = "Processed 3 batches successfully", "Pipeline simulation successful"
TRANSFER, PIPELINE = [DATA, MOVED, EQUAL], [DATASET, TRAINED, BATCHES, SIMULATION]
ON_DEVICES = [*GROWTH, MODEL, FORWARD, *TRANSFER, *PIPELINE]
EVERY = [DRIVER, TENSORFLOW, SEEN, IDS, PLAN, *GROWTH, POLICY, MODEL, FORWARD, *TRANSFER, *PIPELINE]


def raising(error: Exception, when: Callable[..., bool] = lambda *_: True, otherwise: Any = None) -> Callable:
    def call(*arguments: Any, **more: Any) -> Any:
        if when(*arguments):
            raise error
        return otherwise(*arguments, **more)

    return call


def no_driver(machine: Machine) -> None:
    machine.has_cards(0)


def no_tensorflow(machine: Machine) -> None:
    machine.patch(validation, "import_tensorflow", raising(ImportError("libtensorflow.so is missing")))


def no_cuda(machine: Machine) -> None:
    machine.has_cards(2, seen=0)


def devices_in_use(machine: Machine) -> None:
    machine.patch(validation, "plan_devices", raising(RunError("TensorFlow has already started")))


def no_growth_on_the_second(machine: Machine) -> None:
    machine.patch(tf.config.experimental, "get_memory_growth", lambda gpu: gpu.name != "GPU 1")


def another_policy(machine: Machine) -> None:
    machine.patch(tf.config.experimental, "get_device_policy", lambda: "explicit")


def no_room_for_the_first_model(machine: Machine) -> None:
    from myxtts.models.xtts import XTTS

    made: list[int] = []

    def is_first(*_: Any) -> bool:
        made.append(1)
        return len(made) == 1

    error = tf.errors.ResourceExhaustedError(None, None, "out of memory")
    machine.patch("myxtts.training.targets.speech.XTTS", raising(error, is_first, XTTS))


def no_forward_pass(machine: Machine) -> None:
    machine.patch("myxtts.training.step.EvaluateStep.__call__", raising(ValueError("shapes do not\nmatch")))


def no_copy_between_the_devices(machine: Machine) -> None:
    error = ConnectionError("the link is down")
    machine.patch(validation, "move", raising(error, lambda tensor, device: device == "/CPU:1", move))


def a_copy_that_changes_numbers(machine: Machine) -> None:
    def change(tensor: tf.Tensor, device: str) -> tf.Tensor:
        moved = move(tensor, device)
        with tf.device(device):
            return moved + 1 if moved.dtype == tf.float32 else moved

    machine.patch(validation, "move", change)


def a_full_disk(machine: Machine) -> None:
    machine.patch(validation, "_make_clips", raising(OSError(28, "No space left on device")))


def a_step_that_fails(machine: Machine) -> None:
    machine.patch("myxtts.training.step.TrainStep.__call__", raising(RuntimeError("launch failed")))


def losses_that_are_no_numbers(machine: Machine) -> None:
    machine.patch(
        "myxtts.training.step.TrainStep.__call__", lambda step, batch, adversarial: {"loss": tf.constant(float("nan"))}
    )


@pytest.mark.parametrize(
    ("breaks", "failed", "reason", "not_run"),
    [
        (no_driver, DRIVER, "found 0 GPUs (no driver); install NVIDIA's driver", [SEEN, IDS, PLAN, *ON_DEVICES]),
        (no_tensorflow, TENSORFLOW, "libtensorflow.so is missing; install", [SEEN, PLAN, POLICY, *ON_DEVICES]),
        (no_cuda, SEEN, "it sees 0; install TensorFlow's CUDA packages: pip", [PLAN, *ON_DEVICES]),
        (devices_in_use, PLAN, "TensorFlow has already started; start it in a new process", ON_DEVICES),
        (no_growth_on_the_second, GROWTH[1], "it is off; start it in a new process", []),
        (another_policy, POLICY, "it is 'explicit'; start it in a new process", []),
        (no_room_for_the_first_model, MODEL, "out of memory; nvidia-smi shows what else uses the GPUs", [FORWARD]),
        (no_forward_pass, FORWARD, "ValueError: shapes do not match; nvidia-smi", []),
        (no_copy_between_the_devices, MOVED, "the link is down; nvidia-smi topo -m", [EQUAL]),
        (a_copy_that_changes_numbers, EQUAL, "numbers are not the ones that were sent; nvidia-smi topo -m", []),
        (a_full_disk, DATASET, "No space left on device; see that", [BATCHES, SIMULATION]),
        (a_step_that_fails, BATCHES, "launch failed; nvidia-smi", [SIMULATION]),
        (losses_that_are_no_numbers, SIMULATION, "are not finite; nvidia-smi -q", []),
    ],
)
def test_a_failure_keeps_only_what_needs_it_from_running(machine, quick, capsys, breaks, failed, reason, not_run):
    breaks(machine)
    code, text = report(capsys)
    lines = [line for line in text.splitlines() if line.startswith("   ")]
    assert code == 1 and len(lines) == len(EVERY)
    for line, name in zip(lines, EVERY, strict=True):
        if name == failed:
            assert line.startswith(f"   ❌ {name} – ") and reason in line, line
        elif name in not_run:
            assert line == f"   ❌ {name} – not run, it needs {failed!r}"
        else:
            assert line.startswith(f"   ✅ {name}"), line
    count = f"❌ 1 validation check failed{f', {len(not_run)} not run' if not_run else ''}"
    assert text.endswith(f"{RULE}\n{count}\nEach failed check says what to do.\n{RULE}\n")


def test_an_id_that_does_not_exist_fails_its_own_check_only(machine, quick, capsys):
    code, text = report(capsys, "--data-gpu", "0", "--model-gpu", "7")
    assert code == 1
    assert "   ✅ TensorFlow can see 2 GPUs" in text
    name = "GPU indices valid: data_gpu=0, model_gpu=7"
    assert f"   ❌ {name} – --model-gpu 7: no such GPU; found 0, 1; set --data-gpu 0 --model-gpu 1" in text
    assert f"   ❌ Model created successfully on GPU:1 – not run, it needs {name!r}" in text
    assert "   ✅ Device policy set to 'silent'" in text


def test_one_gpu_fails_two_checks_and_what_needs_both_names_both(machine, quick, capsys):
    machine.has_cards(1)
    code, text = report(capsys)
    assert code == 1
    assert "   ✅ NVIDIA driver installed (1 GPU detected)" in text.splitlines()
    assert f"   ❌ {SEEN} – 1 can be used here, two are needed; leave --data-gpu and --model-gpu out" in text
    assert f"   ❌ {IDS} – Multi-GPU requires at least 2 GPUs, found 1; set --virtual-devices 2" in text
    assert f"   ❌ {PLAN} – not run, it needs {SEEN!r} and {IDS!r}" in text
    assert "❌ 2 validation checks failed, 12 not run" in text.splitlines()


def test_cards_that_tensorflow_aborts_on_are_hidden_from_it_where_ids_are_refused(machine, quick, capsys):
    cards = (Card("GPU-old"), Card("GPU-new", "RTX 5090", capability=(12, 0)))
    machine.patch(devices, "find_cards", lambda: FoundCards(cards))
    machine.patch(validation, "find_cards", lambda: FoundCards(cards))
    code, text = report(capsys)
    assert code == 1 and "RTX 5090 has compute capability 12.0" in text
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-old"


def test_the_document_of_a_failure_tells_it_from_what_was_not_run(machine, quick, capsys):
    no_copy_between_the_devices(machine)
    code, text = report(capsys, "--json")
    document = json.loads(text)
    assert code == 1 and (document["passed"], document["failures"], document["not_run"]) == (False, 1, 1)
    assert document["devices"] == ["/GPU:0", "/GPU:1"]
    checks = document["sections"][3]["checks"]
    assert [check["passed"] for check in checks] == [True, False, False]
    assert checks[2]["needs"] == [checks[1]["name"]] and checks[1]["needs"] == []
