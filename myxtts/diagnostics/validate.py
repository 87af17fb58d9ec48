"""Whether this machine can train on two devices, step by step, with the real model and the real pipeline.

In: the ids of two devices.
Out: five sections of checks; each says what was found, or what to do. A check is left out only where one has failed
     that it needs.
"""

import itertools
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import soundfile

from myxtts.cards import VISIBLE, find_cards, usable_cards
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.config.load import build
from myxtts.devices import (
    DevicePlan,
    best_device,
    device_names,
    import_tensorflow,
    memory_limits,
    move,
    plan_devices,
    require_on,
    select_gpus,
)
from myxtts.diagnostics.checks import Check, Checks, Section, Step
from myxtts.errors import RunError, UsageError

BATCHES = 3
SYMBOLS = 40  # that the model of the third section reads
START_ANEW = "start it in a new process, before anything else uses TensorFlow"
ONE_DEVICE = (
    "leave `data.data_gpu` and `data.model_gpu` out to train on one, or add `data.virtual_devices=2` to try two on the "
    "CPU"
)


def validate(data: DataConfig) -> Iterator[Section | Check]:
    """Runs the five sections in order; yields each when it begins, and then each of its checks when it is made.

    Raises:
        UsageError: the settings name no two devices.
    """
    with ExitStack() as stack:
        yield from _Validation(data, stack).sections()


