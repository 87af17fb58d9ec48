"""The trainer on a real, small corpus."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from myxtts.batch import PackedBatch
from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint
from myxtts.cli.devices import pipeline_lines
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.config.load import build, read_yaml
from myxtts.data.cache import learn_tokenizer, prepare
from myxtts.data.dataset import HostDataset
from myxtts.devices import plan_devices
from myxtts.errors import RunError, UsageError
from myxtts.models.xtts import XTTS
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import Feed
from myxtts.pipeline.stage_error import StageError
from myxtts.training.step import TrainStep
from myxtts.training.targets.speech import SpeechObjective
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import PATIENCE, feeds_end


def config_for(tiny_yaml: Path, corpus: Path, tmp_path: Path, **values):
    places = {
        "data.train_data": str(corpus),
        "data.cache_dir": str(tmp_path / "cache"),
        "training.checkpoint_dir": str(tmp_path / "run"),
    }
    return build({**read_yaml(tiny_yaml), **places, **values})


def test_one_batch_can_be_overfitted(corpus, tmp_path):
    config = build({"data.cache_dir": str(tmp_path), "data.batch_size": 2, "model.width": 64, "model.decoder_blocks": 3,
                    "model.text_blocks": 2, "training.guide_steps": 0, "training.warmup_steps": 0})  # fmt: skip
    pack = prepare(corpus, config)
    tokenizer = learn_tokenizer([pack], config)
    shortest = np.argsort(pack.records["samples"])[:2]
    raw = next(iter(HostDataset(pack, tokenizer, config, shortest).batches(epochs=1)))
    featurizer = Featurizer(config)
    batch = PackedBatch(featurizer(raw.audio, raw.spans), raw.labels, featurizer.layout)
    tf.random.set_seed(0)
    model = XTTS(config.model, len(tokenizer.symbols))
    model.create_variables()
    step = TrainStep(model, SpeechObjective(config.training), config.training)
    losses = [step(batch) for _ in range(150)]
    assert float(losses[-1]["mel"]) < 0.2 * float(losses[0]["mel"])
    assert float(losses[-1]["duration"]) < 0.3 * float(losses[0]["duration"])


def test_one_trace_serves_all_bucket_shapes_and_everything_is_logged(corpus, two_shapes_yaml, tmp_path):
    config = config_for(two_shapes_yaml, corpus, tmp_path, **{"training.max_steps": 25})
    trainer = XTTSTrainer(config)
    events = []
    summary = trainer.train(events.append, gpu_utilisation=lambda: {"0": 0.5})
    assert summary.steps == 25
    assert summary.traces == 1
    assert trainer.run.featurizer.traces == summary.shapes == len(trainer.run.train_set.buckets) == 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "train"] == [5, 10, 15, 20, 25]
    assert [line["step"] for line in lines if line["kind"] == "validation"] == [10, 20, 25]
    assert len(events) == len(lines) - 1 and lines[0]["kind"] == "run" and lines[0]["step_clips"] == 4
    assert lines[-1] == {"kind": "summary", **asdict(summary)}
    assert all(line["gpu_utilisation"] == {"0": 0.5} for line in lines if line["kind"] == "train")
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
    assert all(0 <= line["data_wait"] <= 1 and 0 <= line["padding"] < 1 for line in lines if line["kind"] == "train")


def test_a_resumed_run_ends_with_the_same_weights(make_trainer):
    values = {"max_steps": 16, "save_every": 8, "val_clips": 4}
    whole = make_trainer(**values)
    run = Path(whole.config.training.checkpoint_dir)
    whole.train()
    first = read_checkpoint(run / "step-00000016").arrays
    shutil.rmtree(run / "step-00000016")
    resumed = make_trainer(resume_checkpoint=run / "step-00000008", **values)
    assert resumed.state.step == 8
    resumed.train()
    again = read_checkpoint(find_checkpoint(run, ("latest",))).arrays
    for name in first:
        np.testing.assert_array_equal(first[name], again[name], err_msg=name)


def train_until(number: int, wanted: str, *words: object) -> list[str]:
    """What the command prints until a line begins as wanted, after which it is sent a signal, and ends by it."""
    command = [sys.executable, "-m", "myxtts", "train", *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        lines = []
        for line in iter(process.stdout.readline, ""):
            lines.append(line.rstrip("\n"))
            if line.startswith(wanted):
                break
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number and not errors
    with pytest.raises(ProcessLookupError):  # nothing of its process group is left
        os.killpg(process.pid, 0)
    return lines


def test_training_on_two_devices_says_what_it_does_until_it_is_terminated(corpus, tiny_yaml, tmp_path):
    words = ("--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run", "--log-every", 1)
    devices = ("--virtual-devices", 2, "--data-gpu", 1, "--model-gpu", 0, "--model-start-delay", 0.5)
    lines = train_until(signal.SIGTERM, "step 1 ", *words, *devices, "--disable-static-shapes")
    for line in (
        "🎯 Configuring Multi-GPU Mode...", "   Data Processing GPU: /CPU:1", "   Model Training GPU: /CPU:0",
        "✅ Multi-GPU configuration completed successfully", "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
        "   - Prefetching to /CPU:1 with buffer_size=50", "🎯 Multi-GPU Mode: Model will be placed on /CPU:0",
        "Creating model on device: /CPU:0", "🕐 Multi-GPU Mode: Waiting 0.5s for data pipeline to warm up...",
        "✅ Model training starting now",
    ):  # fmt: skip
        assert line in lines, line
    [first] = [number for number, line in enumerate(lines) if line.startswith("💡")]  # poor settings, in one block
    last = next(number for number, line in enumerate(lines) if "myxtts profile" in line)
    assert first < last
    block = lines[first + 1 : last]
    assert [line.split("; type ")[1] for line in block] == ["--enable-static-shapes"]
    assert "card" not in "".join(block)  # virtual devices are none
    assert read_checkpoint(tmp_path / "run" / "latest").state.step >= 1


def test_one_device_says_what_it_does():
    plain = DataConfig(pipeline="sequential")
    [line] = pipeline_lines(plan_devices(plain), XTTSConfig(data=plain))
    assert "Sequential pipeline: /CPU:0 prepares, then /CPU:0 trains" in line


def test_a_source_that_stalls_or_a_step_that_fails_ends_the_run(make_trainer, monkeypatch):
    trainer = make_trainer(stall_timeout=0.3, max_steps=40)
    config = trainer.config
    give, leave, left = trainer.run.train_set.batches, Feed.__exit__, threading.Event()

    def hang(number):
        left.wait(PATIENCE)
        return number

    def never(start, epochs, shuffle):  # from the first batch on, so that nothing but the source can be late
        numbers = tf.data.Dataset.range(start, 10_000).map(lambda n: tf.numpy_function(hang, [n], tf.int64))
        return tf.data.Dataset.zip(give(start, epochs, shuffle), numbers).map(lambda batch, _: batch)

    def let_go(feed, *error):
        left.set()
        leave(feed, *error)

    monkeypatch.setattr(trainer.run.train_set, "batches", never)
    monkeypatch.setattr(Feed, "__exit__", let_go)
    with pytest.raises(RunError, match=r"load has given nothing for 0.3 s .*`data.stall_timeout`"):
        trainer.train()
    monkeypatch.setattr(trainer.run.train_set, "batches", give)
    trainer.config = replace(config, data=replace(config.data, stall_timeout=PATIENCE))
    original = type(trainer.run.step).__call__

    def break_down(step, *arguments):
        if trainer.state.batches == 9:
            raise FloatingPointError("no such number")
        return original(step, *arguments)

    monkeypatch.setattr(type(trainer.run.step), "__call__", break_down)
    names = ", ".join(trainer.run.train_set.names(9))
    with pytest.raises(StageError, match=rf"^train failed on batch 9 \(clips {names}\): FloatingPointError"):
        trainer.train()
    assert feeds_end()


def test_a_stopped_run_saves_and_the_command_resumes_it_with_its_own_settings(
    run_myxtts, run_here, corpus, unvalidated_yaml, tmp_path
):
    run = tmp_path / "run"
    words = ("--train-data", corpus, "--config", unvalidated_yaml, "--checkpoint-dir", run, "--max-steps", 100_000)
    devices = ("--virtual-devices", 2, "--data-gpu", 0, "--model-gpu", 1, "--model-start-delay", 0)
    train_until(signal.SIGINT, "step 5 ", *words, *devices)
    stopped = read_checkpoint(run / "latest")
    step = stopped.state.step
    assert step >= 5
    result = run_myxtts("train", "--resume", "--checkpoint-dir", run, "--max-steps", str(step + 3))
    assert result.returncode == 0, result.stderr
    ended = read_checkpoint(run / "latest")
    assert ended.state.step == step + 3 and ended.state.seconds > stopped.state.seconds
    assert ended.config.data == stopped.config.data and ended.config.model == stopped.config.model
    assert ended.config.data.gpus == (0, 1)
    again = run_here("train", "--resume", "--checkpoint-dir", run)
    assert again.returncode == 2 and "complete" in again.stderr


def test_a_run_that_was_saved_with_minus_one_for_no_gpu_is_resumed_elsewhere(run_here, trained, tmp_path):
    old, new = tmp_path / "run" / "step-20", tmp_path / "new"
    shutil.copytree(trained / "latest", old)
    text = (old / "config.yaml").read_text()
    assert "data_gpu: null" in text and "model_gpu: null" in text
    (old / "config.yaml").write_text(text.replace("_gpu: null", "_gpu:   -1"))  # a checkpoint knows its sizes
    result = run_here("train", "--resume", old, "--checkpoint-dir", new, "--max-steps", 21)
    assert result.returncode == 0, result.stderr
    assert "_gpu" not in result.stdout and "Single-GPU Buffered Mode" in result.stdout
    ended = read_checkpoint(new / "latest")
    assert ended.state.step == 21 and not ended.config.data.gpus
    clash = run_here("train", "--resume", old, "--checkpoint-dir", new, "--max-steps", 29)
    assert clash.returncode == 2 and "another run" in clash.stderr


def test_resuming_another_model_is_refused_with_the_difference(corpus, tiny_yaml, trained, tmp_path):
    config = config_for(tiny_yaml, corpus, tmp_path, **{"model.width": 64})
    with pytest.raises(UsageError, match=r"model\.width: 64 here, 32 there"):
        XTTSTrainer(config, resume_checkpoint=trained / "latest")


def test_the_best_checkpoint_has_the_lowest_validation_loss(trained):
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    losses = {line["step"]: line["losses"]["loss"] for line in lines if line["kind"] == "validation"}
    assert read_checkpoint(trained / "best").state.step == min(losses, key=losses.__getitem__)


def test_a_run_folder_is_not_overwritten(run_here, corpus, tiny_yaml, trained):
    words = ("train", "--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", trained, "--max-steps", "20")
    result = run_here(*words)
    assert result.returncode == 2 and "--resume" in result.stderr
