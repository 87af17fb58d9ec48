"""What the driver tells about the cards while something runs.

In: ids as nvidia-smi numbers them.
Out: readings by card from a thread of its own, their statistics, and how two cards are linked; where the driver does
not tell a value, it is None and the reason is kept.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pynvml

PERIOD = 0.2  # seconds between two readings; the driver's own figures change about as often
MEASURES = {
    "utilisation": "%",
    "memory": "MB",
    "pcie_sent": "MB/s",
    "pcie_received": "MB/s",
    "power": "W",
    "temperature": "°C",
    "clock": "MHz",
}
THROTTLES = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "temperature",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "temperature (hardware)",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
}
LINKS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "on one board: the copy stays on it",
    pynvml.NVML_TOPOLOGY_SINGLE: "behind one PCIe switch: the copy does not pass the CPU",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "behind several PCIe switches: the copy does not pass the CPU",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "behind one PCIe host bridge: the copy passes the CPU's bridge",
    pynvml.NVML_TOPOLOGY_NODE: "on one socket, behind different host bridges: the copy passes the CPU",
    pynvml.NVML_TOPOLOGY_SYSTEM: "across sockets: the copy passes both CPUs, the slowest way",
}
NVLINK = "NVLink: the copy goes from card to card, faster than PCIe"
PEER_READ = 0  # NVML_P2P_CAPS_INDEX_READ, which pynvml gives as a tuple by a stray comma
NO_PEERS = "without peer access: the driver sends every copy through the computer's memory"


@dataclass(frozen=True)
class Statistics:
    """Of one measure of one card."""

    least: float
    mean: float
    most: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Statistics":
        found = np.asarray(values, float)
        return cls(float(found.min()), float(found.mean()), float(found.max()), float(found.std()))


@dataclass
class CardReadings:
    """One card: its name, the time of each reading and its values; a value is None where the driver gave none."""

    name: str = ""
    seconds: list[float] = field(default_factory=list)  # since the monitor began
    values: dict[str, list[float | None]] = field(default_factory=lambda: {name: [] for name in MEASURES})
    throttled: dict[str, int] = field(default_factory=dict)  # readings by reason
    missing: dict[str, str] = field(default_factory=dict)  # why a measure has no value

    def known(self, measure: str) -> list[float]:
        return [value for value in self.values[measure] if value is not None]

    def statistics(self, measure: str) -> Statistics | None:
        known = self.known(measure)
        return Statistics.of(known) if known else None

    @property
    def oscillation(self) -> float | None:
        """How far utilisation swings, 0 to 1; None without readings."""
        known = self.known("utilisation")
        return swing(known) / 100 if known else None


def swing(values: Sequence[float]) -> float:
    """From the low tenth to the high tenth, so that one odd reading does not count."""
    low, high = np.percentile(np.asarray(values, float), [10, 90])
    return float(high - low)


class GpuMonitor:
    """Reads the cards in the background while its block runs; `reason` tells why there is nothing to read.

    Args:
        ids: of the cards, as nvidia-smi numbers them.
        period: seconds between two readings.
        measures: those of MEASURES that are read.
    """

    def __init__(self, ids: Sequence[int], period: float = PERIOD, measures: Iterable[str] = MEASURES):
        self.cards: dict[int, CardReadings] = {number: CardReadings() for number in ids}
        self.reason = "" if ids else "no NVIDIA card is used"
        self._period, self._end = period, threading.Event()
        self._measures, self._lock = tuple(measures), threading.Lock()
        self._handles: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._watch, name="gpu monitor", daemon=True)
        self._begin = 0.0

    def __enter__(self) -> Self:
        self._begin = time.perf_counter()
        if self.cards:
            try:
                pynvml.nvmlInit()
            except pynvml.NVMLError as error:
                self.reason = f"NVIDIA driver: {error}"
            else:
                self._open()
                self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._thread.ident is not None:
            self._end.set()
            self._thread.join()
            pynvml.nvmlShutdown()

    def take_utilisation(self) -> dict[str, float]:
        """Mean share of each card's readings since the last call, 0 to 1; they are then forgotten, as a run is long."""
        found = {}
        for number, card in self.cards.items():
            with self._lock:
                known = card.known("utilisation")
                card.seconds.clear()
                for values in card.values.values():
                    values.clear()
            if known:
                found[str(number)] = sum(known) / len(known) / 100
        return found

    def _open(self) -> None:
        for number, card in self.cards.items():
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(number)
                card.name = _text(pynvml.nvmlDeviceGetName(handle))
                self._handles[number] = handle
            except pynvml.NVMLError as error:
                card.missing.update(dict.fromkeys(MEASURES, str(error)))

    def _watch(self) -> None:
        while True:
            for number in list(self._handles):
                if not self._read(self.cards[number], self._handles[number]):
                    del self._handles[number]
            if self._end.wait(self._period):
                return

    def _read(self, card: CardReadings, handle: Any) -> bool:
        """One reading of one card; False when the card is lost."""
        seconds, values, lost = time.perf_counter() - self._begin, dict[str, float | None](), False
        for measure in self._measures:
            values[measure] = None
            if measure not in card.missing:
                try:
                    values[measure] = float(QUESTIONS[measure](handle))
                except pynvml.NVMLError as error:
                    card.missing[measure] = str(error)
                    lost = lost or error.value == pynvml.NVML_ERROR_GPU_IS_LOST
        with self._lock:
            card.seconds.append(seconds)
            for measure, value in values.items():
                card.values[measure].append(value)
        for reason in _throttle_reasons(handle):
            card.throttled[reason] = card.throttled.get(reason, 0) + 1
        if lost:
            card.missing.update(dict.fromkeys(MEASURES, "the card was lost while it was watched"))
        return not lost


QUESTIONS: dict[str, Callable[[Any], float]] = {
    "utilisation": lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
    "memory": lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20,
    "pcie_sent": lambda handle: pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES) / 1024,
    "pcie_received": lambda handle: pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES) / 1024,
    "power": lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    "temperature": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    "clock": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
}


def _throttle_reasons(handle: Any) -> list[str]:
    for ask in (pynvml.nvmlDeviceGetCurrentClocksEventReasons, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons):
        try:  # older drivers know the second name only
            bits = ask(handle)
        except pynvml.NVMLError:
            continue
        return [words for bit, words in THROTTLES.items() if bits & bit]
    return []


def find_link(one: int, other: int) -> str:
    """How two cards reach each other, in words; empty where the driver does not tell."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ""
    try:
        first, second = (pynvml.nvmlDeviceGetHandleByIndex(number) for number in (one, other))
        if _peers(first, second, pynvml.NVML_P2P_CAPS_INDEX_NVLINK):
            return NVLINK
        if _peers(first, second, PEER_READ) is False:  # as for GeForce cards, whatever lies between
            return NO_PEERS
        return LINKS.get(pynvml.nvmlDeviceGetTopologyCommonAncestor(first, second), "")
    except pynvml.NVMLError:
        return ""
    finally:
        pynvml.nvmlShutdown()


def _peers(one: Any, other: Any, way: int) -> bool | None:
    """Whether one card reaches the other's memory that way; None where the driver does not tell."""
    try:
        return pynvml.nvmlDeviceGetP2PStatus(one, other, way) == pynvml.NVML_P2P_STATUS_OK
    except pynvml.NVMLError:
        return None


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
