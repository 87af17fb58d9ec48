"""Every flag of `train` has an effect: shown here, or by the test that is named."""

import importlib
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import tensorflow as tf

from myxtts.cli.flags import every_flag
from myxtts.cli.parser import make_parser
from myxtts.cli.train import configure_run
from myxtts.data.pack import Pack
from myxtts.errors import RunError
from myxtts.pipeline.clock import StageClock
from myxtts.training.run import Run
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import PATIENCE, flat
from tests.synthetic import make_hums

ELSEWHERE = {  # module under tests : function
    "--config": "unit.test_config:test_flags_win_over_yaml_and_yaml_over_defaults",
    "--reference-gain-db": "unit.test_pipeline:test_references_have_a_level_of_their_own_and_the_target_keeps_its",
    "--model-start-delay": "unit.test_pipeline:test_a_primed_feed_has_waited_and_is_full",
    "--stall-timeout": "integration.test_training:test_a_source_that_stalls_or_a_step_that_fails_ends_the_run",
    "--enable-memory-isolation": "unit.test_devices:test_memory_grows_unless_each_gpu_has_its_limit",
    "--data-gpu-memory": "unit.test_devices:test_memory_grows_unless_each_gpu_has_its_limit",
    "--model-gpu-memory": "unit.test_devices:test_memory_grows_unless_each_gpu_has_its_limit",
    "--mixed-precision": "integration.test_learning:test_bfloat16_trains_and_float16_wants_a_gpu",
    "--grad-accum": "integration.test_learning:test_parts_of_a_batch_train_as_the_whole_batch_does",
    "--auto": "integration.test_profile:test_auto_measures_first_and_says_where_a_setting_came_from",
    "--auto-batch": "integration.test_left_alone:test_auto_batch_halves_until_it_fits_and_changes_no_result",
    "--max-bad-steps": "integration.test_learning:test_too_many_poisoned_batches_end_the_run_with_their_clips",
    "--early-stop": "integration.test_learning:test_early_stopping_counts_validations",
    "--sample-every": "integration.test_learning:test_samples_are_spoken_beside_the_loop",
    **dict.fromkeys(
        ("--cluster", "--rank"),
        "integration.test_cluster_training:test_a_killed_process_is_named_and_the_rest_is_saved_and_goes_on_alone",
    ),
    "--cluster-timeout": "unit.test_cluster:test_a_process_that_does_not_come_is_named",
    "--restarts": "integration.test_cluster_training:test_a_run_starts_over_with_those_that_are_there",
    "--init-from": "integration.test_learning:test_fine_tuning_starts_from_the_averaged_weights_and_grows",
    "--target": "integration.test_vocoder_run:test_the_command_trains_with_discriminators_when_told",
    "--discriminators-after": "integration.test_vocoder_run:test_the_command_trains_with_discriminators_when_told",
    "--critics-after": "unit.test_config:test_names_of_before_are_accepted_and_a_line_names_those_of_today",
    "--eval-every": "integration.test_evaluate:test_training_evaluates_beside_the_loop_when_asked",
    "--reset-optimizer": "integration.test_learning:test_resuming_can_forget_the_optimizer",
    "--freeze": "unit.test_step:test_frozen_weights_stay_and_all_others_move",
    "--resume": "integration.test_training:test_a_stopped_run_saves_and_the_command_resumes_it_with_its_own_settings",
    "--checkpoint-dir": "integration.test_training:test_a_run_folder_is_not_overwritten",
    "--log-every": "integration.test_training:test_one_trace_serves_all_bucket_shapes_and_everything_is_logged",
    "--val-every": "integration.test_training:test_one_trace_serves_all_bucket_shapes_and_everything_is_logged",
    "--save-every": "integration.test_training:test_a_resumed_run_ends_with_the_same_weights",
    "--keep": "unit.test_checkpoint:test_rotation_keeps_the_newest_and_the_best",
}

HERE = {
    "--train-data", "--val-data", "--batch-size", "--buffer-size", "--num-workers", "--language", "--front-end",
    "--cache-dir", "--min-seconds", "--max-seconds", "--min-clips", "--enable-static-shapes", "--disable-static-shapes",
    "--pipeline", "--virtual-devices", "--data-gpu", "--model-gpu", "--prefetch", "--model-size", "--lr", "--seed",
    "--xla", "--epochs", "--max-steps", "--max-minutes",
}  # fmt: skip


@pytest.fixture(scope="module")
def hums(tmp_path_factory) -> Path:
    return make_hums(tmp_path_factory.mktemp("flags") / "hums", 24)


@pytest.fixture(scope="module")
def make(hums, tiny_yaml, tmp_path_factory):
    """A trainer from the words of a command line; the same words give the same one."""
    home, made = tmp_path_factory.mktemp("flag-runs"), {}

    def trainer(*words: object) -> XTTSTrainer:
        key = tuple(map(str, words))
        unknown = {word for word in key if word.startswith("--")} - HERE
        assert not unknown, f"{unknown}: add to HERE what is tested in this file"
        if key not in made:
            usual = ["--train-data", hums, "--config", tiny_yaml, "--cache-dir", home / "cache"]
            options = make_parser().parse_args(["train", *map(str, usual), *key])
            made[key] = XTTSTrainer(configure_run(options, None)[0])
        return made[key]

    return trainer


