"""The training loop, nothing else.

In: XTTSConfig.
Out: checkpoints, a logbook and a Summary.
"""

import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from myxtts.batch import StepInput
from myxtts.checkpoint.folder import Checkpoint, find_checkpoint, locked_run, read_checkpoint
from myxtts.checkpoint.state import RunState
from myxtts.checkpoint.weights import by_part
from myxtts.config.config import XTTSConfig
from myxtts.data.cache import learn_tokenizer, prepare, require_clips
from myxtts.data.dataset import HostDataset
from myxtts.devices import HOST, memory_peaks, plan_devices, process_peak_mb, require_on
from myxtts.errors import UsageError
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.feed import SLOTS, Feed, most_slots
from myxtts.pipeline.stage import StageError, naming_stage, some
from myxtts.training.background import BackgroundWorker
from myxtts.training.bad_steps import BadSteps
from myxtts.training.limits import Limits
from myxtts.training.logbook import Logbook
from myxtts.training.memory import explaining_memory, make_room
from myxtts.training.metrics import EvaluationResult, Event, Metrics, Notice, Primed, Resized, RunFacts, Sample, Summary
from myxtts.training.pace import Pace
from myxtts.training.parallel import ParallelStep
from myxtts.training.run_ahead import RunAhead
from myxtts.training.sampler import Evaluator, Sampler
from myxtts.training.saver import Saver
from myxtts.training.schedule import Schedule
from myxtts.training.sets import EVALUATED, SAMPLES, collect_voices, go_without_validation, make_sets
from myxtts.training.step import EvaluateStep, TrainStep
from myxtts.training.target import Samples, make_target, refuse_other_model
from myxtts.training.validation import validate

Show = Callable[[Event], None]
ALIGNS = ("speaker/", "text/", "prior/")  # the parts of a model that the alignment comes from