class _Validation:
    def __init__(self, data: DataConfig, stack: ExitStack):
        names = device_names(data)
        if len(names) != 2 or data.data_gpu is None:
            raise UsageError("two devices are validated; give `data.data_gpu` and `data.model_gpu`")
        self._data, self._stack = data, stack
        self._virtual = bool(data.virtual_devices)
        if self._virtual:
            self._data_name, self._model_name = self._labels = names[0], names[1]
        else:
            self._data_name, self._model_name = (name.strip("/") for name in names)
            self._labels = (f"GPU {data.gpus[0]}", f"GPU {data.gpus[1]}")
        self._checks = Checks()
        self._found: dict[str, Any] = {}

    def sections(self) -> Iterator[Section | Check]:
        self._select()
        between = f"{self._data_name} and {self._model_name}" if self._virtual else "GPUs"
        for title, steps in {
            "Checking prerequisites": self._prerequisites(),
            "Validating device placement configuration": self._placement(),
            f"Testing model creation on {self._model_name}": self._model(),
            f"Testing data transfer between {between}": self._transfer(),
            "Simulating training pipeline": self._simulation(),
        }.items():
            section = Section(title)
            yield section
            for step in steps:
                section.checks.append(self._checks.run(step))
                yield section.checks[-1]

    def _select(self) -> None:
        """Shows TensorFlow the two GPUs, or, where that is refused, all that it can use; both only work before it runs.

        A refusal is kept for the check that it belongs to.
        """
        try:
            select_gpus(self._data)
        except (UsageError, RunError) as error:
            self._found["refusal"] = error
            os.environ[VISIBLE] = ",".join(usable_cards(find_cards(), os.environ.get(VISIBLE)).values())

    # The steps of each section

    def _prerequisites(self) -> list[Step]:
        def driver() -> str:
            if self._virtual:
                return f"{self._data.virtual_devices} virtual devices, parts of the CPU, stand in for GPUs"
            found = find_cards()
            if not len(found):
                raise RunError("found 0 GPUs" + (f" ({found.reason})" if found.reason else ""))
            return f"{len(found)} GPU{'s' * (len(found) > 1)} detected"

        def version() -> str:
            return f"version {import_tensorflow().__version__}"

        def visible() -> str:
            tf = import_tensorflow()
            if self._virtual:
                plan_devices(self._data)
                return ", ".join(device.name for device in tf.config.list_logical_devices("CPU"))
            gpus, usable = _gpus(tf), len(usable_cards(find_cards(), os.environ.get(VISIBLE)))
            if usable < 2:
                raise UsageError(f"{usable} can be used here, two are needed; {ONE_DEVICE}")
            if len(gpus) < 2:
                raise RunError(f"it sees {len(gpus)}")
            return ", ".join(gpu.name for gpu in gpus)

        see = f"{self._data.virtual_devices} virtual devices" if self._virtual else "2 GPUs"
        packages = "install TensorFlow's CUDA packages: pip install 'myxtts[gpu]'"
        return [
            Step(
                "driver",
                f"NVIDIA driver {'not needed' if self._virtual else 'installed'}",
                driver,
                advice="install NVIDIA's driver until nvidia-smi lists your cards, or add `data.virtual_devices=2`",
                shows_detail=True,
            ),
            Step("tensorflow", "TensorFlow installed", version, advice=packages, shows_detail=True),
            Step(
                "seen",
                f"TensorFlow can see {see}",
                visible,
                ("driver", "tensorflow"),
                START_ANEW if self._virtual else packages,
            ),
        ]

    def _placement(self) -> list[Step]:
        pair = f"data_gpu={self._data.data_gpu}, model_gpu={self._data.model_gpu}"

        def ids() -> str:
            if refusal := self._found.get("refusal"):
                raise refusal
            return pair

        def visible() -> str:
            plan = plan_devices(self._data)
            found = [best_device(name) for name in (plan.data_device, plan.model_device)]
            self._found["plan"] = plan
            return " and ".join(found) + ("" if self._virtual else f" ({VISIBLE}={os.environ.get(VISIBLE)})")

        def policy() -> str:
            tf = import_tensorflow()
            tf.config.experimental.set_device_policy("silent")
            found = tf.config.experimental.get_device_policy()
            if found != "silent":
                raise RunError(f"it is {found!r}")
            return found

        return [
            Step("ids", f"GPU indices valid: {pair}", ids, ("driver",), START_ANEW),
            Step("plan", f"Set visible devices: {' and '.join(self._labels)}", visible, ("seen", "ids"), START_ANEW),
            *(self._memory(number, label) for number, label in enumerate(self._labels)),
            Step("policy", "Device policy set to 'silent'", policy, ("tensorflow",), START_ANEW),
        ]

    def _memory(self, number: int, label: str) -> Step:
        """Reads back what was set for one of the two devices."""

        def limit() -> str:
            tf = import_tensorflow()
            found = tf.config.get_logical_device_configuration(_gpus(tf)[number])[0].memory_limit
            if found != (wanted := memory_limits(self._data)[number]):
                raise RunError(f"it is {found} MB and was to be {wanted} MB")
            return f"{found} MB"

        def growth() -> str:
            tf = import_tensorflow()
            if not tf.config.experimental.get_memory_growth(_gpus(tf)[number]):
                raise RunError("it is off")
            return "on"

        key, needs = f"memory {number}", ("plan",)
        if self._virtual:
            name, reason = f"Memory growth not needed for {label}", "virtual devices share the computer's memory"
            return Step(key, name, lambda: reason, needs, shows_detail=True)
        if self._data.memory_isolation:
            return Step(key, f"Memory limit configured for {label}", limit, needs, START_ANEW, shows_detail=True)
        return Step(key, f"Memory growth configured for {label}", growth, needs, START_ANEW)

    def _model(self) -> list[Step]:
        def create() -> str:
            self._found["step"] = step = self._make_step()
            return f"{len(step.variables())} variables on {self._plan.model_device}"

        def forward() -> str:
            tf = import_tensorflow()
            from myxtts.batch import pack_speech, voiceless_batch
            from myxtts.training.step import EvaluateStep

            with tf.device(self._plan.model_device):
                batch = voiceless_batch(
                    tf.ones([2, 8], tf.int32), tf.fill([2], 8), tf.zeros([2, 64, 80]), tf.fill([2], 64),
                    tf.zeros([2, 16, 80]), tf.fill([2], 16), tf.ones([2]),
                )  # fmt: skip
                _, output = EvaluateStep(self._found["step"])(pack_speech(batch))
            require_on(self._plan.model_device, {"output": output.mel}, "forward pass")
            return f"output {tuple(output.mel.shape)} on {self._plan.model_device}"

        name = f"Model created successfully on {self._model_name}"
        return [
            Step("model", name, create, ("plan",), self._free_memory),
            Step("forward", "Forward pass successful", forward, ("model",), self._free_memory),
        ]

    def _transfer(self) -> list[Step]:
        content = np.random.default_rng(0).standard_normal((16, 256, 80)).astype(np.float32)

        def create() -> str:
            tf = import_tensorflow()
            with tf.device(self._plan.data_device):
                self._found["data"] = tf.constant(content)
            require_on(self._plan.data_device, {"tensor": self._found["data"]}, "data")
            return f"{content.nbytes / 2**20:.1f} MB on {self._plan.data_device}"

        def transfer() -> str:
            self._found["moved"] = move(self._found["data"], self._plan.model_device)
            require_on(self._plan.model_device, {"tensor": self._found["moved"]}, "data")
            return f"on {self._plan.model_device}"

        def compare() -> str:
            differing = int((self._found["moved"].numpy() != content).sum())  # host sync
            if differing:
                raise RunError(f"{differing:,} of {content.size:,} numbers are not the ones that were sent")
            return f"{content.size:,} numbers"

        connection = "nvidia-smi topo -m shows how the cards are connected; try two others, or a newer driver"
        advice = self._free_memory if self._virtual else connection
        return [
            Step("data", f"Created data on {self._data_name}", create, ("plan",), self._free_memory),
            Step("moved", f"Transferred data to {self._model_name}", transfer, ("data",), advice),
            Step("equal", "Data integrity verified after transfer", compare, ("moved",), advice),
        ]

    def _simulation(self) -> list[Step]:
        losses: list[float] = []

        def dataset() -> str:
            tf = import_tensorflow()
            from myxtts.data.packs import prepare_packs
            from myxtts.pipeline.featurize import Featurizer
            from myxtts.training.sets import make_sets

            home, device = Path(self._stack.enter_context(tempfile.TemporaryDirectory())), self._plan.data_device
            places: dict[str, Any] = {"train_data": str(_make_clips(home / "clips")), "cache_dir": str(home / "cache")}
            data = replace(self._data, **places, val_data="", batch_size=4, buckets=1, val_clips=0, min_clips=1)
            self._found["config"] = config = replace(self._config, data=data)
            self._found["packs"] = packs = prepare_packs(config)
            source, _ = make_sets(packs, packs.learn_tokenizer(config), config)
            raw = next(iter(source.batches(0, 1, True)))
            with tf.device(device):
                features = Featurizer(config)(move(raw.audio, device), move(raw.spans, device))
            require_on(device, {"features": features}, "dataset")
            clips = len(source.clips)
            return f"{clips} clips in {source.batches_per_epoch} batches, features {tuple(features.shape)}"

        def model() -> str:
            self._found["model"] = model = self._make_model()
            return f"{sum(weight.shape.num_elements() for weight in model.named_weights().values()):,} parameters"

        def process() -> str:
            from myxtts.pipeline.clock import StageClock
            from myxtts.training.run import Run

            self._found["run"] = run = Run(self._found["config"], self._found["packs"], self._found["model"])
            with run.feed(StageClock(), threading.Event()) as feed:
                for batch in itertools.islice(feed, BATCHES):
                    losses.append(float(run.take_step(batch)["loss"]))  # host sync
            return f"losses {', '.join(f'{loss:.2f}' for loss in losses)}"

        def conclude() -> str:
            if not np.isfinite(losses).all():
                raise RunError(f"the losses {losses} are not finite")
            require_on(self._plan.model_device, self._found["run"].step.variables(), "the model after training")
            return "losses are finite, variables are where they were made"

        room = f"see that {tempfile.gettempdir()} has room, or set TMPDIR to a folder that has"
        wrong = self._free_memory if self._virtual else "nvidia-smi -q shows the cards' own errors; try two others"
        return [
            Step("dataset", f"Created dataset on {self._data_name}", dataset, ("plan",), room),
            Step("trained", f"Created model on {self._model_name}", model, ("plan",), self._free_memory),
            Step(
                "batches",
                f"Processed {BATCHES} batches successfully",
                process,
                ("dataset", "trained"),
                self._free_memory,
            ),
            Step("simulation", "Pipeline simulation successful", conclude, ("batches",), wrong),
        ]

    def _make_step(self) -> Any:
        """The real training step around a small model, every variable of it on the model device."""
        tf = import_tensorflow()
        from myxtts.training.step import TrainStep
        from myxtts.training.targets import make_target

        objective, model = make_target(self._config, SYMBOLS, self._plan.for_card).objective, self._make_model()
        with tf.device(self._plan.model_device):
            step = TrainStep(model, objective, self._config.training, self._plan.compiled)
        require_on(self._plan.model_device, step.variables(), "the model")
        return step

    def _make_model(self) -> Any:
        """The real model in a small size, every variable of it on the model device."""
        tf = import_tensorflow()
        from myxtts.training.targets import make_target

        with tf.device(self._plan.model_device):
            model = make_target(self._config, SYMBOLS, self._plan.for_card).make_model()
            model.create_variables()
        require_on(self._plan.model_device, model.named_weights(), "the model")
        return model

    @property
    def _free_memory(self) -> str:
        if self._virtual:
            return "end programs that use the computer's memory and try again"
        return "nvidia-smi shows what else uses the GPUs; end that and try again, or name other ids"

    @property
    def _plan(self) -> DevicePlan:
        return self._found["plan"]

    @property
    def _config(self) -> XTTSConfig:
        small = {"width": 32, "text_blocks": 1, "decoder_blocks": 2, "duration_blocks": 1, "speaker_tokens": 4}
        return build({f"model.{name}": value for name, value in small.items()})


def _gpus(tf: ModuleType) -> list[Any]:
    return tf.config.list_physical_devices("GPU")


def _make_clips(folder: Path) -> Path:
    """A dozen hums with a text: enough for the real pipeline to run on."""
    (folder / "wavs").mkdir(parents=True)
    rate = XTTSConfig().audio.sample_rate
    lines = []
    for number in range(4 * BATCHES):
        time = np.arange(2 * rate) / rate
        wave = 0.3 * np.sin(2 * np.pi * (120 + 10 * number) * time) * (0.6 + 0.4 * np.sin(8 * time))
        soundfile.write(folder / "wavs" / f"{number}.wav", wave, rate)
        lines.append(f"{number}|Good morning, all of you.\n")
    (folder / "metadata.csv").write_text("".join(lines), encoding="utf-8")
    return folder
