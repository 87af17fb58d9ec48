"""Which device prepares the data and which one trains. The only module that knows device names.

In: the ids, limits and mode of a `DataConfig`; what NVML and TensorFlow find on this machine.
Out: a `DevicePlan` whose names every other module passes on.

It is a long file because of that: whatever has to name a device is here.
"""

import os
import re
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from myxtts.cards import MODEL_GPU, ORDER, VISIBLE, card_number, choose_cards, choose_one, default_limit_mb, find_cards
from myxtts.config.config import DataConfig
from myxtts.errors import RunError, TooFewDevices, UsageError
from myxtts.runtime import import_tensorflow

POLICY = "MYXTTS_DEVICE_POLICY"  # "explicit" makes an accidental copy between devices an error; tests set it
HOST = "/CPU:0"
TWO_GPUS = "`data.data_gpu=0` `data.model_gpu=1`"
BOTH_IDS = "give two different ids, or neither to use one device"
_DEFAULTS = DataConfig()
_chosen: dict[str, str | None] = {}  # the list of visible devices that we set, and the one before it


@dataclass(frozen=True)
class DevicePlan:
    """Names of the roles; where one device does both, or those that train prepare too, the first two are equal."""

    data_device: str
    model_device: str  # the first that trains
    data_label: str = ""  # what a person calls it: a GPU's id, or the device's name
    model_label: str = ""  # of all that train
    helpers: tuple[str, ...] = ()  # others that train
    pipeline: str = "buffered"  # sequential, buffered, split or parallel
    virtual: int = 0
    xla: str = "auto"  # one of config.XLA
    processes: int = 1  # that train together, each with devices like these

    @property
    def two_devices(self) -> bool:
        return self.data_device != self.model_device

    @property
    def training_devices(self) -> tuple[str, ...]:
        """All that train, each on its shard of a batch."""
        also = (self.data_device,) if self.pipeline == "parallel" and self.data_device != self.model_device else ()
        return (self.model_device, *self.helpers, *also)

    @property
    def shares_batches(self) -> bool:
        """Whether several devices train on shards of each batch, here or elsewhere."""
        return len(self.training_devices) > 1 or self.processes > 1

    @property
    def trains_on_gpu(self) -> bool:
        return "GPU" in self.model_device

    @property
    def uses_gpu(self) -> bool:
        return self.trains_on_gpu or "GPU" in self.data_device

    @property
    def compiled(self) -> bool:
        """Whether XLA compiles the whole training step.

        That is worth it on a card, where it saves most of the launches, and takes twice as long on a CPU.
        """
        return self.xla == "on" or (self.xla == "auto" and self.trains_on_gpu)

    @property
    def for_card(self) -> bool:
        """Whether layers take the forms that a card is quick at, which they are only where XLA compiles them."""
        return self.trains_on_gpu and self.compiled

    @property
    def preparing_devices(self) -> tuple[str, ...]:
        """All that prepare: one for the whole batch, or each that trains its own shard."""
        return (self.data_device,) if self.data_device not in self.training_devices else self.training_devices

    @property
    def prepares_while_training(self) -> bool:
        """Whether a device that trains also prepares."""
        return self.data_device in self.training_devices

    def alone(self) -> "DevicePlan":
        """The same with everything on the model device, for what is not worth two."""
        if not self.shares_batches:
            return self
        return replace(
            self,
            data_device=self.model_device,
            data_label=self.model_label,
            helpers=(),
            pipeline="buffered",
            processes=1,
        )

    def with_model_on(self, device: str) -> "DevicePlan":
        """The same plan with another model device, named in any of TensorFlow's ways.

        Raises:
            UsageError: several devices train, and the settings name them.
        """
        name = plain_name(device)
        if self.shares_batches:
            raise UsageError(
                f"{name} was asked for, and {', '.join(self.training_devices)} train; set `data.model_gpu`"
            )
        return replace(self, model_device=name, model_label=name)


@dataclass(frozen=True)
class Place:
    """A device, and what is held while it is given work: threads that share a card take turns."""

    device: str
    lock: AbstractContextManager = field(default_factory=nullcontext)