class XTTSTrainer:
    """Trains the speech model on one prepared dataset.

    Args:
        config: all settings.
        model: a ready model instead of a new one.
        resume_checkpoint: a checkpoint folder to go on from.
        model_device: where the model lives, instead of the first GPU or the CPU.
        reset_optimizer: go on without what the optimizer remembers.
    """

    def __init__(
        self,
        config: XTTSConfig,
        model: Any = None,
        resume_checkpoint: Path | None = None,
        model_device: str | None = None,
        reset_optimizer: bool = False,
    ):
        self.config = config
        plan = plan_devices(config.data, config.training.xla)
        self.devices = plan.with_model_on(model_device) if model_device else plan
        resume_checkpoint = Path(resume_checkpoint) if resume_checkpoint else None
        if config.training.mixed_precision == "float16" and not self.devices.trains_on_gpu:
            raise UsageError("--mixed-precision float16 needs a GPU; on the CPU choose bfloat16 or float32")
        keras.utils.set_random_seed(config.training.seed)
        start = resume_checkpoint or (Path(config.training.init_from) if config.training.init_from else None)
        resumes = resume_checkpoint is not None
        saved = read_checkpoint(find_checkpoint(start), resumes) if start else None
        if saved:
            refuse_other_model(config, saved.config, start, whole=resumes)
        self.pack = self.val_pack = prepare(Path(config.data.train_data), config)
        if config.data.val_data:
            self.val_pack = prepare(Path(config.data.val_data), config)
        require_clips(self.pack, config)
        self.tokenizer = learn_tokenizer([self.pack, self.val_pack], config)
        if saved:
            self.tokenizer = saved.tokenizer if resume_checkpoint else saved.tokenizer.grown(self.tokenizer)
        try:
            self.train_set, self.val_set = make_sets(self.pack, self.val_pack, self.tokenizer, config)
        except UsageError as error:
            if resume_checkpoint is None:
                raise
            raise UsageError(f"{error}; to teach it, start a new run with --init-from {resume_checkpoint}") from None
        self._notices = [] if self.val_set else go_without_validation(config, len(self.train_set.clips))
        self.voices = collect_voices(self.train_set)
        self.target = make_target(config, len(self.tokenizer.symbols), self.devices.for_card)
        self.featurizer = self.target.make_featurizer()
        # Feed, sample audio and, with one card, training share the data device: threads take turns to give a card work.
        self._device_lock: AbstractContextManager = threading.RLock() if self.devices.uses_gpu else nullcontext()
        self._training_lock = nullcontext() if self.devices.two_devices else self._device_lock
        with tf.device(self.devices.model_device):
            self._given_model = model
            self.model = model or self.target.make_model()
            self.model.create_variables()
            self.step = (
                ParallelStep(self.model, config.training, self.devices, self._device_lock)
                if self.devices.both_train
                else TrainStep(self.model, config.training, self.devices.compiled)
            )
        require_on(self.devices.model_device, self.step.variables(), "the model")
        self.evaluate = EvaluateStep(self.step)
        self.state = RunState(parts=self.step.parts)
        self.bad_steps = BadSteps(config.training.max_bad_steps)
        if saved and resume_checkpoint:
            self._go_on(saved, reset_optimizer)
        elif saved:
            self._refuse_deaf_symbols(len(saved.tokenizer.symbols))
            found = self.step.begin_from(saved.arrays)
            if found.anew:
                self._notices.append(f"⚠️ {start} does not hold all of this model; anew: {by_part(found.anew)}")
            if found.unexpected:
                self._notices.append(f"⚠️ {start} holds more than this model; left out: {by_part(found.unexpected)}")
            symbols = len(saved.tokenizer.symbols) == len(self.tokenizer.symbols)
            self.state.knows_alignment = symbols and not any(name.startswith(ALIGNS) for name in found.anew)
        self.step.schedule = Schedule(
            config.training,
            guided=not self.state.knows_alignment,
            batches=config.training.epochs * self.train_set.batches_per_epoch,
            ahead=self.state.batches - self.state.step,
        )

    def _go_on(self, saved: Checkpoint, reset_optimizer: bool) -> None:
        """Takes the state of a checkpoint; where the order of the clips is another now, the epoch starts anew."""
        self.step.restore(saved.arrays, saved.state.step, optimizer=not reset_optimizer)
        self.state = state = saved.state
        self.bad_steps = BadSteps(self.config.training.max_bad_steps, state.skipped, state.bad_row)
        if self.bad_steps.too_many:  # that ended the run; it gets another chance
            self.bad_steps.row.clear()
        held = self.config.step_clips // (2 if self.devices.both_train else 1)
        if self.config.training.auto_batch and held % state.parts == 0:
            self.step.parts = max(self.step.parts, state.parts)  # memory was too small for more at once
        ours, theirs = self._order(), state.order
        if changed := [name for name in ours if ours[name] != theirs[name]]:
            epoch = self.state.batches // theirs["batches"]
            self.state.batches = epoch * self.train_set.batches_per_epoch
            what = ", ".join(f"{name} {theirs[name]} then, {ours[name]} now" for name in changed)
            self._notices.append(f"⚠️ the clips come in another order than before ({what}); epoch {epoch} starts anew")

    def _refuse_deaf_symbols(self, known: int) -> None:
        """New symbols start at random values and must learn."""
        new = self.tokenizer.symbols[known:] if self.model.symbol_table is not None else ()
        if new and not self.step.learns(self.model.symbol_table):
            raise UsageError(
                f"the data has {len(new)} new symbols ({some(new)}) but --freeze {self.config.training.freeze} keeps "
                "them from being learned; leave text out of it"
            )

    def _order(self) -> dict[str, Any]:
        """What decides which clips are in which batch."""
        return {
            "data": self.pack.folder.name,
            "clips": len(self.train_set.clips),
            "clips a step": self.config.step_clips,
            "batches": self.train_set.batches_per_epoch,
            "seed": self.config.training.seed,
        }

    # The loop

    def _feed(
        self,
        dataset: HostDataset,
        clock: StageClock,
        start: int = 0,
        epochs: int = 0,
        shuffle: bool = True,
        note: Callable[[Resized], None] = lambda _: None,
        stop: threading.Event | None = None,
        purpose: str = "",
    ) -> Feed:
        data = self.config.data
        return Feed(
            dataset,
            self.featurizer,
            self.devices.alone() if purpose else self.devices,
            clock,
            start,
            epochs,
            shuffle,
            stall_seconds=data.stall_timeout,
            most=data.prefetch or most_slots(self.config.step_clips),
            slots=data.prefetch or SLOTS,
            resized=lambda slots, reason: note(Resized(self.state.step, slots, reason)),
            device_lock=self._device_lock,
            stop=stop,
            purpose=purpose,
            save_memory=self._notices.append if self.config.training.auto_batch else None,
        )

    def train(
        self,
        show: Show = lambda _: None,
        stop: threading.Event | None = None,
        report: threading.Event | None = None,
        gpu_utilisation: Callable[[], dict[str, float]] = dict,
    ) -> Summary:
        """Runs until the first limit is reached; either way ends with a checkpoint.

        Args:
            show: told every event.
            stop: set from outside, ends the run after the current step.
            report: set from outside, asks for a performance report; cleared when it was given.
            gpu_utilisation: asked at each log line for the mean share since the line before, by the GPU's id.
        """
        stop, report = stop or threading.Event(), report or threading.Event()
        config, clock = self.config.training, StageClock()
        run = Path(config.checkpoint_dir)
        if (reason := self.limits.why_complete()) and not self.state.owes_validation:
            raise UsageError(f"the run is complete at step {self.state.step}; {reason}")
        with (
            explaining_memory(self.config, lambda: self.step.parts),
            locked_run(run),
            Logbook(run, show, self.state.step) as logbook,
            BackgroundWorker[Event]() as speaking,  # apart, so that no checkpoint waits for it
            BackgroundWorker[Event]() as worker,
            self._feed(
                self.train_set, clock, self.state.batches, config.epochs, note=logbook.record_event, stop=stop
            ) as feed,
            RunAhead() as ahead,
            ExitStack() as stack,
        ):
            if self._given_model is not None:  # who gave a model wants it trained
                stack.callback(self._give_back)
            self._tell(logbook, [])
            logbook.record_run(RunFacts.of(self.state.step, self.config, self.devices))
            judged = self.val_set is not None and self.target.loss_tells_best
            saver = Saver(run, config.keep, worker, self.state.step, judged)
            wanted = (
                (config.sample_every, self._make_sampler(Sampler, SAMPLES, run, speaking)),
                (config.eval_every, self._make_sampler(Evaluator, EVALUATED, run, speaking)),
            )
            samplers = [(every, sampler) for every, sampler in wanted if self._comes(every)]
            for _, sampler in samplers:
                sampler.warm_up()
            if self.devices.pipeline == "split":
                seconds = feed.wait_until_primed(self.config.data.model_start_delay)
                if not stop.is_set():
                    logbook.record_event(Primed(seconds, feed.ready))
            pace = Pace(clock, self.state.seconds)
            stack.enter_context(self._saved_in_the_end(saver, logbook, (worker, speaking), pace))
            if self.state.owes_validation and self.val_set:
                self._validate(logbook, stop)
                if not self.state.owes_validation:
                    saver.save(self._checkpoint(pace))
            for batch in () if self.limits.why_complete() else self._first_looked_at(iter(feed), stop):
                self.step.note_elapsed(self.limits.elapsed(pace.seconds))
                results = self.take_step(batch)
                ahead.add(results["loss"])
                self.state.step += 1
                self.state.batches += 1
                pace.add(batch.mel_shape, results)
                self.state.seconds, self.state.loss = pace.seconds, None
                complete = self.limits.progress(pace.seconds) >= 1.0
                last = complete or stop.is_set()
                if self.state.step % config.log_every == 0 or last:
                    logbook.record(self._metrics(pace, feed.ready / feed.slots, gpu_utilisation()))
                    complete = complete or self.bad_steps.too_many
                improved = False
                if self.val_set and (self.state.step % config.val_every == 0 or complete):
                    with pace.paused():
                        improved = self._validate(logbook, stop)
                last = complete or stop.is_set() or self.limits.patience_is_over
                if self.state.step % config.save_every == 0 or improved or last:
                    saver.save(self._checkpoint(pace))
                for every, sampler in samplers:
                    if self.state.step % every == 0:
                        sampler.begin(self.state.step, self.step.averaged_weights)
                self._tell(logbook, [*worker.take_reports(), *speaking.take_reports()])
                if report.is_set():
                    report.clear()
                    logbook.record_event(self._summary(pace))
                if last:
                    break
            summary = self._summary(pace)
            logbook.record_end(summary)
        if self.bad_steps.too_many:
            raise self.bad_steps.dump(run, self.train_set.names)
        return summary

    def _give_back(self) -> None:
        with tf.device(self.devices.model_device):
            self.step.give_back()

    @contextmanager
    def _saved_in_the_end(
        self, saver: Saver, logbook: Logbook, workers: Sequence[BackgroundWorker[Event]], pace: Pace
    ) -> Iterator[None]:
        """Whatever error or signal ends the block, what was learned is on the disk."""
        try:
            yield
        except Exception:
            if saver.step < self.state.step:
                saver.save(self._checkpoint(pace))
                self._notices.append(f"💾 saved before the run ends: {saver.run / 'latest'}")
            self._tell(logbook, [event for worker in workers for event in worker.finish()])
            raise
        if saver.step < self.state.step:  # stopped while it waited for data
            saver.save(self._checkpoint(pace))
        self._tell(logbook, [event for worker in workers for event in worker.finish()])
        saver.require_saved()

    def take_step(self, batch: StepInput) -> dict[str, tf.Tensor]:
        """One optimizer step; where memory runs out and `auto_batch` allows it, in smaller parts."""
        adversarial = self.target.adversarial(self.state.step)
        names = functools.partial(self.train_set.names, self.state.batches)
        while True:
            try:
                device = tf.device(self.devices.model_device)
                with naming_stage("train", self.state.batches, names), self._training_lock, device:
                    return self.step(batch, adversarial)
            except StageError as error:
                if not error.out_of_memory:
                    raise
                times, notice = make_room(batch, self.config, self.step.parts)
                self.step.parts *= times
                self._notices.append(notice)

    def _tell(self, logbook: Logbook, reports: list[Event]) -> None:
        """Records what happened beside the loop."""
        notices = [Notice(self.state.step, text) for text in self._notices]
        self._notices.clear()
        for event in (*notices, *reports):
            if isinstance(event, Sample):
                logbook.record_sample(event)
            elif isinstance(event, EvaluationResult):
                logbook.record_evaluation(event)
            elif isinstance(event, Notice):
                logbook.record_event(event)

    def _metrics(self, pace: Pace, buffer_fill: float, gpu_utilisation: dict[str, float]) -> Metrics:
        measured, flags = pace.close_window()
        self.bad_steps.add(self.state.batches - len(flags["bad"]), flags["skipped"], flags["bad"])
        progress = self.limits.shown(pace.seconds)
        return Metrics(
            step=self.state.step,
            epoch=self.state.batches // self.train_set.batches_per_epoch,
            seconds=pace.seconds,
            buffer_fill=buffer_fill,
            progress=progress,
            seconds_left=pace.seconds * max(0.0, 1 - progress) / max(progress, 1e-6),
            skipped=self.bad_steps.skipped,
            memory_mb=self._memory_mb(),
            gpu_utilisation=gpu_utilisation,
            **measured,
        )

    def _memory_mb(self) -> float:
        """The peak so far on the training GPU, else of the process."""
        return memory_peaks(self.devices)[self.devices.model_device] or process_peak_mb()

    def _summary(self, pace: Pace) -> Summary:
        return Summary(steps=self.state.step, traces=self.step.traces, skipped=self.bad_steps.skipped, **pace.summary())

    @property
    def limits(self) -> Limits:
        return Limits(self.config.training, self.state, self.train_set.batches_per_epoch)

    def _first_looked_at(self, feed: Iterator[StepInput], stop: threading.Event) -> Iterator[StepInput]:
        """All batches; those of a new run are first looked at as the target wants it."""
        if self.state.step or self.state.knows_alignment:
            return feed
        return self.target.begin(self.model, feed, self.train_set, self.devices.model_device, stop, self._training_lock)

    # Looking and saving

    def _validate(self, logbook: Logbook, stop: threading.Event) -> bool:
        """Losses of the averaged weights on the held-out clips; True when they are the best so far."""
        assert self.val_set is not None
        with self._feed(self.val_set, StageClock(), epochs=1, shuffle=False, stop=stop, purpose="validation") as feed:
            names = functools.partial(self.val_set.names, shuffle=False)
            device, draw = self.devices.model_device, self.target.draw
            found = validate(self.state.step, feed, self.evaluate, draw, device, names, stop, self._training_lock)
        self.state.owes_validation = found is None
        if found is None:
            return False
        logbook.record_validation(found)
        if clear := self.limits.note_validation(found.losses.get("mel", math.inf)):
            self._notices.append(clear)
        loss, best = found.losses["loss"], self.state.best_loss
        self.state.loss = loss if math.isfinite(loss) and self.target.loss_tells_best else None
        improved = math.isfinite(loss) and (best is None or loss < best)
        self.state.best_loss = loss if improved else best
        self.state.validations_since_best = 0 if improved else self.state.validations_since_best + 1
        return improved

    def _checkpoint(self, pace: Pace) -> Checkpoint:
        flags, bad_steps = pace.open_flags(), self.bad_steps.copy()
        bad_steps.add(self.state.batches - len(flags["bad"]), flags["skipped"], flags["bad"])
        state = replace(
            self.state,
            skipped=bad_steps.skipped,
            bad_row=bad_steps.row,
            parts=self.step.parts,
            order=self._order(),
        )
        return Checkpoint(self.config, self.tokenizer, self.step.arrays(), self.voices, state)

    def _comes(self, every: int) -> bool:
        """Whether what is done every so many steps will be done at all."""
        return bool(every) and self.config.training.max_steps // every > self.state.step // every

    def _make_sampler(self, kind: type[Sampler], count: int, run: Path, worker: BackgroundWorker[Event]) -> Sampler:
        device = self.devices.data_device if self.devices.two_devices else HOST
        spoken = self.val_set or self.train_set
        device_lock = self._device_lock if self.devices.two_devices else nullcontext()  # the host is nobody else's
        make_generator = functools.partial(
            self.target.make_generator, Samples(spoken, self.voices, device, device_lock, count)
        )
        return kind(make_generator, self.config.audio.sample_rate, run, worker)
