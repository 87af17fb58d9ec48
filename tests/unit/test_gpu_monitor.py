"""NVML's own bindings on a stand-in for the driver's library: readings, errors, lost cards, missing functions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import PATIENCE

STAND_IN = Path(__file__).parent.parent / "nvml_stand_in.c"

READINGS = 12  # of the first card, if it can be read, before the watch ends
WATCH = """
import json, sys, time
from myxtts.diagnostics.gpu_monitor import MEASURES, GpuMonitor
wanted, *ids = map(int, sys.argv[1:])
with GpuMonitor(ids, period=0.001) as monitor:
    while any(card.name and len(card.seconds) < wanted for card in list(monitor.cards.values())[:1]):
        time.sleep(0.001)
def describe(card):
    return {"name": card.name, "readings": len(card.seconds), "missing": card.missing,
            "throttled": list(card.throttled), "oscillation": card.oscillation,
            "mean": {m: s.mean if (s := card.statistics(m)) else None for m in MEASURES}}
print(json.dumps([monitor.reason, {number: describe(card) for number, card in monitor.cards.items()}]))
"""
TAKE = """
import json
from myxtts.diagnostics.gpu_monitor import GpuMonitor
found = {"0": [], "1": []}
with GpuMonitor([0, 1], period=0.001, measures=("utilisation",)) as monitor:
    while any(len(shares) < 2 for shares in found.values()):
        for card, share in monitor.take_utilisation().items():
            found[card].append(share)
monitor.take_utilisation()
print(json.dumps([found, monitor.take_utilisation(), [card.values["power"] for card in monitor.cards.values()]]))
"""
LINK = "import sys; from myxtts.diagnostics.gpu_monitor import find_link; print(find_link(0, 1))"


@pytest.fixture(scope="module")
def drivers(tmp_path_factory) -> dict[str, Path]:
    """A driver of today and one that lacks functions."""
    found = {}
    for name, flags in (("new", []), ("old", ["-DOLD"])):
        folder = tmp_path_factory.mktemp(name)
        command = ["gcc", "-shared", "-fPIC", *flags, "-o", str(folder / "libnvidia-ml.so.1"), str(STAND_IN)]
        subprocess.run(command, check=True)
        found[name] = folder
    return found


def ask(driver: Path, code: str, *words: int, **settings: int) -> str:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), **{k: str(v) for k, v in settings.items()}}
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def watch(driver: Path, *cards: int, **settings: int) -> tuple[str, dict]:
    return json.loads(ask(driver, WATCH, READINGS, *cards, **settings))


@pytest.fixture(scope="module")
def two_cards(drivers) -> tuple[str, dict]:
    return watch(drivers["new"], 0, 1, FAKE_GPUS=2)


def test_both_cards_are_read_in_the_background(two_cards):
    reason, cards = two_cards
    assert not reason and cards["0"]["name"] == "Stand-in 1"
    assert cards["0"]["readings"] >= READINGS and cards["1"]["readings"] >= READINGS - 1
    mean = cards["0"]["mean"]
    assert (mean["memory"], mean["power"], mean["temperature"], mean["clock"]) == (3072, 250, 61, 1500)
    assert (mean["pcie_sent"], mean["pcie_received"]) == (2, 4)
    assert cards["0"]["throttled"] == ["power cap"]


def test_what_a_card_does_not_tell_is_not_available_and_why(two_cards):
    _, cards = two_cards
    assert cards["1"]["mean"]["power"] is None and cards["1"]["missing"] == {"power": "Not Supported"}
    assert cards["1"]["mean"]["clock"] == 1500


def test_oscillation_is_the_swing_of_utilisation(drivers):
    _, cards = watch(drivers["new"], 0, FAKE_GPUS=1)
    assert cards["0"]["oscillation"] == pytest.approx(0.8)


def test_missing_functions_of_an_old_driver(drivers):
    _, cards = watch(drivers["old"], 0, FAKE_GPUS=1)
    assert cards["0"]["mean"]["power"] is None and "power" in cards["0"]["missing"]
    assert cards["0"]["throttled"] == ["temperature"]  # by the function's older name


def test_a_card_that_is_lost_is_told_and_the_other_goes_on(drivers):
    _, cards = watch(drivers["new"], 0, 1, FAKE_GPUS=2, FAKE_LOST_AFTER=6)
    assert cards["0"]["readings"] > cards["1"]["readings"] and not cards["0"]["missing"]
    assert set(cards["1"]["missing"].values()) == {"the card was lost while it was watched"}


def test_utilisation_is_taken_once_as_a_mean_by_card(drivers):
    found, nothing_new, power = json.loads(ask(drivers["new"], TAKE, FAKE_GPUS=2))
    assert all(0.1 <= share <= 0.9 for shares in found.values() for share in shares)
    assert nothing_new == {} and power == [[], []]


def test_no_driver_and_no_card(drivers):
    reason, cards = watch(drivers["new"], 0, FAKE_GPUS=-1)
    assert reason == "NVIDIA driver: Driver Not Loaded" and cards["0"]["readings"] == 0
    assert watch(drivers["new"])[0] == "no NVIDIA card is used"
    _, cards = watch(drivers["new"], 5, FAKE_GPUS=1)
    assert set(cards["5"]["missing"].values()) == {"Invalid Argument"}


def test_the_link_between_two_cards(drivers):
    assert ask(drivers["new"], LINK, FAKE_GPUS=2, FAKE_NVLINK=1).startswith("NVLink")
    assert ask(drivers["new"], LINK, FAKE_GPUS=2, FAKE_LEVEL=50).startswith("across sockets")
    assert ask(drivers["new"], LINK, FAKE_GPUS=2, FAKE_LEVEL=10).startswith("behind one PCIe switch")
    assert ask(drivers["new"], LINK, FAKE_GPUS=-1) == ""


def test_cards_without_peer_access_copy_through_the_computer(drivers):
    assert "without peer access" in ask(drivers["new"], LINK, FAKE_GPUS=2, FAKE_LEVEL=10, FAKE_NO_PEERS=1)
