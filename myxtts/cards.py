"""Which cards this machine has, which of them a run may use, and under what names CUDA is told of them.

In: what the driver's own library (NVML) tells, ids as nvidia-smi gives them, CUDA_VISIBLE_DEVICES as it was set.
Out: the value of CUDA_VISIBLE_DEVICES that shows TensorFlow just the cards that are used; TensorFlow is not imported.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pynvml

from myxtts.errors import TooFewDevices, UsageError

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
TOO_NEW = 12  # compute capability from which on TensorFlow 2.21 aborts the process
RESERVED_MB = 1536  # of a card's memory that CUDA, cuDNN and cuBLAS need besides TensorFlow's own
ONE_DEVICE = "`data.data_gpu=none` `data.model_gpu=none`"
MODEL_GPU = "data.model_gpu"
INSTEAD = f"set `data.virtual_devices={{}}` to try it on the CPU, or {ONE_DEVICE} to use one device"


@dataclass(frozen=True)
class Card:
    """One card; what the driver does not tell is empty or None."""

    uuid: str
    name: str = ""
    memory_mb: int | None = None
    capability: tuple[int, int] | None = None
    bandwidth: float | None = None  # bytes of its memory that it reads or writes in a second, at most
    mig: bool = False  # cut into slices

    @property
    def too_new(self) -> bool:
        return self.capability is not None and self.capability[0] >= TOO_NEW


@dataclass(frozen=True)
class FoundCards:
    """The cards in the order of nvidia-smi, and why there are none."""

    cards: tuple[Card, ...]
    reason: str = ""

    def __len__(self) -> int:
        return len(self.cards)


def find_cards() -> FoundCards:
    """Asks the driver's own library, without TensorFlow."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return FoundCards((), f"NVIDIA driver: {error}")
    try:
        return FoundCards(tuple(map(_read_card, range(pynvml.nvmlDeviceGetCount()))))
    except pynvml.NVMLError as error:
        return FoundCards((), f"NVIDIA driver: {error}")
    finally:
        pynvml.nvmlShutdown()


