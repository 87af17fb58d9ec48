"""What a run learns, counts, validates, speaks and hands on."""

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tensorflow as tf

from myxtts.batch import HEAD
from myxtts.checkpoint.folder import find_checkpoint, read_checkpoint
from myxtts.errors import RunError, UsageError
from myxtts.inference.tensorflow_engine import open_checkpoint
from myxtts.training import saver
from myxtts.training.metrics import Metrics, Notice, Sample, Summary, Validation
from myxtts.training.trainer import XTTSTrainer
from tests.helpers import begins_with, flat, weights_of


def poison(trainer: XTTSTrainer, bad: range, monkeypatch) -> None:
    """Turns the features of some batches into something that is no number."""
    original = type(trainer.run.featurizer).__call__

    def featurize(featurizer, audio, spans):
        floats = original(featurizer, audio, spans)
        return floats * np.nan if int(spans[0, 2]) in bad else floats

    monkeypatch.setattr(type(trainer.run.featurizer), "__call__", featurize)


def test_parts_of_a_batch_train_as_the_whole_batch_does(make_trainer):
    # Two steps: after more, rounding may choose another of two alignments that are equally good.
    parts = make_trainer("parts", batch_size=2, grad_accum=2, max_steps=2)
    whole = make_trainer("whole", batch_size=4, max_steps=2)
    begun = weights_of(whole)
    assert [parts.run.train_set.names(n) for n in range(4)] == [whole.run.train_set.names(n) for n in range(4)]
    parts.train()
    whole.train()
    assert np.abs(weights_of(parts) - weights_of(whole)).max() < 1e-5 < np.abs(weights_of(whole) - begun).max()


def test_a_poisoned_batch_is_skipped_and_counted(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=12)
    poison(trainer, range(3, 5), monkeypatch)
    events = []
    summary = trainer.train(events.append)
    assert summary.skipped == 2 and int(trainer.run.step.count) == 10
    assert all(np.isfinite(value) for e in events if isinstance(e, Metrics) for value in e.losses.values())
    assert np.isfinite(weights_of(trainer)).all()
    state = read_checkpoint(Path(trainer.config.training.checkpoint_dir) / "latest").state
    assert state.skipped == 2


def test_too_many_poisoned_batches_end_the_run_with_their_clips(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=40, max_bad_steps=6)
    poison(trainer, range(7, 40), monkeypatch)
    with pytest.raises(RunError, match=r"6 steps in a row were not finite \(batches 7 to 12\)"):
        trainer.train()
    run = Path(trainer.config.training.checkpoint_dir)
    dump = json.loads((run / "bad_batches.json").read_text())
    assert [entry["batch"] for entry in dump] == list(range(7, 13))
    assert dump[0]["clips"] == trainer.run.train_set.names(7)
    saved = read_checkpoint(run / "latest")
    assert np.isfinite(flat(saved.arrays)).all() and int(saved.arrays["step"]) == 7
    assert trainer.state.step == 15  # the next log line
    again = make_trainer(max_steps=40, max_bad_steps=6, resume_checkpoint=run / "latest")
    assert not again.run.bad_steps.too_many and again.run.bad_steps.skipped == 8


def test_early_stopping_counts_validations(make_trainer):
    trainer = make_trainer(max_steps=1000, val_every=2, early_stop=3, val_clips=4)
    trainer.state.best_loss = -1.0
    trainer.train()
    assert trainer.state.step == 6
    run = Path(trainer.config.training.checkpoint_dir)
    again = make_trainer(max_steps=1000, val_every=2, early_stop=5, val_clips=4, resume_checkpoint=run / "latest")
    assert again.state.validations_since_best == 3  # what was counted before still counts


def script_validations(trainer: XTTSTrainer, losses: dict[int, float], monkeypatch, stop_at: int = 0) -> None:
    """Held-out losses as written here; a signal comes during the validation of one step."""
    evaluate = trainer.run.evaluate

    def scripted(batch):
        found, output = evaluate(batch)
        if trainer.state.step == stop_at:
            trainer.stop.set()
        return {**found, "loss": tf.constant(losses[trainer.state.step])}, output

    trainer.stop = threading.Event()
    monkeypatch.setattr(trainer.run, "evaluate", scripted)


