"""AdamW, the schedules, the flat vector and the bound of the host's lead."""

import math
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.config.load import build
from myxtts.training.optimizer import OptimizerState, adamw
from myxtts.training.parameters import ALIGNMENT, FlatParameters
from myxtts.training.run_ahead import RunAhead
from myxtts.training.schedule import Schedule

TRAINING = build({"training.clip_norm": 0.5, "training.weight_decay": 0.1}).training
YES, NO = tf.constant(True), tf.constant(False)


def start(size: int = 5) -> OptimizerState:
    weights = tf.constant(np.random.default_rng(0).normal(size=size), tf.float32)
    return OptimizerState(weights, weights, tf.zeros(size), tf.zeros(size), tf.zeros([], tf.int64))


def test_ten_steps_are_those_of_keras():
    state, random = start(), np.random.default_rng(1)
    variable = keras.Variable(state.weights.numpy())
    theirs = keras.optimizers.AdamW(1e-2, weight_decay=0.1, beta_2=0.98, epsilon=1e-8, global_clipnorm=0.5)
    theirs.build([variable])
    for number in range(10):
        gradient = tf.constant(random.normal(size=5) * (0.01 if number % 2 else 3.0), tf.float32)  # clipped, and not
        state = adamw(state, gradient, YES, tf.constant(1e-2), TRAINING)
        theirs.apply_gradients([(gradient, variable)])
        np.testing.assert_allclose(state.weights, variable.numpy(), rtol=1e-5, atol=1e-6)
    assert int(state.count) == 10 and not np.allclose(state.average, state.weights)


def test_a_step_that_is_not_finite_leaves_everything_and_frozen_weights_stay():
    state = start()
    poisoned = adamw(state, tf.constant([np.nan] * 5, tf.float32), NO, tf.constant(1e-2), TRAINING)
    for before, after in zip(state, poisoned, strict=True):
        np.testing.assert_array_equal(before, after)
    learning = tf.constant([True, False, True, False, True])
    moved = adamw(state, tf.ones(5), YES, tf.constant(1e-2), TRAINING, learning)
    assert ((moved.weights.numpy() == state.weights.numpy()) == ~learning.numpy()).all()


def test_the_schedule_follows_the_nearest_limit():
    config = build({"training.lr": 1.0 - 1e-9, "training.warmup_steps": 4, "training.max_steps": 100}).training
    schedule, zero = Schedule(config, batches=50, ahead=10), tf.constant(0.0)

    def rate(step: int, elapsed: float = 0.0) -> float:
        return float(schedule.rate(tf.constant(step, tf.int64), tf.constant(elapsed)))

    assert rate(0) == pytest.approx(0.25 * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * 10 / 50))), rel=1e-5)
    assert rate(20) == pytest.approx(0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * 30 / 50)), rel=1e-5)
    assert rate(20, 0.9) == pytest.approx(0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * 0.9)), rel=1e-5)
    assert rate(99) == pytest.approx(0.01, rel=1e-4)
    guided = [float(schedule.guidance(tf.constant(step, tf.int64))) for step in (0, 300, 600, 900)]
    assert guided == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert float(Schedule(config, guided=False).guidance(zero)) == 0.0


def test_slices_of_the_vector_are_the_parameters_and_no_copies():
    shapes = {"a": (3, 5), "b": (ALIGNMENT, 2), "c": (), "d": (7,), "e": (ALIGNMENT,)}
    random = np.random.default_rng(0)
    named = {name: keras.Variable(random.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()}
    parameters = FlatParameters(named)
    flat = parameters.flatten([variable.value for variable in named.values()])
    for part, variable in zip(parameters.slices(flat), named.values(), strict=True):
        np.testing.assert_array_equal(part, variable.numpy())
    assert parameters.count == 15 + 3 * ALIGNMENT + 1 + 7
    by_name = parameters.named(flat.numpy())
    assert {name: array.shape for name, array in by_name.items()} == parameters.named_shapes == shapes
    np.testing.assert_array_equal(parameters.join(dict(reversed(by_name.items()))), flat)
    begin = np.asarray(memoryview(flat)).__array_interface__["data"][0]
    for name, start in {"b": 0, "e": 2 * ALIGNMENT}.items():  # fill whole rows: views of the vector's own memory
        view = parameters.slices(flat)[list(shapes).index(name)]
        assert np.asarray(memoryview(view)).__array_interface__["data"][0] == begin + 4 * start
    parameters.release()
    assert parameters.released
    parameters.give_back(2 * flat)
    assert not parameters.released
    np.testing.assert_array_equal(named["a"].numpy(), 2 * by_name["a"])


class Pending:
    """Stands in for a result that a device still computes."""

    def __init__(self):
        self.done = threading.Event()

    def numpy(self):
        assert self.done.wait(60)


def test_the_loop_waits_for_the_step_two_before():
    steps, begun = [Pending() for _ in range(5)], []
    with RunAhead(2) as ahead:

        def loop():
            for number, step in enumerate(steps):
                begun.append(number)
                reached[number].set()
                ahead.add(step)

        reached = [threading.Event() for _ in steps]
        thread = threading.Thread(target=loop)
        thread.start()
        assert reached[2].wait(60) and not reached[3].is_set()  # the third is begun, the fourth must wait for the first
        steps[0].done.set()
        assert reached[3].wait(60) and not reached[4].is_set()
        for step in steps:
            step.done.set()
        thread.join(60)
    assert begun == list(range(5))