def _read_card(number: int) -> Card:
    """What the driver tells of a card; one that it has lost has no UUID, and the others keep their ids."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
        uuid = pynvml.nvmlDeviceGetUUID(handle)
    except pynvml.NVMLError as error:
        return Card("", str(error))
    name = _ask(pynvml.nvmlDeviceGetName, handle) or ""
    memory, capability = (
        _ask(pynvml.nvmlDeviceGetMemoryInfo, handle),
        _ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle),
    )
    clock_mhz = _ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_MEM)
    width_bits = _ask(pynvml.nvmlDeviceGetMemoryBusWidth, handle)
    # Twice a clock: the figure so found is the data sheet's (A100 1.555e12, RTX 4090 1.008e12).
    bandwidth = 2 * clock_mhz * 1e6 * width_bits / 8 if clock_mhz and width_bits else None
    megabytes = memory.total >> 20 if memory else None
    sliced = (_ask(pynvml.nvmlDeviceGetMigMode, handle) or [0])[0] == 1
    return Card(uuid, name, megabytes, tuple(capability) if capability else None, bandwidth, sliced)


def _ask(question, *details):
    """An answer of the driver, or None where it has none; older drivers know fewer questions."""
    try:
        return question(*details)
    except pynvml.NVMLError:
        return None


def allowed_cards(found: FoundCards, preset: str | None) -> dict[int, str]:
    """The cards that a list which is already set leaves, by their ids, under the names that CUDA is to be told.

    A card is named by its UUID, which means the same card in whatever order CUDA counts.
    """
    entries = [str(number) for number in range(len(found))] if preset is None else _entries(preset)
    allowed: dict[int, str] = {}
    for entry in entries:
        number = card_number(entry, found)
        if number is None:
            break  # CUDA takes no notice of what stands behind an entry that it does not know
        if found.cards[number].uuid:
            allowed.setdefault(number, found.cards[number].uuid)
    return allowed


def _entries(preset: str) -> list[str]:
    return [entry.strip() for entry in preset.split(",") if entry.strip()]


def card_number(entry: str, found: FoundCards) -> int | None:
    """The id of the card that an entry of a list means."""
    if entry.isdecimal():
        return int(entry) if int(entry) < len(found) else None
    if not entry:
        return None
    matches = [number for number, card in enumerate(found.cards) if card.uuid and card.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None


def has_slices(preset: str | None) -> bool:
    """Whether a list names parts of a card (MIG)."""
    return any(entry.startswith("MIG-") for entry in _entries(preset or ""))


def choose_cards(wanted: Sequence[tuple[str, int]], found: FoundCards, preset: str | None) -> str:
    """The list of visible cards that shows TensorFlow the wanted ones in their order: (setting, id), (setting, id), ...

    Ids are nvidia-smi's. A list that is already set (by a scheduler) keeps its say: an id that it leaves out is
    refused.

    Raises:
        UsageError: too few cards, one that is not there, or one that cannot be used.
    """
    where = f" (in {VISIBLE}={preset})" if preset is not None else ""
    needed = len(wanted)
    if has_slices(preset) or any(found.cards[number].mig for _, number in wanted if number < len(found)):
        raise TooFewDevices(
            f"Multi-GPU requires at least {needed} GPUs{where}: CUDA gives a process one MIG slice only, however many "
            f"are listed; use whole cards, or {ONE_DEVICE} to use one slice"
        )
    allowed = allowed_cards(found, preset)
    reason = f" ({found.reason})" if found.reason else ""
    if len(allowed) < needed:
        instead = INSTEAD.format(needed)
        raise TooFewDevices(
            f"Multi-GPU requires at least {needed} GPUs, found {len(allowed)}{where}{reason}; {instead}"
        )
    for key, number in wanted:
        if number not in allowed:
            ids = sorted(usable_cards(found, preset) if len(usable_cards(found, preset)) >= needed else allowed)
            first = "" if all(role == MODEL_GPU for role, _ in wanted) else f"`data.data_gpu={ids[0]}` "
            others = ",".join(map(str, ids[needed - len([k for k, _ in wanted if k == MODEL_GPU]) : needed]))
            raise UsageError(
                f"`{key}={number}`: no such GPU{where}; found {', '.join(map(str, sorted(allowed)))}; "
                f"set {first}`{MODEL_GPU}={others}`"
            )
        if found.cards[number].too_new:
            raise UsageError(f"`{key}={number}`: {_why_too_new(found.cards[number])}")
    return ",".join(allowed[number] for _, number in wanted)


def choose_one(found: FoundCards, preset: str | None) -> str | None:
    """The list of visible cards for a run on one device: the first card that can be used; None leaves it as it is.

    Raises:
        UsageError: there are cards, and none of them can be used.
    """
    if has_slices(preset) and not all(card.too_new for card in found.cards):
        return _entries(preset or "")[0]  # of which card it is a slice, the driver's library tells only as root
    allowed = allowed_cards(found, None if has_slices(preset) else preset)
    usable = usable_cards(found, None if has_slices(preset) else preset)
    if allowed and not usable:
        reason = _why_too_new(found.cards[next(iter(allowed))])
        raise UsageError(f"{reason}; to use the CPU, put {VISIBLE}= (nothing behind it) before the command")
    return next(iter(usable.values()), None)


def usable_cards(found: FoundCards, preset: str | None) -> dict[int, str]:
    """The allowed cards that TensorFlow can use."""
    return {number: name for number, name in allowed_cards(found, preset).items() if not found.cards[number].too_new}


def _why_too_new(card: Card) -> str:
    major, minor = card.capability or (TOO_NEW, 0)
    return (
        f"{card.name or 'the GPU'} has compute capability {major}.{minor}, and TensorFlow 2.21 aborts on {TOO_NEW} and "
        "newer (tensorflow#111958); use an older card"
    )


def default_limit_mb(number: int, found: FoundCards) -> int:
    """The memory that a card can give to TensorFlow.

    Raises:
        UsageError: the driver does not tell.
    """
    memory = found.cards[number].memory_mb if number < len(found) else None
    if memory is None:
        raise UsageError(
            f"the driver does not tell how much memory GPU {number} has; say it in MB with `data.data_gpu_memory` "
            "and `data.model_gpu_memory`"
        )
    return max(RESERVED_MB, memory - RESERVED_MB)