def test_a_validation_that_was_cut_short_is_made_up(make_trainer, monkeypatch):
    losses = {5: 1.0, 10: 1.5, 15: 1.4, 20: 1.3}
    values = {"max_steps": 20, "val_every": 5, "save_every": 100, "early_stop": 2, "val_clips": 4}
    whole, cut = make_trainer("whole", **values), make_trainer("cut", **values)
    script_validations(whole, losses, monkeypatch)
    whole.train()
    script_validations(cut, losses, monkeypatch, stop_at=10)
    cut.train(stop=cut.stop)
    assert (whole.state.step, cut.state.step) == (15, 10)
    latest = Path(cut.config.training.checkpoint_dir) / "latest"
    again = make_trainer("cut", resume_checkpoint=latest, **values)
    script_validations(again, losses, monkeypatch)
    again.train()
    assert again.state.step == 15
    np.testing.assert_array_equal(weights_of(again), weights_of(whole))
    ended = make_trainer("cut", resume_checkpoint=latest, **values)
    with pytest.raises(UsageError, match=r"complete at step 15; 2 validations were no better; raise .*early_stop`"):
        ended.train()


def test_best_is_the_lowest_loss_on_the_disk(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=20, val_every=5, save_every=100, val_clips=4)
    script_validations(trainer, {5: 1.0, 10: 0.5, 15: 0.8, 20: 0.7}, monkeypatch)
    write = saver.write_checkpoint

    def fail_once(run, checkpoint, keep, best):
        if checkpoint.state.step == 10:
            raise RunError("the disk is full")
        return write(run, checkpoint, keep, best)

    monkeypatch.setattr(saver, "write_checkpoint", fail_once)
    trainer.train()
    run = Path(trainer.config.training.checkpoint_dir)
    best = json.loads((run / "best" / "state.json").read_text())
    assert best["step"] == 20 and best["loss"] == pytest.approx(0.7)


