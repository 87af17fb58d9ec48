"""The stage model against arithmetic, and what is said about measured times."""

from dataclasses import replace

import numpy as np
import pytest

from myxtts.cli.flags import typed_flags
from myxtts.diagnostics.advice import Measured, Way, advise, find_bottleneck, recommend
from myxtts.diagnostics.stage_model import Arrangement, StageTimes, predict, simulate

RANDOM = np.random.default_rng(1).choice([1, 101], 240, p=[0.8, 0.2]).tolist()


def times(load=0.0, preprocess=0.0, transfer=0.0, train=0.0, batches=60) -> StageTimes:
    """Milliseconds, each a number or a list that is repeated."""
    return StageTimes(
        *(np.resize(np.array(value, float) / 1e3, batches) for value in (load, preprocess, transfer, train))
    )


def measured(stages: StageTimes, arrangement: Arrangement | None = None, **more) -> Measured:
    arrangement = arrangement or Arrangement()
    values = {"variation": 0.0, "load_cpu": 0.0, "cores": 2, **more}
    return Measured(stages, arrangement, predict(stages, arrangement), **values)


@pytest.mark.parametrize(
    ("mode", "expected"), [("sequential", 516.0), ("buffered", 515.0), ("split", 392.0), ("parallel", 257.5)]
)
def test_modes_take_what_arithmetic_says(mode, expected):
    assert 1e3 * predict(times(5, 123, 1, 392), Arrangement(mode=mode)) == pytest.approx(expected, rel=0.001)


def test_the_slowest_stage_sets_the_pace_and_workers_share_the_loading():
    assert 1e3 * predict(times(40, 5, 1, 15), Arrangement()) == pytest.approx(40, rel=0.01)
    assert 1e3 * predict(times(40, 5, 1, 15), Arrangement(workers=2)) == pytest.approx(20, rel=0.01)
    assert 1e3 * predict(times(40, 5, 1, 15), Arrangement(workers=4)) == pytest.approx(15, rel=0.01)


def test_a_deeper_buffer_absorbs_bursts():
    bursts = times(2, [200] + [2] * 15, 0, 21)
    shallow, deep = (predict(bursts, Arrangement(slots=slots)) for slots in (1, 16))
    assert shallow > 1.3 * deep and 1e3 * deep == pytest.approx(21, rel=0.03)


def test_what_is_got_is_trained_on_in_order():
    flow = simulate(times(3, [1, 30], 1, 10), Arrangement())
    assert (np.diff(flow.ended) > 0).all() and (flow.got[1:] >= flow.ended[:-1]).all()


@pytest.mark.parametrize(
    ("name", "stages", "arrangement", "more"),
    [
        ("disk", times(40, 5, 1, 15), Arrangement(), {"load_cpu": 0.1}),
        ("decode", times(40, 5, 1, 15), Arrangement(), {"load_cpu": 0.95}),
        ("preprocess", times(2, 40, 1, 15), Arrangement(), {}),
        ("transfer", times(2, 5, 30, 15), Arrangement(), {}),
        ("train", times(2, 5, 1, 40), Arrangement(), {}),
        ("balanced", times(2, 20, 1, 20), Arrangement(), {}),
        ("buffer", times([2] * 15 + [300], 2, 0, 21), Arrangement(ahead=2), {}),
        ("oscillation", times(2, [1] * 16 + [61] * 8, 0, 21, 240), Arrangement(), {}),
        ("jitter", times(2, RANDOM, 0, 21, 240), Arrangement(), {}),
        ("train", times(2, 5, 1, 40), Arrangement(mode="buffered"), {}),
    ],
)
def test_the_bottleneck_is_named(name, stages, arrangement, more):
    assert find_bottleneck(measured(stages, arrangement, **more))[0] == name


def test_findings_have_the_thresholds_of_the_specification():
    def names(*stages, variation=0.0) -> list[str]:
        return [finding.name for finding in advise(measured(times(*stages), variation=variation)).findings]

    assert names(5, 10, 5, 80) == []
    assert names(25, 5, 5, 65) == ["data loading > 20 %"]
    assert names(5, 5, 20, 70) == ["transfer > 15 %"]
    assert names(10, 40, 5, 45) == ["training < 50 %"]
    assert names(5, 10, 5, 80, variation=0.31) == ["variation > 30 %"]


def test_more_workers_are_recommended_as_they_were_measured():
    loads = {1: 0.040, 2: 0.020, 4: 0.011}
    first = recommend(measured(times(40, 5, 1, 15), load_seconds=loads))[0]
    assert first.settings == {"data.num_workers": 4} and 1e3 * first.expected_seconds == pytest.approx(15, rel=0.05)
    stuck = recommend(measured(times(40, 5, 1, 15), load_seconds={1: 0.040, 2: 0.040}))
    assert not stuck


def test_not_splitting_is_a_possible_answer():
    stages = times(1, 3, 60, 20)
    ways = {"split": Way(0.063, True), "buffered": Way(0.024, True), "parallel": Way(0.066, False)}
    advice = advise(measured(stages, ways=ways))
    assert advice.bottleneck == "transfer" and advice.best_way == "buffered"
    assert advice.recommendations[0].settings == {"data.pipeline": "buffered"}
    assert "do not split" in advice.recommendations[0].why and "measured" in advice.recommendations[0].why


def test_a_way_that_gains_nothing_is_not_recommended():
    ways = {"split": Way(0.040, True), "parallel": Way(0.0395, True)}
    advice = advise(measured(times(2, 5, 1, 40), ways=ways))
    assert advice.best_way == "split" and not advice.recommendations


def test_a_way_that_needs_a_second_card_is_recommended_only_where_there_is_one():
    ways = {"buffered": Way(0.060, True), "split": Way(0.040, False)}
    one = measured(times(1, 20, 1, 40), Arrangement(mode="buffered"), ways=ways)
    assert not recommend(one) and advise(one).best_way == "buffered"
    first = recommend(replace(one, spare_gpu=True))[0]
    assert typed_flags("train", first.settings) == "--data-gpu 0 --model-gpu 1 --pipeline split"
    assert "by the stage model" in first.why


def test_no_setting_is_expected_to_beat_the_cores():
    loads = {1: 0.040, 2: 0.020}
    first = recommend(measured(times(40, 5, 1, 15), load_seconds=loads, cpu_seconds=0.060, cores=2))[0]
    assert first.expected_seconds == 0.030
