"""When a run ends, and where its learning rate falls."""

import pytest

from myxtts.checkpoint.state import RunState
from myxtts.config.config import TrainingConfig
from myxtts.training.limits import LAST, Limits


def limits(state: RunState, **settings) -> Limits:
    return Limits(TrainingConfig(**{"max_steps": 10_000, "max_minutes": 10.0, **settings}), state, 100)


def test_a_run_without_a_clear_loss_goes_by_its_nearest_limit():
    assert limits(RunState(step=5000)).progress(60.0) == 0.5
    assert limits(RunState(step=5000)).progress(540.0) == pytest.approx(0.9)
    assert limits(RunState(batches=150), epochs=2).progress(60.0) == 0.75
    assert limits(RunState()).note_validation(0.0) == ""


def test_a_run_that_is_clear_settles_in_a_quarter_of_its_steps_and_ends():
    state = RunState(step=800)
    one = limits(state, clear_loss=0.2)
    assert one.note_validation(0.21) == "" and state.clear_at is None
    assert one.elapsed(60.0) == 0.0
    assert "200 steps to settle" in one.note_validation(0.19)
    assert state.clear_at == 800
    state.step = 900
    assert one.progress(60.0) == 0.5 and one.note_validation(0.1) == ""
    assert one.shown(60.0) == 0.9  # 900 of 1,000 steps lie behind
    state.step = 1000
    assert one.progress(60.0) == 1.0 and "`training.init_from`" in one.why_complete()


def test_a_loss_that_is_clear_when_the_time_is_over_promises_no_more_steps():
    state = RunState(step=800, seconds=600.0)
    assert limits(state, clear_loss=0.2).note_validation(0.1) == "" and state.clear_at is None
    assert "raise its limit" in limits(state, clear_loss=0.2).why_complete()


def test_a_run_that_never_is_clear_settles_in_the_last_part_of_its_time():
    one = limits(RunState(step=100), clear_loss=0.2)
    assert one.progress(600 * (1 - LAST)) == pytest.approx(0.01)  # of its steps
    assert one.progress(600 * (1 - LAST / 2)) == pytest.approx(0.5)
    assert one.progress(600.0) == pytest.approx(1.0)
    assert one.shown(300.0) == 0.5


def test_checkpoints_of_before_have_not_been_clear():
    document = RunState(step=3).to_document()
    document.pop("clear_at")
    assert RunState.from_document(document) == RunState(step=3)
