"""The training loop, nothing else.

In: XTTSConfig.
Out: checkpoints, a logbook and a Summary.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from myxtts.audio.mel import reference_mel
from myxtts.batch import Batch
from myxtts.config.config import XTTSConfig
from myxtts.config.load import differences
from myxtts.data.cache import learn_tokenizer, prepare, require_clips
from myxtts.data.dataset import HostDataset
from myxtts.devices import plan_devices, require_on
from myxtts.errors import RunError, UsageError
from myxtts.models.layers import unstack_frames
from myxtts.models.xtts import XTTS
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.feed import Feed, most_slots
from myxtts.pipeline.stage import naming_stage
from myxtts.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from myxtts.training.logbook import Logbook
from myxtts.training.metrics import Event, Metrics, Primed, Resized, Summary, Validation
from myxtts.training.optimizer import learning_rate
from myxtts.training.pace import Pace
from myxtts.training.step import EvaluateStep, FlatStart, TrainStep

Show = Callable[[Event], None]


class XTTSTrainer:
    """Trains the speech model on one prepared dataset.

    Args:
        config: all settings.
        model: a ready model instead of a new one.
        resume_checkpoint: a checkpoint folder to go on from.
        model_device: where the model lives, instead of the first GPU or the CPU.
    """

    def __init__(
        self,
        config: XTTSConfig,
        model: XTTS | None = None,
        resume_checkpoint: Path | None = None,
        model_device: str | None = None,
    ):
        self.config = config
        plan = plan_devices(config.data)
        self.devices = replace(plan, model_device=model_device) if model_device else plan
        keras.utils.set_random_seed(config.training.seed)
        resumed = read_checkpoint(resume_checkpoint) if resume_checkpoint else None
        if resumed:
            _refuse_other_model(config, resumed.config, resume_checkpoint)
        self.pack = self.val_pack = prepare(Path(config.data.train_data), config)
        if config.data.val_data:
            self.val_pack = prepare(Path(config.data.val_data), config)
        require_clips(self.pack, config)
        self.tokenizer = resumed.tokenizer if resumed else learn_tokenizer([self.pack, self.val_pack], config)
        self.train_set, self.val_set = self._make_sets()
        self.voices = self._collect_voices()
        self.featurizer = Featurizer(config)
        with tf.device(self.devices.model_device):
            self.model = model or XTTS(config.model, len(self.tokenizer.symbols), config.audio.n_mels)
            self.model.create_variables()
            self.step = TrainStep(self.model, config.training)
        require_on(self.devices.model_device, self.step.variables(), "the model")
        self.evaluate = EvaluateStep(self.model, config.training)
        self.steps_done = self.batches_done = 0
        self.seconds_done = 0.0
        self.best_loss = float("inf")
        if resumed:
            self.step.restore(resumed.arrays)
            self.steps_done, self.batches_done = resumed.state["step"], resumed.state["batches"]
            self.best_loss, self.seconds_done = resumed.state["best_loss"], resumed.state["seconds"]

    # Sets

    def _make_sets(self) -> tuple[HostDataset, HostDataset | None]:
        config = self.config
        if config.data.val_data:
            train, held_out = np.arange(len(self.pack)), np.arange(len(self.val_pack))
        else:
            train, held_out = split_clips(self.pack.records["samples"], config.data.val_clips)
        train_set = HostDataset(self.pack, self.tokenizer, config, train)
        if not len(held_out):
            return train_set, None
        shapes = [bucket.shape for bucket in train_set.buckets]
        return train_set, HostDataset(self.val_pack, self.tokenizer, config, held_out, shapes)

    def _collect_voices(self) -> dict[str, np.ndarray]:
        """A few seconds of each speaker as mel, kept in the checkpoint so that it can speak without a reference."""
        wanted = self.config.model.reference_frames * self.config.audio.hop_samples
        records = self.pack.records[self.train_set.clips]
        by_fit = np.argsort(np.abs(records["samples"].astype(np.int64) - wanted), kind="stable")
        speakers, first = np.unique(records["speaker"][by_fit], return_index=True)
        voices: dict[str, np.ndarray] = {}
        for speaker, clip in zip(speakers, self.train_set.clips[by_fit[first]], strict=True):
            wave = self.pack.wave(clip)[:wanted].astype(np.float32) / 32768.0
            mel = reference_mel(wave, self.config.audio, self.config.model.frames_per_step)
            voices[self.pack.speakers[speaker]] = mel
        return voices

    # The loop

    def _feed(
        self,
        dataset: HostDataset,
        clock: StageClock,
        start: int = 0,
        epochs: int = 0,
        shuffle: bool = True,
        note: Callable[[Resized], None] = lambda _: None,
    ) -> Feed:
        data = self.config.data
        return Feed(
            dataset,
            self.featurizer,
            self.devices,
            clock,
            start,
            epochs,
            shuffle,
            stall_seconds=data.stall_timeout,
            most=data.prefetch or most_slots(data.batch_size),
            resized=lambda slots, reason: note(Resized(self.steps_done, slots, reason)),
        )

    def _training_stage(self) -> AbstractContextManager[None]:
        return naming_stage("train", self.batches_done, lambda: self.train_set.names(self.batches_done))

    def train(self, show: Show = lambda _: None, stop: threading.Event | None = None) -> Summary:
        """Runs until the first limit is reached or `stop` is set; either way ends with a checkpoint."""
        config, clock = self.config.training, StageClock()
        run, pace = Path(config.checkpoint_dir), Pace(clock, self.seconds_done)
        if self.progress(self.seconds_done) >= 1.0:
            raise UsageError(
                f"the run is complete at step {self.steps_done}; raise its limit (--max-steps, --epochs, --max-minutes)"
            )
        with (
            Logbook(run, show) as logbook,
            self._feed(self.train_set, clock, self.batches_done, config.epochs, note=logbook.record_event) as feed,
        ):
            if self.devices.two_devices:
                seconds = feed.wait_until_primed(self.config.data.model_start_delay)
                logbook.record_event(Primed(seconds, feed.ready))
            for batch in self._flat_start_first(iter(feed)):
                begin = time.perf_counter()
                rate = learning_rate(config, self.steps_done, self.progress(pace.seconds))
                guidance = max(0.0, 1.0 - self.steps_done / config.guide_steps) if config.guide_steps else 0.0
                with self._training_stage(), tf.device(self.devices.model_device):
                    results = self.step(batch, tf.constant(rate, tf.float32), tf.constant(guidance, tf.float32))
                self.steps_done += 1
                self.batches_done += 1
                pace.add(tuple(batch.mel.shape), time.perf_counter() - begin, results)
                self.seconds_done = pace.seconds
                stopped = stop is not None and stop.is_set()
                last = stopped or self.progress(pace.seconds) >= 1.0
                improved = False
                if self.steps_done % config.log_every == 0 or last:
                    logbook.record(self._metrics(pace, rate, feed.ready / feed.slots))
                with pace.aside():
                    if self.val_set and not stopped and (self.steps_done % config.val_every == 0 or last):
                        improved = self._validate(logbook)
                    if self.steps_done % config.save_every == 0 or improved or last:
                        self._save(run, improved or self.val_set is None)
                if last:
                    break
        return Summary(steps=self.steps_done, traces=self.step.traces, **pace.summary())

    def _metrics(self, pace: Pace, rate: float, buffer_fill: float) -> Metrics:
        measured, progress = pace.close_window(), self.progress(pace.seconds)
        return Metrics(
            step=self.steps_done,
            epoch=self.batches_done // self.train_set.batches_per_epoch,
            seconds=pace.seconds,
            learning_rate=rate,
            buffer_fill=buffer_fill,
            progress=min(1.0, progress),
            seconds_left=pace.seconds * max(0.0, 1 - progress) / max(progress, 1e-6),
            **measured,
        )

    def progress(self, seconds: float) -> float:
        """How far the run has come towards its nearest limit."""
        config = self.config.training
        shares = [self.steps_done / config.max_steps]
        if config.epochs:
            shares.append(self.batches_done / (config.epochs * self.train_set.batches_per_epoch))
        if config.max_minutes:
            shares.append(seconds / (60 * config.max_minutes))
        return max(shares)

    def _flat_start_first(self, feed: Iterator[Batch]) -> Iterator[Batch]:
        """Sweeps over the first batches to set up the alignment guide, then hands out those and all others."""
        config = self.config.training
        if self.steps_done or not config.flat_start_sweeps or not config.guide_steps:
            return feed
        wanted = max(1, min(config.flat_start_clips // self.config.data.batch_size, self.train_set.batches_per_epoch))
        first = list(itertools.islice(feed, wanted))
        flat_start = FlatStart(self.model)
        with tf.device(self.devices.model_device):
            for sweep in range(config.flat_start_sweeps):
                for batch in first:
                    flat_start.add(batch, first=sweep == 0)
                flat_start.finish_sweep()
        return itertools.chain(first, feed)

    # Looking and saving

    def _validate(self, logbook: Logbook) -> bool:
        """Losses of the averaged weights on the held-out clips; True when they are the best so far."""
        assert self.val_set is not None
        results, weights, shown = [], [], None
        with self.step.averaged(), self._feed(self.val_set, StageClock(), epochs=1, shuffle=False) as feed:
            for batch in feed:
                with tf.device(self.devices.model_device):
                    losses, output = self.evaluate(batch, tf.constant(0.0))
                results.append({name: float(value) for name, value in losses.items()})  # host sync
                weights.append(float(tf.reduce_sum(batch.weights)))
                if shown is None:
                    shown = batch, output
        if shown is None:
            return False
        losses = {name: float(np.average([r[name] for r in results], weights=weights)) for name in results[0]}
        batch, output = shown
        frames, tokens = int(batch.mel_lengths[0]), int(batch.text_lengths[0])
        spoken = unstack_frames(output.mel, self.model.frames_per_step)[0, :frames].numpy()
        path = output.path[0, :tokens, : frames // self.model.frames_per_step].numpy()
        logbook.record_validation(Validation(self.steps_done, losses, batch.mel[0, :frames].numpy(), spoken, path))
        improved = losses["loss"] < self.best_loss
        self.best_loss = min(self.best_loss, losses["loss"])
        return improved

    def _save(self, run: Path, best: bool) -> None:
        state = {
            "step": self.steps_done,
            "batches": self.batches_done,
            "best_loss": self.best_loss,
            "seconds": self.seconds_done,
        }
        arrays = self.step.arrays()
        if not np.isfinite(arrays["weights"]).all():
            raise RunError(
                f"the weights are no longer numbers at step {self.steps_done}; earlier checkpoints in {run} are kept: "
                "resume from one with a lower --lr"
            )
        checkpoint = Checkpoint(self.config, self.tokenizer, arrays, self.voices, state)
        write_checkpoint(run, checkpoint, self.config.training.keep, best)


def split_clips(samples: np.ndarray, held_out: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the clips to train on and to hold out: of every length, at most a tenth of all.

    Neither the shortest nor the longest is held out.
    """
    count = min(held_out, len(samples) // 10)
    by_length = np.argsort(samples, kind="stable")
    chosen = np.unique(by_length[np.linspace(0, len(samples) - 1, count + 2)[1:-1].astype(int)])
    return np.setdiff1d(np.arange(len(samples)), chosen), chosen


def _refuse_other_model(config: XTTSConfig, saved: XTTSConfig, path: Path | None) -> None:
    lines = differences(config, saved, "model") + differences(config, saved, "audio")
    if lines:
        raise UsageError(f"{path} is another model: {'; '.join(lines)}")