class Loaded:
    """How many batches the host has made while nobody takes a second one."""

    def __init__(self, trainer: XTTSTrainer, monkeypatch):
        self._assemble, self._changed, self.count = trainer.run.train_set.assemble, threading.Condition(), 0
        monkeypatch.setattr(trainer.run.train_set, "assemble", self._counted)
        self._batches = iter(trainer.run.train_set.batches())
        next(self._batches)

    def _counted(self, *arguments):
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        return self._assemble(*arguments)

    def reaches(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, PATIENCE)


def meet(trainer: XTTSTrainer, threads: int, seconds: float, monkeypatch) -> bool:
    """Whether so many threads make batches at the same time; the first one waits so long for the others."""
    assemble, barrier, met = trainer.run.train_set.assemble, threading.Barrier(threads), threading.Event()

    def watched(*arguments):
        if not met.is_set():
            with suppress(threading.BrokenBarrierError):
                barrier.wait(seconds)
                met.set()
        return assemble(*arguments)

    monkeypatch.setattr(trainer.run.train_set, "assemble", watched)
    batches = iter(trainer.run.train_set.batches())
    next(batches)
    barrier.abort()  # whoever still waits has come too late to be needed
    return met.is_set()


def test_data_flags(make, hums, tmp_path, monkeypatch):
    def pack(*words: object) -> Pack:
        return make(*words).run.packs.train

    assert pack().seconds > 40 and pack("--train-data", make_hums(tmp_path / "few", 6)).seconds < 15
    assert len(make("--val-data", make_hums(tmp_path / "val", 3)).run.val_set.clips) == 3
    assert {bucket.shape.batch_size for bucket in make("--batch-size", 2).run.train_set.buckets} == {2}
    few = Loaded(make("--buffer-size", 2), monkeypatch)
    assert few.reaches(3)
    assert Loaded(make("--buffer-size", 9), monkeypatch).reaches(10)
    assert few.count < 10  # it had more time
    assert meet(make("--num-workers", 3), 3, PATIENCE, monkeypatch)
    assert not meet(make("--num-workers", 1), 2, 0.5, monkeypatch)
    assert make("--language", "de").run.tokenizer.languages == ("de",)
    assert make("--front-end", "characters").run.tokenizer.front_end == "characters"
    make("--cache-dir", tmp_path / "elsewhere")
    assert any((tmp_path / "elsewhere").iterdir())
    assert len(pack("--min-seconds", 2)) < len(pack()) > len(pack("--max-seconds", 2))
    with pytest.raises(RunError, match="at least 99 are needed"):
        make("--min-clips", 99)


def test_shape_flags(make):
    def frames(trainer: XTTSTrainer) -> set[int]:
        return {batch.audio.shape[1] for batch in trainer.run.train_set.batches(epochs=1)}

    shapes = len(make().run.train_set.buckets)
    assert len(frames(make("--enable-static-shapes"))) == shapes < len(frames(make("--disable-static-shapes")))


def test_device_flags(make):
    assert make("--pipeline", "sequential").run.devices.pipeline == "sequential"
    two = make("--virtual-devices", 2, "--data-gpu", 1, "--model-gpu", 0).run.devices
    assert (two.data_device, two.model_device, two.pipeline) == ("/CPU:1", "/CPU:0", "split")
    one = make("--virtual-devices", 2, "--data-gpu", "none", "--model-gpu", "none").run.devices
    assert not one.two_devices
    for slots in (1, 2, 7):
        trainer = make("--prefetch", slots)
        assert trainer.run.feed(StageClock(), threading.Event()).slots == slots


def rate(run: Run) -> float:
    """The learning rate of step 500."""
    return float(run.step.schedule.rate(tf.constant(500, tf.int64), tf.constant(0.0)))


def test_model_and_optimisation_flags(make):
    tiny, small, seeded, compiled = (
        make(*words).run for words in ((), ("--model-size", "small"), ("--seed", 7), ("--xla", "on"))
    )
    assert small.step.parameters.count > tiny.step.parameters.count
    assert rate(make("--lr", 1e-4).run) < rate(tiny)
    assert flat(seeded.step.arrays()).std() != flat(tiny.step.arrays()).std()
    assert seeded.train_set.names(0) != tiny.train_set.names(0) or seeded.train_set.names(1) != tiny.train_set.names(1)
    assert not tiny.devices.compiled and not make("--xla", "off").run.devices.compiled  # auto: not on a CPU
    assert compiled.devices.compiled and compiled.step.gradient.compiled


def test_limits(make):
    epochs, steps, minutes = make("--epochs", 2), make("--max-steps", 10), make("--max-minutes", 3)
    assert make().limits.progress(180.0) < 0.01 and minutes.limits.progress(180.0) == 1.0
    epochs.state.batches, steps.state.step = 2 * epochs.run.train_set.batches_per_epoch, 10
    assert epochs.limits.progress(0.0) == steps.limits.progress(0.0) == 1.0


def test_no_flag_is_without_a_test():
    untested = every_flag("train") - {"--help"} - HERE - set(ELSEWHERE)
    assert not untested, f"{untested}: test them here and add them to HERE, or name their tests in ELSEWHERE"
    assert HERE | set(ELSEWHERE) <= every_flag("train")
    for name in ELSEWHERE.values():
        module, function = name.split(":")
        assert callable(getattr(importlib.import_module(f"tests.{module}"), function)), name
