"""What `train` says of its settings before the first step: each finding with its flag; nothing where all is well."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from myxtts.cards import Card, FoundCards
from myxtts.cli.display import poor_setting_lines
from myxtts.cli.profile import keep_verdict
from myxtts.config.config import TrainingConfig, XTTSConfig
from myxtts.config.load import build
from myxtts.data.cache import prepare
from myxtts.devices import DevicePlan
from myxtts.diagnostics.advice import Way
from myxtts.diagnostics.startup import (
    CardInUse,
    StartupFacts,
    building_seconds,
    collect_facts,
    find_poor_settings,
    least_hours,
)
from myxtts.diagnostics.step_cost import COSTS
from myxtts.diagnostics.verdict import Verdict, device_keys, read_verdict, write_verdict
from tests.synthetic import make_hums

A100 = {"memory_mb": 40_960, "bandwidth": 1.555e12}
CARDS = (CardInUse("data", 0, **A100), CardInUse("model", 1, **A100))
GOOD = StartupFacts(
    speaks=True,
    size="small",
    cost=COSTS["small"],
    cards=CARDS,
    batch_shares=1,
    pipeline="split",
    batch_size=32,
    grad_accum=1,
    workers=0,
    cores=16,
    building_seconds=0.0,
    read_audio=29_000.0,
    static_shapes=True,
    clips=13_000,
    hours=24.0,
    mean_frames=560.0,
    longest_frames=860,
    preparing_mb=270.0,
)
ON_THE_CPU = replace(GOOD, cards=(), pipeline="buffered", read_audio=None)
TWO_CARDS = FoundCards(tuple(Card(f"GPU-{name}", name, 24_576, (8, 9), 1.008e12) for name in "ab"))
SPLIT = DevicePlan("/GPU:0", "/GPU:1", "0", "1", pipeline="split")


def advice(facts: StartupFacts) -> list[str]:
    """What is printed between the title and the last line."""
    lines = poor_setting_lines(find_poor_settings(facts))
    if not lines:
        return []
    assert lines[0].startswith("💡") and "myxtts profile" in lines[-1]
    return lines[1:-1]


def flags(facts: StartupFacts) -> list[str]:
    """What each finding asks to be typed."""
    return [line.split("; type ")[1] for line in advice(facts)]


@pytest.mark.parametrize(
    "facts",
    [
        GOOD,
        ON_THE_CPU,
        replace(GOOD, cards=CARDS[1:], pipeline="buffered"),
        replace(GOOD, workers=4),
        replace(GOOD, speaks=False, cost=COSTS["vocoder"], mean_frames=64.0, longest_frames=64, hours=0.1),
    ],
    ids=["two cards", "CPU", "one card", "workers chosen", "vocoder"],
)
def test_a_good_configuration_is_told_nothing(facts):
    assert poor_setting_lines(find_poor_settings(facts)) == []


# The batch


def test_a_batch_too_small_to_keep_a_card_busy():
    assert flags(replace(GOOD, batch_size=2)) == ["--batch-size 8"]
    tiny = replace(GOOD, size="tiny", cost=COSTS["tiny"], batch_size=16)
    assert flags(tiny) == ["--batch-size 32"]  # a smaller model needs more clips


def test_the_same_batch_keeps_a_slower_card_busy():
    slow = replace(CARDS[1], bandwidth=0.192e12)
    assert flags(replace(GOOD, batch_size=4, cards=(CARDS[0], slow))) == []


def test_parts_of_a_batch_are_made_larger_and_fewer():
    assert flags(replace(GOOD, batch_size=2, grad_accum=16)) == ["--batch-size 8 --grad-accum 4"]
    assert flags(replace(GOOD, batch_size=2, grad_accum=3)) == ["--batch-size 8 --grad-accum 3"]


def test_half_a_batch_is_what_each_of_two_training_cards_gets():
    assert flags(replace(GOOD, batch_size=8)) == []
    assert flags(replace(GOOD, batch_size=8, batch_shares=2, pipeline="parallel")) == ["--batch-size 16"]


@pytest.mark.parametrize(
    "change",
    [
        {"clips": 24},  # fewer than eight steps an epoch would be left
        {"longest_frames": 100_000},
        {"cards": (CARDS[0], replace(CARDS[1], bandwidth=None))},
        {"cost": None},  # a model of another shape than the presets
    ],
    ids=["few clips", "no memory", "bandwidth not told", "unknown model"],
)
def test_no_batch_is_recommended_that_would_not_do(change):
    assert flags(replace(GOOD, batch_size=2, **change)) == []


# The workers


def test_fewer_workers_than_decoding_could_use():
    facts = replace(ON_THE_CPU, workers=1, building_seconds=400.0)
    assert flags(facts) == ["--num-workers 0"] and "400 s with 1 of 16 cores" in advice(facts)[0]


@pytest.mark.parametrize("change", [{"building_seconds": 20.0}, {"cores": 1}, {"workers": 15}, {"workers": 0}])
def test_workers_that_lose_no_time_are_not_mentioned(change):
    facts = replace(ON_THE_CPU, workers=1, building_seconds=400.0)
    assert flags(replace(facts, **change)) == []


def test_fewer_workers_than_a_slow_disk_needs():
    assert flags(replace(GOOD, read_audio=500.0)) == ["--num-workers 3"]
    assert flags(replace(GOOD, read_audio=500.0, workers=3)) == []
    assert flags(replace(GOOD, read_audio=1.0)) == ["--num-workers 16"]


# Memory


def limited(data: int, model: int) -> StartupFacts:
    return replace(GOOD, cards=(replace(CARDS[0], limit_mb=data), replace(CARDS[1], limit_mb=model)))


def test_a_limit_above_what_the_card_has():
    assert flags(limited(8192, 50_000)) == ["--model-gpu-memory 39424"]
    assert flags(limited(40_960, 39_424)) == ["--data-gpu-memory 39424"]


def test_a_limit_far_below_what_the_card_has():
    assert flags(limited(8192, 6144)) == ["--model-gpu-memory 39424"]
    assert flags(limited(512, 39_424)) == ["--data-gpu-memory 39424"]
    assert flags(limited(8192, 24_000)) == []


def test_both_cards_that_train_want_their_memory():
    both = replace(limited(8192, 39_424), batch_shares=2, pipeline="parallel")
    assert flags(both) == ["--data-gpu-memory 39424"]


def test_a_card_of_unknown_memory_is_not_judged():
    unknown = tuple(replace(card, memory_mb=None, limit_mb=99_999) for card in CARDS)
    assert flags(replace(GOOD, cards=unknown)) == []


# Shapes and data


def test_static_shapes_switched_off():
    assert flags(replace(ON_THE_CPU, static_shapes=False)) == ["--enable-static-shapes"]
    assert "compiled anew" in advice(replace(GOOD, static_shapes=False))[0]


def test_a_vocoders_slices_have_one_shape_anyway():
    assert flags(replace(ON_THE_CPU, speaks=False, static_shapes=False)) == []


@pytest.mark.parametrize(
    ("size", "hours", "typed"),
    [
        ("big", 3.0, "--model-size normal"),
        ("normal", 1.0, "--model-size small"),
        ("small", 0.5, "--model-size tiny"),
        ("small", 0.05, "--model-size tiny --init-from english"),
        ("tiny", 0.05, "--init-from english"),
    ],
)
def test_a_dataset_too_small_for_the_model_size(size, hours, typed):
    assert flags(replace(ON_THE_CPU, size=size, hours=hours)) == [typed]


def test_a_larger_model_wants_more_speech():
    assert [round(least_hours(size), 1) for size in ("tiny", "small", "normal", "big")] == [0.2, 0.9, 2.6, 6.0]


def test_a_model_that_learned_before_keeps_its_size():
    assert flags(replace(ON_THE_CPU, size="big", hours=0.05, new_model=False)) == []


def test_the_voice_in_the_package_is_named_only_where_it_fits():
    facts = replace(ON_THE_CPU, hours=0.05, voice_fits=False)
    assert flags(facts) == ["--model-size tiny"] and flags(replace(facts, size="tiny")) == []


# The last profile

VERDICT = Verdict(
    "buffered", {"split": 120.0, "buffered": 90.0, "parallel": 100.0}, ("GPU-a", "GPU-b"), 16, "2026-05-01"
)


def test_two_cards_where_the_last_profile_said_one_is_better():
    facts = replace(GOOD, verdict=VERDICT)
    assert flags(facts) == ["--pipeline buffered"]
    assert "2026-05-01, batches of 16) measured 90.0 ms a step on one card and 120.0 with two" in advice(facts)[0]
    assert flags(replace(facts, pipeline="parallel", batch_shares=2)) == ["--pipeline buffered"]


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": replace(VERDICT, best_way="split")},
        {"verdict": replace(VERDICT, step_ms={"split": 92.0, "buffered": 90.0})},  # no more than noise
        {"cards": CARDS[1:], "pipeline": "buffered"},
        {"cards": ()},
    ],
    ids=["two are better", "noise", "one card", "no card"],
)
def test_a_verdict_that_does_not_speak_against_two_cards(change):
    assert flags(replace(replace(GOOD, verdict=VERDICT), **change)) == []


def test_a_verdict_is_kept_for_its_devices_and_its_model(tmp_path):
    config = build({"model.size": "small"})
    write_verdict(tmp_path, config, VERDICT)
    assert read_verdict(tmp_path, config, ("GPU-a", "GPU-b")) == VERDICT
    assert read_verdict(tmp_path, config, ("GPU-a", "GPU-c")) is None
    for other in ({"model.size": "big"}, {"training.target": "vocoder"}, {"training.mixed_precision": "bfloat16"}):
        assert read_verdict(tmp_path, build({"model.size": "small", **other}), ("GPU-a", "GPU-b")) is None
    newer = replace(VERDICT, best_way="split", date="2026-06-01")
    write_verdict(tmp_path, config, newer)
    assert read_verdict(tmp_path, config, ("GPU-a", "GPU-b")) == newer
    assert len(list((tmp_path / "profiles").iterdir())) == 1  # nothing unfinished is left


def test_a_profile_whose_verdict_cannot_be_kept_says_so_in_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    config = build({"data.cache_dir": str(tmp_path / "file")})
    keep_verdict({"split": Way(0.1, True), "parallel": Way(0.05, False)}, "split", ("0", "1"), config)
    said = capsys.readouterr()
    assert not said.out and said.err.count("\n") == 1 and "see --cache-dir" in said.err
    config = build({"data.cache_dir": str(tmp_path)})
    keep_verdict({"split": Way(0.1, True), "parallel": Way(0.05, False)}, "split", ("0", "1"), config)
    kept = read_verdict(tmp_path, config, ("0", "1"))
    assert kept is not None and kept.step_ms == {"split": 100.0}  # only what was measured


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"best_way": "buffered"}', "\x00\xff"])
def test_a_verdict_that_cannot_be_read_is_none(tmp_path, content):
    config = XTTSConfig()
    write_verdict(tmp_path, config, VERDICT)
    [file] = (tmp_path / "profiles").iterdir()
    file.write_text(content, encoding="latin-1")
    assert read_verdict(tmp_path, config, VERDICT.devices) is None


@pytest.mark.parametrize("change", [{"best_way": "sideways"}, {"step_ms": {"split": "fast"}}, {"devices": ["x"]}])
def test_a_verdict_with_wrong_content_is_none(tmp_path, change):
    config = XTTSConfig()
    write_verdict(tmp_path, config, VERDICT)
    [file] = (tmp_path / "profiles").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    assert read_verdict(tmp_path, config, VERDICT.devices) is None


# The facts


@pytest.fixture(scope="module")
def hums(tmp_path_factory) -> Path:
    return make_hums(tmp_path_factory.mktemp("startup") / "hums", 12)


@pytest.fixture
def config(hums, tmp_path) -> XTTSConfig:
    return build({"data.train_data": str(hums), "data.cache_dir": str(tmp_path), "data.batch_size": 2})


def test_facts_of_a_run_on_two_cards(hums, config, tmp_path):
    data = replace(config.data, memory_isolation=True, data_gpu=0, model_gpu=1, model_gpu_memory=4096)
    config = replace(config, data=data)
    write_verdict(tmp_path, config, VERDICT)
    pack = prepare(hums, config)
    facts = collect_facts(config, SPLIT, pack, TWO_CARDS, (0, 1))
    assert facts.cards == (
        CardInUse("data", 0, 24_576, 1.008e12, 0),
        CardInUse("model", 1, 24_576, 1.008e12, 4096),
    )
    assert facts.verdict == VERDICT and facts.cost == COSTS["tiny"] and facts.new_model
    assert facts.clips == 12 and facts.hours == pytest.approx(pack.seconds / 3600)
    assert 80 < facts.mean_frames < facts.longest_frames < 300 and facts.read_audio > 0
    swapped = collect_facts(config, replace(SPLIT, data_label="1", model_label="0"), pack, TWO_CARDS, (1, 0))
    assert [card.number for card in swapped.cards] == [1, 0] and swapped.verdict is None


def test_a_single_card_has_the_models_role(hums, config):
    facts = collect_facts(config, DevicePlan("/GPU:0", "/GPU:0"), prepare(hums, config), TWO_CARDS, (1,))
    assert [(card.role, card.number) for card in facts.cards] == [("model", 1)] and facts.verdict is None


@pytest.mark.parametrize("plan", [DevicePlan("/CPU:0", "/CPU:0"), DevicePlan("/CPU:0", "/CPU:1", virtual=2)])
def test_a_machine_without_cards_has_no_card_facts(hums, config, plan):
    facts = collect_facts(config, plan, prepare(hums, config), TWO_CARDS, ())
    assert facts.cards == () and facts.read_audio is None and facts.verdict is None


def test_a_vocoder_is_trained_on_slices(hums, config):
    vocoder = replace(config, training=TrainingConfig(target="vocoder"))
    facts = collect_facts(vocoder, SPLIT, prepare(hums, vocoder), TWO_CARDS, (0, 1))
    assert (facts.mean_frames, facts.longest_frames) == (64, 64) and facts.cost == COSTS["vocoder"]


def test_resuming_and_fine_tuning_start_no_new_model(hums, config):
    plan, pack = DevicePlan("/CPU:0", "/CPU:0"), prepare(hums, config)
    assert not collect_facts(config, plan, pack, TWO_CARDS, (), resumed=True).new_model
    tuned = replace(config, training=replace(config.training, init_from="english"))
    assert not collect_facts(tuned, plan, pack, TWO_CARDS, ()).new_model


def test_a_model_of_another_shape_has_no_known_cost(hums, config):
    narrow = replace(config, model=replace(config.model, width=32))
    assert collect_facts(narrow, SPLIT, prepare(hums, narrow), TWO_CARDS, (0, 1)).cost is None


def test_only_a_pack_that_was_built_just_now_took_time(hums, config):
    pack = prepare(hums, config)
    built = (pack.folder / "pack.json").stat().st_mtime
    assert building_seconds(pack, built - 5.0) >= 5.0
    assert building_seconds(pack, built + 5.0) == 0.0


def test_devices_are_known_by_what_does_not_change():
    assert device_keys(SPLIT, TWO_CARDS) == ("GPU-a", "GPU-b")
    assert device_keys(DevicePlan("/CPU:0", "/CPU:1", "/CPU:0", "/CPU:1", virtual=2), TWO_CARDS) == ("/CPU:0", "/CPU:1")


def test_estimates_agree_with_the_compiled_code():
    """The table that `make gpu-code` printed for 16 clips of 800 frames on an A100 (docs/gpu.md)."""
    small = COSTS["small"]
    assert small.launch_ms == pytest.approx(10.145)
    assert small.work_ms(16 * 800, 1.555e12) == pytest.approx(15.98, rel=0.01)
    assert small.held_mb(16 * 800) == pytest.approx(1366 + 3 * 4 * 13.65, rel=0.01)
    assert np.all(np.diff([COSTS[size].held_mb(16 * 800) for size in ("tiny", "small", "normal", "big")]) > 0)
