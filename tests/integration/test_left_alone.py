"""What a run does when nobody is there: full disks, little memory, errors, signals."""

import resource
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.checkpoint.folder import locked_run, read_checkpoint
from myxtts.errors import RunError, UsageError
from myxtts.pipeline.feed import Feed
from myxtts.training import saver
from myxtts.training.metrics import Metrics, Notice
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import PATIENCE, weights_of
from tests.interruptions import interrupt_again_and_again


def test_a_full_disk_keeps_the_last_checkpoint_and_the_run_goes_on(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=30, save_every=5, log_every=1)
    run, events = Path(trainer.config.training.checkpoint_dir), []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    write, tried = saver.write_checkpoint, defaultdict(threading.Event)

    def watched(folder, checkpoint, keep, best):
        try:
            return write(folder, checkpoint, keep, best)
        finally:
            tried[checkpoint.state.step].set()

    def show(event):
        events.append(event)
        if isinstance(event, Metrics) and event.step == 12:
            assert tried[10].wait(PATIENCE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))  # no file may grow beyond 10 kB
        elif isinstance(event, Metrics) and event.step == 22:
            assert tried[15].wait(PATIENCE) and tried[20].wait(PATIENCE)
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    monkeypatch.setattr(saver, "write_checkpoint", watched)
    try:
        trainer.train(show)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = [event.text for event in events if isinstance(event, Notice)]
    assert any("File too large; step-00000010 is kept; training goes on" in text for text in told), told
    assert read_checkpoint(run / "latest").state.step == 30
    assert not list(run.glob(".step*"))


def test_a_disk_that_stays_full_ends_the_run_with_one_line(run_here, corpus, tiny_yaml, tmp_path):
    words = ["train", "--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run",
             "--cache-dir", tmp_path / "cache", "--save-every", 1, "--sample-every", 0]  # fmt: skip
    assert run_here("prepare", corpus, "--cache-dir", tmp_path / "cache").returncode == 0

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    result = subprocess.run(
        [sys.executable, "-m", "myxtts", *map(str, words)], capture_output=True, text=True, preexec_fn=limit
    )
    assert result.returncode == 1
    kept, ended = result.stderr.strip().splitlines()
    assert "compiled code is not kept for the next run: files may have at most 20000 bytes" in kept
    assert "cannot save a checkpoint" in ended and "3 tries in a row" in ended


def test_a_second_trainer_is_refused(run_myxtts, corpus, tiny_yaml, tmp_path):
    words = ("train", "--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run")
    with locked_run(tmp_path / "run"):
        result = run_myxtts(*words)
        assert result.returncode == 2 and "another trainer is at work" in result.stderr
        with pytest.raises(UsageError, match="another trainer"), locked_run(tmp_path / "run"):
            pass


def run_out_of_memory(trainer: XTTSTrainer, most: int, monkeypatch) -> list[int]:
    """A stand-in for a card on which more clips at once do not fit; returns the parts of each try."""
    find, tries = trainer.run.step.find_gradient, []

    def tight(batch, adversarial):
        tries.append(trainer.run.step.parts)
        if batch.rows // trainer.run.step.parts > most:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return find(batch, adversarial)

    monkeypatch.setattr(trainer.run.step, "find_gradient", tight)
    return tries


def test_out_of_memory_names_the_bucket_and_the_flags(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=2, batch_size=4)
    tries = run_out_of_memory(trainer, 2, monkeypatch)
    with pytest.raises(
        RunError,
        match=r"`data.batch_size=4` at the bucket of \d+ tokens x \d+ frames; "
        r"set `data.batch_size=2` `training.grad_accum=2`",
    ):
        trainer.train()
    assert tries == [1]  # told at once


