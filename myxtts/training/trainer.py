"""The training loop, nothing else.

In: XTTSConfig.
Out: checkpoints, a logbook and a Summary.
"""

import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from myxtts.checkpoint.folder import Checkpoint, locked_run
from myxtts.checkpoint.state import RunState
from myxtts.cluster.cluster import Cluster
from myxtts.config.config import XTTSConfig
from myxtts.data.packs import Packs
from myxtts.devices import memory_peaks, process_peak_mb
from myxtts.errors import UsageError
from myxtts.pipeline.clock import StageClock
from myxtts.training.background import BackgroundWorker
from myxtts.training.follower import follow
from myxtts.training.limits import Limits
from myxtts.training.logbook import Logbook
from myxtts.training.memory import explaining_memory
from myxtts.training.metrics import EvaluationResult, Event, Metrics, Notice, Primed, Resized, RunFacts, Sample, Summary
from myxtts.training.pace import Pace
from myxtts.training.ranks import Ranks
from myxtts.training.run import Run
from myxtts.training.run_ahead import RunAhead
from myxtts.training.sampler import Evaluator, Sampler
from myxtts.training.saver import Saver
from myxtts.training.sets import EVALUATED, SAMPLES
from myxtts.training.strategy import end_waits

Show = Callable[[Event], None]


def _interrupt(stop: threading.Event) -> None:
    """Ends what rank 0 waits for when another process is lost."""
    stop.set()
    end_waits()