def test_skipped_steps_are_in_every_checkpoint_and_the_log_is_json(make_trainer, monkeypatch):
    trainer = make_trainer(max_steps=12, save_every=4, log_every=6)
    poison(trainer, range(8), monkeypatch)
    trainer.train()
    run = Path(trainer.config.training.checkpoint_dir)
    states = {path.name: json.loads((path / "state.json").read_text()) for path in run.glob("step-*")}
    assert states["step-00000004"]["bad_row"] == [0, 1, 2, 3] and states["step-00000008"]["skipped"] == 8

    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    lines = [json.loads(line, parse_constant=refuse) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert next(line for line in lines if line["kind"] == "train")["losses"]["loss"] is None


def test_frozen_new_symbols_are_refused(make_trainer, trained):
    with pytest.raises(UsageError, match=r"new symbols .* leave text out"):
        make_trainer("deaf", init_from=str(trained), language="de", freeze="text")


def test_what_train_refuses_before_it_prepares(run_here, corpus, trained, tmp_path):
    def refused(*words) -> str:
        result = run_here("train", "--train-data", corpus, *words)
        assert result.returncode == 2 and len(result.stderr.strip().splitlines()) == 1, result.stderr
        return result.stderr

    folder = shutil.copytree(trained, tmp_path / "run", symlinks=True)
    (folder / "latest").unlink()
    (folder / "latest").symlink_to("step-99999999")
    assert "already holds a run" in refused("--checkpoint-dir", folder)
    assert "points nowhere; name a checkpoint" in refused("--checkpoint-dir", folder, "--resume")
    newest = find_checkpoint(trained, ("latest",)).resolve()
    assert "give one of them" in refused("--resume", newest, "--init-from", trained)
    copy = shutil.copytree(newest, tmp_path / "copy")
    assert "say with --checkpoint-dir" in refused("--resume", copy)
    assert "is a file" in refused("--checkpoint-dir", corpus / "metadata.csv" / "x")
    assert "--max-minutes is inf" in refused("--max-minutes", "inf")


def test_samples_are_spoken_beside_the_loop(make_trainer):
    trainer = make_trainer(max_steps=20, sample_every=20, val_clips=4)
    events = []
    trainer.train(events.append)
    samples = [event for event in events if isinstance(event, Sample)]
    assert [event.step for event in samples] == [20]
    for sample in samples:
        files = sorted(Path(sample.folder).glob("*.wav"))
        assert len(files) == 2 and all(soundfile.info(file).frames > 2000 for file in files)
        assert len((Path(sample.folder) / "sentences.txt").read_text().splitlines()) == 2
    run = Path(trainer.config.training.checkpoint_dir)
    tags = set()
    for file in (run / "tensorboard").iterdir():
        for record in tf.data.TFRecordDataset(str(file)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            tags |= {value.tag for value in event.summary.value}
    assert {"sample/1", "sample/2", "mel/target", "mel/spoken", "alignment", "train/loss", "validation/loss"} <= tags


def test_a_report_can_be_asked_for(make_trainer):
    trainer, report, events = make_trainer(max_steps=8), threading.Event(), []
    report.set()
    summary = trainer.train(events.append, report=report)
    asked = [event for event in events if isinstance(event, Summary)]
    assert len(asked) == 1 and asked[0].steps == 1 and summary.steps == 8 and not report.is_set()


def test_fine_tuning_starts_from_the_averaged_weights_and_grows(make_trainer, trained):
    same = make_trainer("same", max_steps=2, init_from=str(trained))
    saved = read_checkpoint(trained / "best")
    begins_with(same, saved.arrays)
    assert same.run.tokenizer == saved.tokenizer and same.state.step == 0
    assert same.train().steps == 2
    grown = make_trainer("grown", max_steps=4, init_from=str(trained), language="de")
    known = len(saved.tokenizer.symbols)
    assert grown.run.tokenizer.symbols[:known] == saved.tokenizer.symbols
    assert len(grown.run.tokenizer.symbols) > known and grown.run.tokenizer.languages == ("en", "de")
    grown.train()
    read = read_checkpoint(Path(grown.config.training.checkpoint_dir) / "latest")
    assert read.tokenizer == grown.run.tokenizer and np.isfinite(flat(read.arrays, "average")).all()


def test_one_run_learns_two_languages_and_voices_in_mixed_batches(corpus, make_trainer, tmp_path):
    folder = tmp_path / "many"
    shutil.copytree(corpus, folder)
    rows = [line.split("|") for line in (folder / "metadata.csv").read_text().splitlines()]
    said = [("anna", "en", text) if n % 2 else ("bernd", "de", "Guten Morgen.") for n, (_, text) in enumerate(rows)]
    lines = ["|".join((row[0], *more)) for row, more in zip(rows, said, strict=True)]
    (folder / "metadata.csv").write_text("\n".join(["id|speaker|language|text", *lines, ""]))
    trainer = make_trainer(max_steps=3, train_data=str(folder), save_every=3)
    batches = trainer.run.train_set.batches(epochs=1).take(3)
    first = {int(labels[HEAD]) for batch in batches for labels in batch.labels}
    assert first == {trainer.run.tokenizer.language_id(name) for name in ("de", "en")}
    trainer.train()
    synthesizer = open_checkpoint(find_checkpoint(tmp_path / "run"))
    for speaker, language, text in said[:2]:
        wave = synthesizer.speak(synthesizer.read(text, language), synthesizer.voice(speaker=speaker))
        assert len(wave) and np.isfinite(wave).all()


def test_resuming_can_forget_the_optimizer(make_trainer, trained):
    kept = make_trainer("kept", resume_checkpoint=trained / "latest", max_steps=30, val_clips=4)
    fresh = make_trainer("fresh", resume_checkpoint=trained / "latest", max_steps=30, val_clips=4, reset_optimizer=True)
    np.testing.assert_array_equal(weights_of(kept), weights_of(fresh))
    assert int(kept.run.step.count) == 20 and int(fresh.run.step.count) == 0 and fresh.state.step == 20


def test_another_order_of_clips_is_told_and_starts_the_epoch_anew(make_trainer, trained):
    trainer, events = make_trainer(resume_checkpoint=trained / "latest", max_steps=24, val_clips=4, batch_size=2), []
    assert trainer.state.batches == 2 * trainer.run.train_set.batches_per_epoch  # 20 batches of 9 an epoch were done
    trainer.train(events.append)
    told = [event.text for event in events if isinstance(event, Notice)]
    assert "clips a step 4 then, 2 now" in told[0] and "epoch 2 starts anew" in told[0]


def test_bfloat16_trains_and_float16_wants_a_gpu(make_trainer):
    trainer, events = make_trainer(max_steps=20, val_clips=4, mixed_precision="bfloat16"), []
    trainer.train(events.append)
    losses = [event.losses["loss"] for event in events if isinstance(event, Metrics)]
    assert losses[-1] < losses[0] and any(isinstance(event, Validation) for event in events)
    with pytest.raises(UsageError, match=r"float16` needs a GPU"):
        make_trainer("half", mixed_precision="float16")


def test_a_plan_keeps_the_effective_batch(make_trainer):
    trainer = make_trainer(batch_size=4, grad_accum=2)
    assert trainer.config.step_clips == 8
    assert {bucket.shape.batch_size for bucket in trainer.run.train_set.buckets} == {8}
    changed = replace(trainer.config, data=replace(trainer.config.data, batch_size=8))
    assert changed.step_clips == 16
