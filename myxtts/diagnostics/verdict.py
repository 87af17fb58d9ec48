"""What a profile has found about the ways to use two devices, kept in the cache folder for the training that follows.

In: the step time of each way that was measured, on which devices and with which model.
Out: a small JSON file for each pair of devices and each model; the next profile of the same replaces it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from myxtts.cards import FoundCards
from myxtts.config.config import XTTSConfig
from myxtts.devices import DevicePlan
from myxtts.diagnostics.advice import WAYS
from myxtts.files import write_whole

FOLDER = "profiles"


@dataclass(frozen=True)
class Verdict:
    """The best of the ways that were measured, and what it was measured with."""

    best_way: str  # one of WAYS
    step_ms: Mapping[str, float]  # of each way that was measured
    devices: tuple[str, ...]  # that prepares, that trains: a card's UUID, else the device's name
    batch_size: int
    date: str  # as 2026-05-01


def device_keys(plan: DevicePlan, found: FoundCards) -> tuple[str, ...]:
    """Names of a plan's devices that mean the same ones tomorrow: ids change when a card is added."""
    labels = (plan.data_label, *plan.model_label.split(", "))
    return tuple(_key(label, plan, found) for label in labels)


def _key(label: str, plan: DevicePlan, found: FoundCards) -> str:
    if plan.uses_gpu and label.isdecimal() and int(label) < len(found):
        return found.cards[int(label)].uuid
    return label


def _place(root: Path, devices: tuple[str, ...], config: XTTSConfig) -> Path:
    """The file for these devices and this model; with another of either a step takes another time."""
    shapes = dataclasses.asdict(getattr(config, config.kind.section))
    described = [list(devices), config.training.target, shapes, config.training.mixed_precision]
    return root / FOLDER / f"{hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]}.json"


def write_verdict(root: Path, config: XTTSConfig, verdict: Verdict) -> None:
    """Keeps a verdict; a reader finds the old one or the new one, never a part.

    Raises:
        OSError: the cache folder cannot be written.
    """
    path = _place(root, verdict.devices, config)
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"target": config.training.target, "model_size": config.model.size}  # for people who look into it
    write_whole(path, json.dumps({**dataclasses.asdict(verdict), **about}, indent=1) + "\n")


def read_verdict(root: Path, config: XTTSConfig, devices: tuple[str, ...]) -> Verdict | None:
    """What the last profile of these devices and this model found; None without one that can be read."""
    try:
        return _parse(json.loads(_place(root, devices, config).read_text(encoding="utf-8")), devices)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parse(document: Any, devices: tuple[str, ...]) -> Verdict:
    step_ms = {str(way): float(value) for way, value in document["step_ms"].items()}
    best = document["best_way"]
    if best not in WAYS or best not in step_ms or tuple(document["devices"]) != devices:
        raise ValueError(f"{best!r} is no verdict on {devices}")
    return Verdict(best, step_ms, devices, int(document["batch_size"]), str(document["date"]))