class XTTSTrainer:
    """Trains the speech model on one prepared dataset.

    Args:
        config: all settings.
        model: a ready model instead of a new one.
        resume_checkpoint: a checkpoint folder to go on from.
        model_device: where the model lives, instead of the first GPU or the CPU.
        reset_optimizer: go on without what the optimizer remembers.
        packs: the clips, where they have been prepared already.
        cluster: the processes that train together.
    """

    def __init__(
        self,
        config: XTTSConfig,
        model: Any = None,
        resume_checkpoint: Path | None = None,
        model_device: str | None = None,
        reset_optimizer: bool = False,
        packs: Packs | None = None,
        cluster: Cluster | None = None,
    ):
        self.config, self._given_model = config, model
        self.run = Run(config, packs, model, resume_checkpoint, model_device, reset_optimizer, cluster)
        self._ranks = Ranks(cluster) if cluster else None

    def train(
        self,
        show: Show = lambda _: None,
        stop: threading.Event | None = None,
        report: threading.Event | None = None,
        gpu_utilisation: Callable[[], dict[str, float]] = dict,
    ) -> Summary:
        """Runs until the first limit is reached; either way ends with a checkpoint.

        In a cluster rank 0 does so, and the others follow it.

        Args:
            show: told every event.
            stop: set from outside, ends the run after the current step.
            report: set from outside, asks for a performance report; cleared when it was given.
            gpu_utilisation: asked at each log line for the mean share since the line before, by the GPU's id.
        """
        stop, report = stop or threading.Event(), report or threading.Event()
        if not self.run.leads:
            return follow(self.run, show, stop)
        config, clock, run = self.config.training, StageClock(), self.run
        folder = Path(config.checkpoint_dir)
        if (reason := self.limits.why_complete()) and not self.state.owes_validation:
            raise UsageError(f"the run is complete at step {self.state.step}; {reason}")
        with (
            explaining_memory(self.config, lambda: run.step.parts),
            locked_run(folder),
            Logbook(folder, show, self.state.step) as logbook,
            BackgroundWorker[Event]() as speaking,  # apart, so that no checkpoint waits for it
            BackgroundWorker[Event]() as worker,
            run.feed(
                clock, stop, lambda slots, why: logbook.record_event(Resized(self.state.step, slots, why))
            ) as feed,
            RunAhead() as ahead,
            ExitStack() as stack,
        ):
            if self._given_model is not None:  # who gave a model wants it trained
                stack.callback(run.give_back)
            self._tell(logbook, [])
            logbook.record_run(RunFacts.of(self.state.step, self.config, run.devices))
            judged = run.val_set is not None and self.config.kind.loss_tells_best
            saver = Saver(folder, config.keep, worker, self.state.step, judged)
            samplers = self._make_samplers(folder, speaking)
            if run.devices.pipeline == "split":
                seconds = feed.wait_until_primed(self.config.data.model_start_delay)
                if not stop.is_set():
                    logbook.record_event(Primed(seconds, feed.ready))
            pace = Pace(clock, self.state.seconds)
            stack.enter_context(self._saved_in_the_end(saver, logbook, (worker, speaking), pace))
            if self.state.owes_validation and run.val_set:
                self._validate(logbook, stop)
                if not self.state.owes_validation:
                    saver.save(self._checkpoint(pace))
            if run.cluster is not None:
                run.share_weights(stop)
                run.cluster.on_lost = functools.partial(_interrupt, stop)
            for batch in () if self.limits.why_complete() else run.batches(iter(feed), stop):
                run.lead_step(self.limits.elapsed(pace.seconds), pace.seconds)
                results = run.take_step(batch)
                ahead.add(results["loss"])
                self.state.step += 1
                self.state.batches += 1
                pace.add(batch.mel_shape, results)
                self.state.seconds, self.state.loss = pace.seconds, None
                complete = self.limits.progress(pace.seconds) >= 1.0
                if run.cluster is not None and run.cluster.stopped_by is not None:
                    stop.set()
                last = complete or stop.is_set()
                if self.state.step % config.log_every == 0 or last:
                    logbook.record(self._metrics(pace, feed.ready / feed.slots, gpu_utilisation()))
                    complete = complete or run.bad_steps.too_many
                improved = False
                if run.val_set and (self.state.step % config.val_every == 0 or complete):
                    with pace.paused():
                        improved = self._validate(logbook, stop)
                last = complete or stop.is_set() or self.limits.patience_is_over
                if self.state.step % config.save_every == 0 or improved or last:
                    saver.save(self._checkpoint(pace))
                for every, sampler in samplers:
                    if self.state.step % every == 0:
                        sampler.begin(self.state.step, run.step.averaged_weights)
                self._tell(logbook, [*worker.take_reports(), *speaking.take_reports()])
                if report.is_set():
                    report.clear()
                    logbook.record_event(self._summary(pace))
                if last:
                    break
            if run.cluster is not None:
                run.cluster.require_whole()
                if stop.is_set() and run.cluster.stopped_by is None:
                    run.cluster.stopped_by = run.cluster.rank
                if not run.bad_steps.too_many:
                    run.cluster.order({"end": True, "stopped_by": run.cluster.stopped_by})
            summary = self._summary(pace)
            logbook.record_end(summary)
        if run.bad_steps.too_many:
            raise run.bad_steps.dump(folder, run.train_set.names)
        return summary

    @property
    def state(self) -> RunState:
        """How far the run has come."""
        return self.run.state

    @property
    def limits(self) -> Limits:
        return Limits(self.config.training, self.state, self.run.train_set.batches_per_epoch)

    @contextmanager
    def _saved_in_the_end(
        self, saver: Saver, logbook: Logbook, workers: Sequence[BackgroundWorker[Event]], pace: Pace
    ) -> Iterator[None]:
        """Whatever error or signal ends the block, what was learned is on the disk."""
        try:
            yield
        except Exception:
            saving = saver.step < self.state.step
            if saving:
                saver.save(self._checkpoint(pace))
            events: list[Event] = [event for worker in workers for event in worker.finish()]
            if saving and not saver.failed:
                events.append(Notice(self.state.step, f"saved before the run ends: {saver.run / 'latest'}", "saved"))
            self._tell(logbook, events)
            raise
        if saver.step < self.state.step:  # stopped while it waited for data
            saver.save(self._checkpoint(pace))
        self._tell(logbook, [event for worker in workers for event in worker.finish()])
        saver.require_saved()

    def _tell(self, logbook: Logbook, reports: list[Event]) -> None:
        """Records what happened beside the loop."""
        told = self.run.notices  # the feed's threads may add to it meanwhile
        notices = [Notice(self.state.step, told.pop(0)) for _ in range(len(told))]
        for event in (*notices, *reports):
            if isinstance(event, Sample):
                logbook.record_sample(event)
            elif isinstance(event, EvaluationResult):
                logbook.record_evaluation(event)
            elif isinstance(event, Notice):
                logbook.record_event(event)

    def _metrics(self, pace: Pace, buffer_fill: float, gpu_utilisation: dict[str, float]) -> Metrics:
        run, (measured, flags) = self.run, pace.close_window()
        run.count_bad_steps(flags)
        if self._ranks is not None:
            measured |= self._ranks.compare(self.state.step, measured, run.notices)
        progress = self.limits.shown(pace.seconds)
        return Metrics(
            step=self.state.step,
            epoch=self.state.batches // run.train_set.batches_per_epoch,
            seconds=pace.seconds,
            buffer_fill=buffer_fill,
            progress=progress,
            seconds_left=pace.seconds * max(0.0, 1 - progress) / max(progress, 1e-6),
            skipped=run.bad_steps.skipped,
            memory_mb=self._memory_mb(),
            gpu_utilisation=gpu_utilisation,
            **measured,
        )

    def _memory_mb(self) -> float:
        """The peak so far on the training GPU, else of the process."""
        devices = self.run.devices
        return memory_peaks(devices)[devices.model_device] or process_peak_mb()

    def _summary(self, pace: Pace) -> Summary:
        skipped, traces = self.run.bad_steps.skipped, self.run.step.traces
        return Summary(steps=self.state.step, traces=traces, skipped=skipped, **pace.summary())

    def _validate(self, logbook: Logbook, stop: threading.Event) -> bool:
        """Looks at the held-out clips; True when their losses are the best so far."""
        found = self.run.validate(stop)
        self.state.owes_validation = found is None
        if found is None:
            return False
        logbook.record_validation(found)
        if clear := self.limits.note_validation(found.losses.get("mel", math.inf)):
            logbook.record_event(Notice(self.state.step, clear, "clear"))
        loss, best = found.losses["loss"], self.state.best_loss
        self.state.loss = loss if math.isfinite(loss) and self.config.kind.loss_tells_best else None
        improved = math.isfinite(loss) and (best is None or loss < best)
        self.state.best_loss = loss if improved else best
        self.state.validations_since_best = 0 if improved else self.state.validations_since_best + 1
        return improved

    def _checkpoint(self, pace: Pace) -> Checkpoint:
        return self.run.checkpoint(pace.open_flags())

    def _make_samplers(self, folder: Path, worker: BackgroundWorker[Event]) -> list[tuple[int, Sampler]]:
        """What speaks every so many steps, warmed up, if the run comes to that at all."""
        config, found = self.config.training, []
        wanted = ((config.sample_every, Sampler, SAMPLES), (config.eval_every, Evaluator, EVALUATED))
        for every, kind, sentences in wanted:
            if every and config.max_steps // every > self.state.step // every:
                make = functools.partial(self.run.make_generator, sentences)
                found.append((every, kind(make, self.config.audio.sample_rate, folder, worker)))
                found[-1][1].warm_up()
        return found
