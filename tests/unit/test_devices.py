"""From flags to devices: what is refused, what becomes visible, what NVML's own bindings find."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from myxtts.cards import Card, FoundCards, choose_cards, choose_one, default_limit_mb
from myxtts.config.config import DataConfig
from myxtts.devices import best_device, check_request, device_names, plain_name, set_memory, watched_gpus
from myxtts.errors import UsageError

UUIDS = tuple(f"GPU-{letter * 8}-0000" for letter in "abcd")
FOUR = FoundCards(tuple(Card(uuid) for uuid in UUIDS))


def choose_two(data: int, model: int, found: FoundCards, preset: str | None) -> str:
    return choose_cards([("data.data_gpu", data), ("data.model_gpu", model)], found, preset)


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (2, 3), (3, 1)])
def test_the_data_gpu_is_always_first(pair):
    data, model = pair
    for preset in (None, "3,2,1,0", ",".join(UUIDS)):
        assert choose_two(data, model, FOUR, preset) == f"{UUIDS[data]},{UUIDS[model]}"


def test_a_list_that_is_already_set_keeps_its_say():
    assert choose_two(3, 2, FOUR, " 2, 3 ") == f"{UUIDS[3]},{UUIDS[2]}"
    assert choose_two(2, 0, FOUR, "GPU-cccc,GPU-aaaa") == f"{UUIDS[2]},{UUIDS[0]}"
    with pytest.raises(
        UsageError, match=r"`data.data_gpu=0`: no such GPU .*2, 3; set `data.data_gpu=2` `data.model_gpu=3`"
    ):
        choose_two(0, 1, FOUR, "2,3")


def test_several_training_cards_keep_the_order_in_which_they_are_named():
    three = [("data.model_gpu", number) for number in (3, 0, 2)]
    assert choose_cards(three, FOUR, None) == f"{UUIDS[3]},{UUIDS[0]},{UUIDS[2]}"
    with pytest.raises(UsageError, match=r"requires at least 3 GPUs, found 2 .*`data.virtual_devices=3`"):
        choose_cards(three, FOUR, "0,1")
    with pytest.raises(UsageError, match=r"`data.model_gpu=7`: no such GPU; .* set `data.model_gpu=0,1`"):
        choose_cards([("data.model_gpu", 0), ("data.model_gpu", 7)], FOUR, None)
    with_data = [("data.data_gpu", 0), ("data.model_gpu", 7), ("data.model_gpu", 2)]
    with pytest.raises(UsageError, match=r"set `data.data_gpu=0` `data.model_gpu=1,2`"):
        choose_cards(with_data, FOUR, None)


def test_one_device_sees_one_card_by_its_uuid():
    assert choose_one(FOUR, None) == UUIDS[0]
    assert choose_one(FOUR, "2,1") == UUIDS[2]
    assert choose_one(FOUR, "GPU-dddd") == UUIDS[3]
    assert choose_one(FOUR, "MIG-x,MIG-y") == "MIG-x"
    for preset in ("", "-1", "9"):  # no card is wanted, or none that is known
        assert choose_one(FOUR, preset) is None
    assert choose_one(FoundCards((), "no driver"), None) is None


def test_two_slices_of_a_card_are_refused_with_the_true_reason():
    with pytest.raises(UsageError, match="CUDA gives a process one MIG slice only"):
        choose_two(1, 0, FOUR, "MIG-x,MIG-y")


def test_cards_that_tensorflow_aborts_on_are_refused_or_passed_over():
    old, new = Card("GPU-old", "RTX 4090", 24_564, (8, 9)), Card("GPU-new", "RTX 5090", 32_607, (12, 0))
    both = FoundCards((new, old))
    assert choose_one(both, None) == "GPU-old"
    with pytest.raises(UsageError, match=r"RTX 5090 has compute capability 12\.0, .*CUDA_VISIBLE_DEVICES="):
        choose_one(both, "0")
    with pytest.raises(UsageError, match=r"`data.model_gpu=0`: RTX 5090 has compute capability 12\.0"):
        choose_two(1, 0, both, None)


def test_a_limit_leaves_what_cuda_needs():
    cards = FoundCards((Card("a", memory_mb=12_288), Card("b", memory_mb=40_960), Card("c")))
    assert [default_limit_mb(number, cards) for number in (0, 1)] == [10_752, 39_424]
    with pytest.raises(UsageError, match=r"how much memory GPU 2 has; say it in MB with `data.data_gpu_memory`"):
        default_limit_mb(2, cards)


@pytest.mark.parametrize(
    ("found", "preset", "count"),
    [
        (FoundCards(()), None, 0),
        (FoundCards(FOUR.cards[:1]), None, 1),
        (FOUR, "2", 1),
        (FOUR, "", 0),
        (FOUR, "1,1,1", 1),
        (FOUR, "2,9,3", 1),  # CUDA stops at the first entry that it does not know
        (FOUR, "-1", 0),
    ],
)
def test_too_few_gpus_are_an_error_that_counts_them(found, preset, count):
    with pytest.raises(UsageError, match=f"^Multi-GPU requires at least 2 GPUs, found {count}.*`data.virtual_dev"):
        choose_two(0, 1, found, preset)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"data_gpu": 0}, "`data.data_gpu=0` needs `data.model_gpu`"),
        ({"model_gpu": 1}, "`data.model_gpu=1` needs `data.data_gpu`"),
        ({"data_gpu": 1, "model_gpu": 1}, "both 1"),
        ({"data_gpu": 0, "model_gpu": 0}, "both 0"),
        ({"model_gpu": 0}, "`data.model_gpu=0` needs `data.data_gpu`"),
        ({"memory_isolation": True}, "needs two GPUs"),
        ({"model_gpu": (1, 2, 1)}, "names GPU 1 twice"),
        ({"data_gpu": 2, "model_gpu": (1, 2)}, "both 2"),
        ({"model_gpu": (1, 2), "pipeline": "split"}, "`data.pipeline=split` needs two devices"),
        ({"data_gpu": 0, "model_gpu": (1, 2), "pipeline": "parallel"}, "has no device that only prepares"),
        ({"model_gpu": (1, 3), "virtual_devices": 3}, "devices 1 and 3, found 3 .*set `data.virtual_devices=4`"),
        ({"data_gpu_memory": 4096}, "`data.data_gpu_memory` needs `data.memory_isolation`"),
        ({"pipeline": "split"}, "`data.pipeline=split` needs two devices"),
        ({"data_gpu": 0, "model_gpu": 2, "virtual_devices": 2}, "set `data.virtual_devices=3`"),
        ({"data_gpu": 0, "model_gpu": 1, "virtual_devices": 2, "memory_isolation": True}, "share the computer's"),
        ({"virtual_devices": -2}, "choose 1 to 64"),
    ],
)
def test_wrong_combinations_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        check_request(DataConfig(**settings))


class RecordedConfig:
    """Stands in for tf.config and keeps what it was told."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self.growing: list[str] = []
        self.experimental = SimpleNamespace(set_memory_growth=lambda gpu, on: self.growing.append(gpu))
        self.LogicalDeviceConfiguration = lambda memory_limit: memory_limit
        self.list_physical_devices = lambda kind: ["first", "second"]

    def set_logical_device_configuration(self, gpu: str, configurations: list[int]) -> None:
        [self.limits[gpu]] = configurations