def test_auto_batch_halves_until_it_fits_and_changes_no_result(make_trainer, monkeypatch):
    plain = make_trainer("plain", max_steps=3, batch_size=4)
    tight = make_trainer("tight", max_steps=3, batch_size=4, auto_batch=True)
    plain.train()
    tries = run_out_of_memory(tight, 1, monkeypatch)
    events = []
    tight.train(events.append)
    assert tries == [1, 2, 4, 4, 4]
    told = [event.text for event in events if isinstance(event, Notice)]
    assert "continues with `data.batch_size=2` `training.grad_accum=2`" in told[0]
    assert "continues with `data.batch_size=1` `training.grad_accum=4`" in told[1]
    np.testing.assert_allclose(weights_of(tight), weights_of(plain), atol=1e-5)
    latest = Path(tight.config.training.checkpoint_dir) / "latest"
    again = make_trainer("tight", max_steps=4, batch_size=4, auto_batch=True, resume_checkpoint=latest)
    assert again.run.step.parts == 4 and again.config.step_clips == 4 and not again.run.notices


def test_a_display_that_is_gone_does_not_end_a_run(make_trainer):
    def show(event):
        raise BrokenPipeError

    trainer = make_trainer(max_steps=6)
    assert trainer.train(show).steps == 6


def test_any_error_saves_what_was_learned(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=20, save_every=100)
    take = trainer.run.take_step

    def fail(batch):
        if trainer.state.step == 7:
            raise ValueError("something nobody thought of")
        return take(batch)

    monkeypatch.setattr(trainer.run, "take_step", fail)
    with pytest.raises(ValueError, match="nobody thought of"):
        trainer.train()
    assert read_checkpoint(Path(trainer.config.training.checkpoint_dir) / "latest").state.step == 7


def test_a_board_that_cannot_be_written_is_told_once_and_tried_again(make_trainer):
    trainer, events = make_trainer(max_steps=10, log_every=1), []
    run = Path(trainer.config.training.checkpoint_dir)
    run.mkdir(parents=True)
    (run / "tensorboard").write_text("in the way")

    def show(event):
        events.append(event)
        if isinstance(event, Metrics) and event.step == 5:
            (run / "tensorboard").unlink()

    trainer.train(show)
    told = [event.text for event in events if isinstance(event, Notice)]
    assert sum("tensorboard cannot be written" in text for text in told) == 1
    [file] = (run / "tensorboard").iterdir()
    steps = {tf.compat.v1.Event.FromString(r.numpy()).step for r in tf.data.TFRecordDataset(str(file))}
    assert {6, 7, 8, 9, 10} <= steps


def test_signals_ask_for_the_report_and_end_the_run(corpus, tiny_yaml, tmp_path):
    words = ["train", "--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run",
             "--save-every", 1000, "--val-every", 1000]  # fmt: skip
    command = [sys.executable, "-m", "myxtts", *map(str, words)]

    def hear_hangups() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under nohup hand its deafness on

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=hear_hangups
    ) as process:
        lines = iter(process.stdout.readline, "")
        assert next(lines)
        process.send_signal(signal.SIGUSR1)  # too early for a report
        assert any(line.startswith("step 5 ") for line in lines)
        process.send_signal(signal.SIGUSR1)
        assert any(line.startswith("📊 Performance") for line in lines)
        assert "steps in" in next(lines) and "step time" in next(lines)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGHUP
    assert read_checkpoint(tmp_path / "run" / "latest").state.step >= 5


def test_a_stop_while_waiting_for_data_saves_what_was_done(make_trainer, monkeypatch):
    trainer, stop = make_trainer(max_steps=40, save_every=1000, log_every=1), threading.Event()
    get = Feed.__iter__

    def slow(feed):
        for number, batch in enumerate(get(feed)):
            if number == 4:
                stop.set()
                return
            yield batch

    monkeypatch.setattr(Feed, "__iter__", slow)
    trainer.train(stop=stop)
    assert read_checkpoint(Path(trainer.config.training.checkpoint_dir) / "latest").state.step == trainer.state.step > 0


def test_interrupted_runs_end_with_the_weights_of_an_undisturbed_one(unvalidated_yaml, corpus, tmp_path):
    """One `kill -9` here; `make test-slow` has thirty of it and SIGTERM, with validation and samples."""
    kinds = interrupt_again_and_again(corpus, unvalidated_yaml, tmp_path, 1, steps=24, seed=5, sample_every=0)
    assert kinds == [signal.SIGKILL]