def plain_name(device: str) -> str:
    """`/CPU:0` for `cpu:0`, `/device:CPU:0` and the like.

    Raises:
        UsageError: it names no CPU or GPU.
    """
    match = re.search(r"(?:^|/|:)(CPU|GPU)(?::(\d+))?$", device.upper())
    if not match:
        raise UsageError(f"{device!r} is no device; write /GPU:0 or /CPU:0")
    return f"/{match[1]}:{match[2] or 0}"


# Before TensorFlow


def check_request(data: DataConfig) -> None:
    """Refuses settings that no machine could satisfy.

    Raises:
        UsageError: with what was found and what to type.
    """
    gpus = data.gpus
    if data.virtual_devices < 0 or data.virtual_devices > 64:
        raise UsageError(f"`data.virtual_devices` is {data.virtual_devices}; choose 1 to 64, or 0 for none")
    if not gpus and data.data_gpu is not None:
        raise UsageError(f"`data.data_gpu={data.data_gpu}` needs `data.model_gpu` too; {BOTH_IDS}")
    if not gpus and data.model_gpu is not None:
        raise UsageError(f"`data.model_gpu={data.model_gpu}` needs `data.data_gpu` too; {BOTH_IDS}")
    if data.processes > 1 and data.virtual_devices and len(data.model_gpus) > 1:
        raise UsageError(
            f"`data.model_gpu={','.join(map(str, data.model_gpus))}`: among several processes one virtual device of "
            "each can train; start more processes"
        )
    if data.processes > 1 and data.pipeline in ("parallel", "sequential"):
        raise UsageError(f"`data.pipeline={data.pipeline}` is for one process; leave it out in a cluster")
    if data.data_gpu in data.model_gpus:
        raise UsageError(f"`data.data_gpu` and `data.model_gpu` are both {data.data_gpu}; {BOTH_IDS}")
    if twice := [number for number in data.model_gpus if data.model_gpus.count(number) > 1]:
        raise UsageError(f"`data.model_gpu` names GPU {twice[0]} twice; name each once")
    if gpus and data.data_gpu is None and data.data_gpu_memory not in (0, 8192):
        raise UsageError("`data.data_gpu_memory` needs `data.data_gpu`; without it each card that trains prepares")
    if data.memory_isolation and not gpus:
        raise UsageError(f"`data.memory_isolation` needs two GPUs; add {TWO_GPUS}")
    if data.memory_isolation and data.virtual_devices:
        raise UsageError(
            "`data.memory_isolation` needs GPUs; virtual devices share the computer's memory, leave it out for them"
        )
    for name, once_usual in (("data_gpu_memory", 8192), ("model_gpu_memory", 16384)):  # saved configurations hold these
        if getattr(data, name) not in (0, once_usual) and not data.memory_isolation:
            raise UsageError(f"`data.{name}` needs `data.memory_isolation`")
    if data.pipeline in ("split", "parallel") and (not gpus or data.data_gpu is None):
        raise UsageError(f"`data.pipeline={data.pipeline}` needs two devices; add {TWO_GPUS}")
    if data.pipeline in ("parallel", "buffered") and len(data.model_gpus) > 1 and data.data_gpu is not None:
        raise UsageError(
            f"`data.pipeline={data.pipeline}` has no device that only prepares; leave `data.data_gpu` or it out"
        )
    if data.pipeline == "parallel" and data.batch_size % 2:
        raise UsageError(
            f"`data.pipeline=parallel` halves every batch; `data.batch_size={data.batch_size}` must be even"
        )
    if gpus and data.virtual_devices and max(gpus) >= data.virtual_devices:
        raise TooFewDevices(
            f"Multi-GPU requires devices {and_last(gpus)}, found {data.virtual_devices} virtual devices; "
            f"set `data.virtual_devices={max(gpus) + 1}`"
        )