def test_memory_grows_unless_each_gpu_has_its_limit():
    growing, limited = RecordedConfig(), RecordedConfig()
    set_memory(SimpleNamespace(config=growing), ["a", "b"], DataConfig(data_gpu=0, model_gpu=1))
    assert growing.growing == ["a", "b"] and not growing.limits
    data = DataConfig(data_gpu=0, model_gpu=1, memory_isolation=True, data_gpu_memory=2048, model_gpu_memory=16384)
    set_memory(SimpleNamespace(config=limited), ["a", "b"], data)
    assert limited.limits == {"a": 2048, "b": 16384} and not limited.growing


def test_two_ids_have_two_names_and_none_have_none():
    assert device_names(DataConfig()) == ()
    assert device_names(DataConfig(model_gpu=(5, 2, 3))) == ("/GPU:0", "/GPU:1", "/GPU:2")
    assert device_names(DataConfig(data_gpu=4, model_gpu=(2, 3), virtual_devices=5)) == ("/CPU:4", "/CPU:2", "/CPU:3")
    assert device_names(DataConfig(data_gpu=3, model_gpu=1)) == ("/GPU:0", "/GPU:1")
    assert device_names(DataConfig(data_gpu=1, model_gpu=0, virtual_devices=2)) == ("/CPU:1", "/CPU:0")


def test_gpus_that_are_watched_are_those_of_the_ids():
    two = DataConfig(data_gpu=1, model_gpu=0)
    assert watched_gpus(two) == (1, 0) and watched_gpus(replace(two, pipeline="buffered")) == (0,)
    assert watched_gpus(replace(two, virtual_devices=2)) == ()
    assert watched_gpus(DataConfig(model_gpu=(2, 0))) == (2, 0)


STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int count(void) { const char *text = getenv("FAKE_GPUS"); return text ? atoi(text) : 0; }
int nvmlInitWithFlags(unsigned flags) { return count() < 0 ? 9 : 0; }
int nvmlInit_v2(void) { return count() < 0 ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *number) { *number = count(); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetUUID(void *handle, char *text, unsigned length) {
    snprintf(text, length, "GPU-%08lx-0000", (long)handle - 1); return 0; }
struct memory { unsigned long long total, free, used; };
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *found) { found->total = 24ull << 30; return 0; }
int nvmlDeviceGetMaxClockInfo(void *handle, int type, unsigned *mhz) { *mhz = type == 2 ? 1215 : 1410; return 0; }
int nvmlDeviceGetMemoryBusWidth(void *handle, unsigned *bits) { *bits = 5120; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    const char *text = getenv("FAKE_CAPABILITY"); *major = text ? atoi(text) : 8; *minor = 0; return 0; }
const char *nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    """A stand-in for the driver's library, so that the real bindings run."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(STAND_IN)
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(folder / "nvml.c")], check=True)
    return folder


def with_driver(driver: Path, gpus: int, code: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    environment |= {"LD_LIBRARY_PATH": str(driver), "FAKE_GPUS": str(gpus), **more}
    return subprocess.run(
        [sys.executable, *(["-c", code] if code else []), *words], capture_output=True, text=True, env=environment
    )


FIND = """
import json
from myxtts.cards import find_cards
found = find_cards()
told = [[card.uuid, card.memory_mb, card.capability, card.bandwidth] for card in found.cards]
print(json.dumps([told, found.reason]))
"""
SELECT = """
import os, sys
from myxtts.config.config import DataConfig
from myxtts.devices import select_gpus
select_gpus(DataConfig(data_gpu=3, model_gpu=1))
print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"], "tensorflow" in sys.modules)
"""


def test_gpus_are_counted_by_the_drivers_own_library(driver):
    cards, reason = json.loads(with_driver(driver, 3, FIND, FAKE_CAPABILITY="12").stdout)
    a100 = 1.5552e12  # bytes a second, as its data sheet has it
    assert cards == [[f"GPU-0000000{number}-0000", 24_576, [12, 0], a100] for number in range(3)] and not reason
    cards, reason = json.loads(with_driver(driver, -1, FIND).stdout)
    assert not cards and "Driver Not Loaded" in reason


def test_the_environment_is_set_before_tensorflow_is_loaded(driver):
    assert with_driver(driver, 4, SELECT).stdout.split() == [
        "GPU-00000003-0000,GPU-00000001-0000",
        "PCI_BUS_ID",
        "False",
    ]
    preset = with_driver(driver, 4, SELECT, CUDA_VISIBLE_DEVICES="GPU-00000001,GPU-00000003")
    assert preset.stdout.split()[0] == "GPU-00000003-0000,GPU-00000001-0000"


def test_asking_again_changes_nothing(driver):
    again = SELECT.replace("print(", "select_gpus(DataConfig(data_gpu=3, model_gpu=1))\nprint(")
    assert with_driver(driver, 4, again).stdout.split()[0] == "GPU-00000003-0000,GPU-00000001-0000"
    one = again.replace("data_gpu=3, model_gpu=1", "")
    assert with_driver(driver, 4, one).stdout.split()[0] == "GPU-00000000-0000"
    found = with_driver(driver, 4, one, CUDA_VISIBLE_DEVICES="2,3")
    assert found.stdout.split()[0] == "GPU-00000002-0000", found.stderr


def test_gpus_can_be_chosen_after_the_import_of_tensorflow_until_it_looks_at_them(driver):
    imported = "import tensorflow as tf\n" + SELECT
    assert with_driver(driver, 4, imported).stdout.split()[0] == "GPU-00000003-0000,GPU-00000001-0000"
    used = "import tensorflow as tf\ntf.config.list_physical_devices()\n" + SELECT
    assert "select_gpus(config.data) before it does" in with_driver(driver, 4, used).stderr


@pytest.mark.parametrize(
    "name", ["/CPU:0", "cpu:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0", "CPU"]
)
def test_device_names_have_one_form(name):
    assert plain_name(name) == "/CPU:0"


def test_what_is_no_device_is_refused():
    with pytest.raises(UsageError, match="no device"):
        plain_name("/TOASTER:0")
    with pytest.raises(UsageError, match=r"no device /GPU:7; found /CPU:0"):
        best_device("/GPU:7")


def test_a_card_that_is_too_new_is_refused_before_tensorflow_is_loaded(driver):
    code = "import sys\nfrom myxtts.devices import plan_devices\n"
    code += "try:\n    plan_devices()\nexcept Exception as error:\n    print(error, 'tensorflow' in sys.modules)"
    found = with_driver(driver, 1, code, FAKE_CAPABILITY="12").stdout
    assert "compute capability 12.0" in found and found.strip().endswith("False")


def test_train_refuses_one_gpu_where_two_are_asked_for(driver, corpus):
    words = ("-m", "myxtts", "train", "--train-data", str(corpus), "--data-gpu", "0", "--model-gpu", "1")
    result = with_driver(driver, 1, "", *words)
    assert result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1
    assert "❌ Multi-GPU requires at least 2 GPUs, found 1" in result.stderr


TRAIN = """
import json, sys
from types import SimpleNamespace
from myxtts import devices
from myxtts.cli.main import main
from myxtts.errors import RunError
from myxtts.training import trainer
from tests.unit.test_devices import RecordedConfig

