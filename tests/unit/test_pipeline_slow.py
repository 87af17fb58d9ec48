"""The feed between two devices, at length (`make test-slow`)."""

import itertools
import re
import time
from dataclasses import replace

import pytest

from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import Feed
from tests.test_intelligent_gpu_pipeline import (
    CONFIG,
    Source,
    break_stage,
    compile_features,
    start_and_stop,
)
from tests.two_devices import PLAN

STEP_SECONDS = 0.05


class Sleepy(Featurizer):
    def __call__(self, audio, spans):
        time.sleep(STEP_SECONDS)
        return super().__call__(audio, spans)


@pytest.mark.slow
def test_preparing_takes_no_time_of_a_step():
    """Two sleeps of the same length, one on each side, take little more than one.

    On a busy machine a try can be slow; without overlap no try could be quick.
    """
    featurizer, tries = Sleepy(CONFIG), list[float]()

    def measure(mode: str) -> float:
        with Feed(Source(20), featurizer, replace(PLAN, pipeline=mode), StageClock()) as feed:
            source = iter(feed)
            next(source)
            begin = time.perf_counter()
            for _ in source:
                time.sleep(STEP_SECONDS)
            return time.perf_counter() - begin

    quickest = measure("sequential")
    assert quickest > 19 * 2 * STEP_SECONDS
    while len(tries) < 5 and (not tries or tries[-1] >= 0.75 * quickest):
        quickest = min(quickest, measure("sequential"))
        tries.append(measure("split"))
    assert tries[-1] < 0.75 * quickest, tries


@pytest.mark.slow
def test_a_fault_of_any_stage_surfaces_within_seconds():
    featurizer = compile_features()
    for stage, at in itertools.product(("load", "preprocess", "transfer"), range(12)):
        begin = time.perf_counter()
        found = break_stage(featurizer, stage, at)
        assert re.match(rf"{stage} failed on batch {at} \(clips clip-{at}\)", found), found
        assert time.perf_counter() - begin < 5.0


@pytest.mark.slow
def test_five_hundred_starts_and_stops_leave_nothing_behind():
    threads, growth = start_and_stop(compile_features(), warm=100, times=500)
    assert threads == 0 and growth < 1.05
