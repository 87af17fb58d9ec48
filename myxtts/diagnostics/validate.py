"""Whether this machine can train on two devices, step by step, with the real model and the real pipeline.

In: the ids of two devices.
Out: five sections of checks; each says what was read back, or what to do.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from myxtts.cards import VISIBLE, find_cards
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.config.load import build
from myxtts.devices import (
    DevicePlan,
    best_device,
    import_tensorflow,
    memory_limits,
    move,
    plan_devices,
    require_on,
    select_gpus,
)
from myxtts.errors import RunError, UsageError

BATCHES = 3
NOT_RUN = "not run: it needs what failed above"


@dataclass(frozen=True)
class Check:
    """One line of the report; `detail` is what was found, or what to do."""

    name: str
    passed: bool
    detail: str = ""


@dataclass
class Section:
    name: str
    checks: list[Check] = field(default_factory=list)


def validate(data: DataConfig) -> Iterator[Section]:
    """Runs the five sections in order and yields each when it is done."""
    with ExitStack() as stack:
        yield from _Validation(data, stack).sections()


class _Validation:
    def __init__(self, data: DataConfig, stack: ExitStack):
        self._data, self._stack = data, stack
        self._virtual = bool(data.virtual_devices)
        self._failed = False
        self._found: dict[str, Any] = {}

    def sections(self) -> Iterator[Section]:
        parts = {
            "Prerequisites": self._prerequisites(),
            "Device placement": self._placement(),
            "Model creation on the model device": self._model(),
            "Data transfer": self._transfer(),
            "Pipeline simulation": self._simulation(),
        }
        for name, checks in parts.items():
            section = Section(name)
            for title, work in checks:
                section.checks.append(self._run(title, work))
            yield section

    def _run(self, title: str, work: Callable[[], str]) -> Check:
        if self._failed:
            return Check(title, False, NOT_RUN)
        try:
            return Check(title, True, work())
        except (UsageError, RunError) as error:
            self._failed = True
            return Check(title, False, str(error).removeprefix("❌ "))
        except Exception as error:  # a check that breaks has failed; the report says how
            self._failed = True
            return Check(title, False, f"{type(error).__name__}: {' '.join(str(error).split())}"[:300])

    # The checks of each section, as (title, work)

    def _prerequisites(self) -> list[tuple[str, Callable[[], str]]]:
        def driver() -> str:
            if self._virtual:
                return f"not needed: {self._data.virtual_devices} virtual devices, parts of the CPU, stand in for GPUs"
            select_gpus(self._data)  # before TensorFlow is imported; it counts and names what is missing
            return f"{len(find_cards())} GPUs, {VISIBLE}={os.environ[VISIBLE]}"

        def version() -> str:
            return str(import_tensorflow().__version__)

        def visible() -> str:
            tf = import_tensorflow()
            if self._virtual:
                return f"not needed, TensorFlow sees {len(tf.config.list_physical_devices('GPU'))}"
            gpus = tf.config.list_physical_devices("GPU")
            if len(gpus) != 2:
                raise RunError(
                    f"TensorFlow sees {len(gpus)} of 2 GPUs; install its CUDA packages: pip install 'myxtts[gpu]'"
                )
            return ", ".join(gpu.name for gpu in gpus)

        return [("Driver and GPU count", driver), ("TensorFlow", version), ("GPUs that TensorFlow sees", visible)]

    def _placement(self) -> list[tuple[str, Callable[[], str]]]:
        def ids() -> str:
            self._found["plan"] = plan = plan_devices(self._data)
            return f"data {plan.data_label}, model {plan.model_label}"

        def visible() -> str:
            data, model = (best_device(name) for name in (self._plan.data_device, self._plan.model_device))
            return f"{data} and {model}" + ("" if self._virtual else f" ({VISIBLE}={os.environ[VISIBLE]})")

        def memory() -> str:
            tf = import_tensorflow()
            if self._virtual:
                return "not needed, virtual devices share the computer's memory"
            if self._data.memory_isolation:
                gpus = tf.config.list_physical_devices("GPU")
                limits = [tf.config.get_logical_device_configuration(gpu)[0].memory_limit for gpu in gpus]
                if limits != list(memory_limits(self._data)):
                    raise RunError(f"the limits are {limits} MB; start in a new process")
                return f"limits {limits[0]} MB and {limits[1]} MB"
            for gpu in tf.config.list_physical_devices("GPU"):
                if not tf.config.experimental.get_memory_growth(gpu):
                    raise RunError(f"memory growth is off for {gpu.name}; start in a new process")
            return "on for both"

        def policy() -> str:
            tf = import_tensorflow()
            tf.config.experimental.set_device_policy("explicit")
            try:
                with tf.device(self._plan.data_device):
                    here = tf.constant([1.0, 2.0])
                with tf.device(self._plan.model_device):
                    try:
                        tf.raw_ops.AddV2(x=here, y=here)
                    except tf.errors.InvalidArgumentError:
                        return "explicit: an accidental copy between the devices is refused"
                    raise RunError("an accidental copy between the devices went unnoticed; is it one device?")
            finally:
                tf.config.experimental.set_device_policy("silent")

        return [
            ("Ids are valid", ids),
            ("Visible devices", visible),
            ("Memory growth", memory),
            ("Device policy", policy),
        ]

    def _model(self) -> list[tuple[str, Callable[[], str]]]:
        def create() -> str:
            tf = import_tensorflow()
            from myxtts.models.xtts import XTTS
            from myxtts.training.step import TrainStep

            config = self._config
            with tf.device(self._plan.model_device):
                model = XTTS(config.model, 40, config.audio.n_mels, card=self._plan.for_card)
                model.create_variables()
                step = TrainStep(model, config.training, self._plan.compiled)
            variables = step.variables()
            require_on(self._plan.model_device, variables, "the model")
            self._found |= {"model": model, "step": step}
            return f"{len(variables)} variables on {self._plan.model_device}"

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

        return [("Model created", create), ("Forward pass", forward)]

    def _transfer(self) -> list[tuple[str, Callable[[], str]]]:
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
            if not np.array_equal(self._found["moved"].numpy(), content):
                raise RunError("the transferred numbers are not the ones that were sent; check the cards' connection")
            return f"{content.size:,} numbers"

        return [
            ("Created on the data device", create),
            ("Transferred to the model device", transfer),
            ("Contents equal", compare),
        ]

    def _simulation(self) -> list[tuple[str, Callable[[], str]]]:
        def dataset() -> str:
            from myxtts.data.cache import learn_tokenizer, prepare
            from myxtts.data.dataset import HostDataset

            home = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
            config = build({"data.cache_dir": str(home / "cache"), "data.batch_size": 4, "data.buckets": 1})
            pack = prepare(_make_clips(home / "clips"), config)
            self._found["dataset"] = HostDataset(pack, learn_tokenizer([pack], config), config)
            return f"{len(pack)} clips in {self._found['dataset'].batches_per_epoch} batches"

        def model() -> str:
            from myxtts.pipeline.featurize import Featurizer

            self._found["featurizer"] = Featurizer(self._config)
            return f"{self._found['step'].parameters.count:,} parameters"

        def batches() -> str:
            tf = import_tensorflow()
            from myxtts.pipeline.clock import StageClock
            from myxtts.pipeline.feed import Feed

            losses = []
            with Feed(self._found["dataset"], self._found["featurizer"], self._plan, StageClock()) as feed:
                for batch in feed:
                    with tf.device(self._plan.model_device):
                        results = self._found["step"](batch)
                    losses.append(float(results["loss"]))
                    if len(losses) == BATCHES:
                        break
            if not np.isfinite(losses).all():
                raise RunError(f"losses {losses} are not numbers")
            return f"{BATCHES}, losses {', '.join(f'{loss:.2f}' for loss in losses)}"

        return [("Dataset", dataset), ("Model", model), ("Batches processed", batches)]

    @property
    def _plan(self) -> DevicePlan:
        return self._found["plan"]

    @property
    def _config(self) -> XTTSConfig:
        small = {"width": 32, "text_blocks": 1, "decoder_blocks": 2, "duration_blocks": 1, "speaker_tokens": 4}
        return build({f"model.{name}": value for name, value in small.items()})


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