def refuse(*arguments, **more):
    raise RunError("no further")

config = RecordedConfig()
devices.import_tensorflow = lambda: SimpleNamespace(config=config)
trainer.XTTSTrainer = refuse
code = main(["train", *sys.argv[1:]])
print(json.dumps([code, config.limits, config.growing]))
"""


@pytest.fixture
def train_on_two_gpus(driver, corpus, tmp_path):
    """Starts a training on GPUs 1 and 0, up to where the model would be made; returns its lines and what was set."""

    def train(*words: str) -> tuple[list[str], dict[str, int], list[str]]:
        places = ("--train-data", str(corpus), "--checkpoint-dir", str(tmp_path / "run"))
        more = ("--cache-dir", str(tmp_path / "cache"), "--data-gpu", "1", "--model-gpu", "0")
        found = with_driver(driver, 2, TRAIN, *places, *more, *words)
        assert found.stderr.endswith("myxtts train: no further\n"), found.stderr
        *lines, last = found.stdout.splitlines()
        code, limits, growing = json.loads(last)
        assert code == 1
        return lines, limits, growing

    return train


def test_train_says_which_limit_each_gpu_was_given(train_on_two_gpus):
    limits = ("--enable-memory-isolation", "--data-gpu-memory", "8192", "--model-gpu-memory", "16384")
    lines, limited, growing = train_on_two_gpus(*limits)
    begin = lines.index("🎯 Configuring Multi-GPU Mode...")
    assert lines[begin + 1 : begin + 8] == [
        "   Data Processing GPU: 1",
        "   Model Training GPU: 0",
        "   Set visible devices: GPU 1 and GPU 0",
        "   Memory isolation enabled",
        "   Memory limit for data GPU: 8192 MB (GPU 1)",
        "   Memory limit for model GPU: 16384 MB (GPU 0)",
        "✅ Multi-GPU configuration completed successfully",
    ]
    assert limited == {"first": 8192, "second": 16384} and growing == []


def test_train_says_limits_that_it_chose_itself_and_on_one_device_too(train_on_two_gpus):
    lines, limited, _ = train_on_two_gpus("--enable-memory-isolation", "--pipeline", "buffered")
    begin = lines.index("🎯 Configuring memory limits...")
    assert lines[begin + 2 : begin + 4] == [
        "   Memory limit for data GPU: 23040 MB (GPU 1)",
        "   Memory limit for model GPU: 23040 MB (GPU 0)",
    ]
    assert limited == {"first": 23040, "second": 23040}


def test_train_says_that_memory_grows_where_no_limit_is_asked_for(train_on_two_gpus):
    lines, limited, growing = train_on_two_gpus()
    assert "   Configured memory growth for data GPU" in lines and "   Configured memory growth for model GPU" in lines
    assert not any("limit" in line or "isolation" in line for line in lines)
    assert not limited and growing == ["first", "second"]


def test_a_limit_for_parts_of_the_cpu_is_refused_before_anything_is_done(run_myxtts, corpus, tmp_path):
    places = ("--train-data", corpus, "--checkpoint-dir", tmp_path / "run", "--virtual-devices", "2")
    two = ("--data-gpu", "0", "--model-gpu", "1", "--enable-memory-isolation", "--data-gpu-memory", "8192")
    result = run_myxtts("train", *places, *two)
    assert result.returncode == 2 and result.stdout == "" and not (tmp_path / "run").exists()
    [line] = result.stderr.splitlines()
    assert "--enable-memory-isolation needs GPUs; virtual devices share the computer's memory, leave it out" in line