def and_last(numbers: Sequence[object]) -> str:
    """`0, 1 and 2`."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def select_gpus(data: DataConfig) -> None:
    """Checks the request and makes just the cards that are used visible to TensorFlow.

    Must run before TensorFlow looks at the devices: it lists visible GPUs in physical order whatever it is told later,
    and takes memory on each of them. Called again it changes nothing.
    """
    check_request(data)
    preset = os.environ.get(VISIBLE)
    if _chosen.get("ours") == preset is not None:  # the list is ours from an earlier call: ids mean the one before it
        preset = _chosen["preset"]
    found, visible = find_cards(), None
    if data.virtual_devices:
        visible = "" if len(found) else None  # no card is used: none is shown
    elif data.gpus:
        keys = (("data.data_gpu" if gpu == data.data_gpu else MODEL_GPU, gpu) for gpu in data.gpus)
        visible = choose_cards(list(keys), found, preset)
    else:
        visible = choose_one(found, preset)
    if visible is None:  # no card; whatever is set stays
        return
    if os.environ.get(VISIBLE) != visible and _has_listed_devices():
        if data.virtual_devices or not data.gpus:
            return  # it has been told before, or somebody else decides
        raise RunError("TensorFlow already uses the GPUs; call myxtts.devices.select_gpus(config.data) before it does")
    os.environ[VISIBLE], os.environ[ORDER] = visible, "PCI_BUS_ID"
    _chosen.update(ours=visible, preset=preset)


def _has_listed_devices() -> bool:
    """Whether TensorFlow has looked at the devices; being imported is not enough for that."""
    if "tensorflow" not in sys.modules:
        return False
    from tensorflow.python.eager import context

    return _has_started() or getattr(context.context(), "_physical_devices", None) is not None


# TensorFlow itself


def plan_devices(data: DataConfig = _DEFAULTS, xla: str = "auto") -> DevicePlan:
    """Sets TensorFlow's devices up as asked and names the roles.

    The plan decides all that depends on the kind of device.

    Raises:
        UsageError: the request cannot be met on this machine.
        RunError: TensorFlow has already started with other devices.
    """
    select_gpus(data)
    tf = import_tensorflow()
    names = device_names(data)
    if data.virtual_devices:
        _split_cpu(tf, data.virtual_devices)
        names = labels = names or (HOST,)
    else:
        gpus = tf.config.list_physical_devices("GPU")
        if names and len(gpus) != len(names):
            raise TooFewDevices(
                f"Multi-GPU requires at least {len(names)} GPUs, found {len(gpus)} that TensorFlow can use; install "
                "its CUDA packages (pip install 'myxtts[gpu]') and run myxtts validate"
            )
        set_memory(tf, gpus, data)
        labels = tuple(map(str, data.gpus))
        if not names:
            names = labels = ("/GPU:0" if gpus else HOST,)
    pipeline = data.pipeline or ("buffered" if data.data_gpu is None else "split")
    found = list(zip(names, labels, strict=True))
    own = found.pop(data.gpus.index(data.data_gpu)) if data.data_gpu in data.gpus else None  # that only prepares
    model_label = ", ".join(label for _, label in found)
    prepares = own if own and pipeline != "buffered" else (found[0][0], model_label)
    return DevicePlan(
        prepares[0],
        found[0][0],
        prepares[1],
        model_label,
        helpers=tuple(name for name, _ in found[1:]),
        pipeline=pipeline,
        virtual=data.virtual_devices,
        xla=xla,
        processes=data.processes,
    )


def device_names(data: DataConfig) -> tuple[str, ...]:
    """What TensorFlow calls the devices of the ids, in the order in which it sees GPUs.

    Among several processes virtual devices are counted like GPUs, because only the first can train together.
    """
    virtual = data.virtual_devices
    number = lambda place, gpu: gpu if virtual and data.processes == 1 else place  # noqa: E731
    return tuple(f"/{'CPU' if virtual else 'GPU'}:{number(place, gpu)}" for place, gpu in enumerate(data.gpus))


def best_device(wanted: str | None = None) -> str:
    """The wanted device, else the first GPU, else the CPU; TensorFlow is shown one GPU where one is wanted.

    Raises:
        UsageError: the wanted one is not here; TensorFlow would take another without a word.
    """
    if not _has_listed_devices() and (wanted is None or plain_name(wanted) == "/GPU:0"):
        select_gpus(_DEFAULTS)
    tf = import_tensorflow()
    found = [plain_name(device.name) for device in tf.config.list_logical_devices() if device.device_type in "CPU GPU"]
    if wanted is None:
        return "/GPU:0" if "/GPU:0" in found else HOST
    if plain_name(wanted) not in found:
        raise UsageError(f"there is no device {wanted}; found {', '.join(found)}")
    return plain_name(wanted)


def _split_cpu(tf: ModuleType, count: int) -> None:
    """Makes `count` devices of the CPU, each with its share of the cores."""
    if len(tf.config.list_logical_devices("CPU") if _has_started() else []) == count:
        return
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
        tf.config.threading.set_intra_op_parallelism_threads(max(1, (os.cpu_count() or 1) // count))
    except RuntimeError:
        raise RunError(
            "TensorFlow has already started with other devices; virtual devices need a new process"
        ) from None


def _has_started() -> bool:
    from tensorflow.python.eager import context  # no public name tells it

    return context.context()._initialized


def memory_limits(data: DataConfig) -> tuple[int, ...]:
    """MB that each of the GPUs may use; none where memory is not limited. By default all that a card can give."""
    if not data.memory_isolation:
        return ()
    asked = ((gpu, data.data_gpu_memory if gpu == data.data_gpu else data.model_gpu_memory) for gpu in data.gpus)
    return tuple(limit or default_limit_mb(number, find_cards()) for number, limit in asked)


def set_memory(tf: ModuleType, gpus: list, data: DataConfig) -> None:
    """Hard limits where asked for, else memory that grows."""
    limits = memory_limits(data)
    try:
        for gpu, limit in zip(gpus, limits, strict=False):
            configuration = tf.config.LogicalDeviceConfiguration(memory_limit=limit)
            tf.config.set_logical_device_configuration(gpu, [configuration])
        for gpu in gpus if not limits else []:
            tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError:
        raise RunError("TensorFlow has already started; device memory must be set before that") from None


@contextmanager
def guarded_copies() -> Iterator[None]:
    """Inside the block, in this thread, only `tf.identity` may move a tensor between devices, where tests ask for that.

    TensorFlow's own construction code copies small constants, so building is not guarded; preparing and training are.
    """
    if os.environ.get(POLICY) != "explicit":
        yield
        return
    # TensorFlow's public setter compares with what another thread has set and then does nothing.
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    handle = context.context()._handle
    before = pywrap_tfe.TFE_ContextGetDevicePlacementPolicy(handle)
    pywrap_tfe.TFE_ContextSetThreadLocalDevicePlacementPolicy(handle, context.DEVICE_PLACEMENT_EXPLICIT)
    try:
        yield
    finally:
        pywrap_tfe.TFE_ContextSetThreadLocalDevicePlacementPolicy(handle, before)


def move(tensor: Any, device: str) -> Any:
    """A tensor on another device, copied only where it is not there yet."""
    tf = import_tensorflow()
    with tf.device(device):
        return tf.identity(tensor)


def memory_peaks(plan: DevicePlan) -> dict[str, float | None]:
    """The most memory in MB that TensorFlow has used on each GPU; None for a CPU, of which it keeps no account."""
    tf = import_tensorflow()
    peaks: dict[str, float | None] = {}
    for device in dict.fromkeys((plan.data_device, *plan.training_devices)):
        if "GPU" not in device:
            peaks[device] = None
        else:
            peaks[device] = tf.config.experimental.get_memory_info(device.strip("/"))["peak"] / 2**20
    return peaks


def process_peak_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def watched_gpus(data: DataConfig) -> tuple[int, ...]:
    """The ids, as nvidia-smi gives them, of the GPUs that a run with these settings uses; none for MIG slices."""
    if data.virtual_devices:
        return ()
    if data.gpus:
        return data.model_gpus if data.pipeline == "buffered" else data.gpus
    select_gpus(data)
    number = card_number(os.environ.get(VISIBLE, "").split(",")[0].strip(), find_cards())
    return () if number is None else (number,)


def wait_for(tensor: Any) -> None:
    """Returns when a tensor has been computed: reading one number of it waits for the device."""
    tf = import_tensorflow()
    with tf.device(plain_name(_where(tensor))):
        tf.reshape(tensor, [-1])[:1].numpy()  # host sync


def require_on(device: str, tensors: Mapping[str, Any], what: str) -> None:
    """Reads back where tensors or variables lie.

    Raises:
        RunError: one of them is elsewhere.
    """
    wanted = device.strip("/")
    for name, tensor in tensors.items():
        found = _where(tensor)
        if not found.endswith(wanted):
            raise RunError(f"{what}: {name} lies on {found or 'no device'}, it must be on {device}")


def _where(tensor: Any) -> str:
    value = getattr(tensor, "value", None)
    if value is not None and not callable(value):  # a Keras variable
        tensor = value
    # `device` tells where an operation ran, `backing_device` where the memory is.
    return getattr(tensor, "backing_device", None) or tensor.device
