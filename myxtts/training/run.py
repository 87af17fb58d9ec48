"""Everything that one training needs, each part made once and on its device.

In: all settings; perhaps prepared clips, a model, a checkpoint to go on from.
Out: a `Run` that can be stepped, fed and saved; the loop itself is the trainer's.
"""

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from myxtts.batch import StepInput
from myxtts.checkpoint.folder import Checkpoint, find_checkpoint, read_checkpoint
from myxtts.checkpoint.state import RunState
from myxtts.checkpoint.weights import by_part, join_arrays, split_arrays
from myxtts.cluster.cluster import Cluster
from myxtts.config.config import XTTSConfig
from myxtts.data.dataset import HostDataset
from myxtts.data.packs import Packs, prepare_packs
from myxtts.devices import HOST, Place, plan_devices, require_on
from myxtts.errors import RunError, UsageError
from myxtts.pipeline.clock import StageClock
from myxtts.pipeline.feed import SLOTS, Feed, FeedOptions, most_slots
from myxtts.pipeline.stage_error import StageError, naming_stage, some
from myxtts.pipeline.stages import Stage
from myxtts.text.tokenizer import Tokenizer
from myxtts.training.bad_steps import BadSteps
from myxtts.training.memory import make_room
from myxtts.training.metrics import Validation
from myxtts.training.replicas import ReplicatedStep
from myxtts.training.sampler import SampleGenerator
from myxtts.training.schedule import Schedule
from myxtts.training.sets import collect_voices, go_without_validation, make_sets
from myxtts.training.step import EvaluateStep, TrainStep
from myxtts.training.strategy import join_processes
from myxtts.training.targets import make_target
from myxtts.training.targets.target import Samples, refuse_other_model
from myxtts.training.validation import validate

ALIGNS = ("speaker/", "text/", "prior/")  # the parts of a model that the alignment comes from


class Run:
    """Data, tokenizer, model, step and state of one training.

    Args:
        config: all settings.
        packs: the clips, where they have been prepared already.
        model: a ready model instead of a new one.
        resume_checkpoint: a checkpoint folder to go on from.
        model_device: where the model lives, instead of the first GPU or the CPU.
        reset_optimizer: go on without what the optimizer remembers.
        cluster: the processes that train together; rank 0's checkpoint, symbols and weights are everyone's.

    Attributes:
        notices: what is still to be said about it.
    """

    def __init__(
        self,
        config: XTTSConfig,
        packs: Packs | None = None,
        model: Any = None,
        resume_checkpoint: Path | None = None,
        model_device: str | None = None,
        reset_optimizer: bool = False,
        cluster: Cluster | None = None,
    ):
        self.config, self.cluster = config, cluster
        if config.data.processes != (cluster.size if cluster else 1):
            raise UsageError(
                f"`data.processes={config.data.processes}`, and {cluster.size if cluster else 1} train together; it is "
                "set by `cluster`"
            )
        plan = plan_devices(config.data, config.training.xla)
        self.devices = plan.with_model_on(model_device) if model_device else plan
        if config.training.mixed_precision == "float16" and not self.devices.trains_on_gpu:
            raise UsageError("`training.mixed_precision=float16` needs a GPU; on the CPU choose bfloat16 or float32")
        if cluster:
            join_processes(cluster, self.devices)
        keras.utils.set_random_seed(config.training.seed)
        resume_checkpoint = Path(resume_checkpoint) if resume_checkpoint else None
        start = resume_checkpoint or (Path(config.training.init_from) if config.training.init_from else None)
        resumes = resume_checkpoint is not None
        saved = read_checkpoint(find_checkpoint(start), resumes) if start and self.leads else None
        if saved:
            refuse_other_model(config, saved.config, start, whole=resumes)
        self.packs = packs or prepare_packs(config)
        self.tokenizer = self.packs.learn_tokenizer(config)
        if saved:
            self.tokenizer = saved.tokenizer if resumes else saved.tokenizer.grown(self.tokenizer)
        if cluster:
            self.tokenizer = Tokenizer.from_document(
                cluster.share_document(asdict(self.tokenizer), "tell the symbols of the data")
            )
        try:
            self.train_set, self.val_set = make_sets(self.packs, self.tokenizer, config)
        except UsageError as error:
            if resume_checkpoint is None:
                raise
            raise UsageError(
                f"{error}; to teach it, start a new run with `training.init_from={resume_checkpoint}`"
            ) from None
        self.notices = [] if self.val_set else go_without_validation(config, len(self.train_set.clips))
        self.voices = collect_voices(self.train_set)
        if cluster:
            self.train_set = self.train_set.share(cluster.rank, cluster.size)
        self.target = make_target(config, len(self.tokenizer.symbols), self.devices.for_card)
        self.featurizer = self.target.make_featurizer()
        # Feed, sample audio and, with one card, training share the data device: threads take turns to give a card work.
        self._data_lock: AbstractContextManager = threading.RLock() if self.devices.uses_gpu else nullcontext()
        shared = self.devices.prepares_while_training
        self.place = Place(self.devices.model_device, self._data_lock if shared else nullcontext())  # of training
        self._make_step(model)
        if saved and resumes:
            self._go_on(saved, reset_optimizer)
        elif saved and start:
            self._begin_from(saved, start)
        if cluster:
            self.note_state(cluster.share_document(self.state.to_document(), "tell the state of the run"))
            self.bad_steps = BadSteps(config.training.max_bad_steps, self.state.skipped, self.state.bad_row)
        self.step.schedule = Schedule(
            config.training,
            guided=not self.state.knows_alignment,
            batches=config.training.epochs * self.train_set.batches_per_epoch,
            ahead=self.state.batches - self.state.step,
        )

    @property
    def leads(self) -> bool:
        """Whether this process decides, logs and saves; another one follows."""
        return self.cluster is None or self.cluster.leads

    def note_state(self, document: dict[str, Any]) -> None:
        """Takes the counters over as rank 0 has them."""
        self.state = RunState.from_document(document)

    def _make_step(self, model: Any) -> None:
        config, devices = self.config.training, self.devices
        with tf.device(devices.model_device):
            self.model = model or self.target.make_model()
            self.model.create_variables()
            self.step = (
                ReplicatedStep(self.model, self.target.objective, config, devices)
                if devices.shares_batches
                else TrainStep(self.model, self.target.objective, config, devices.compiled)
            )
        require_on(devices.model_device, self.step.variables(), "the model")
        self.evaluate = EvaluateStep(self.step)
        self.state = RunState(parts=self.step.parts)
        self.bad_steps = BadSteps(config.max_bad_steps)

    def _go_on(self, saved: Checkpoint, reset_optimizer: bool) -> None:
        """Takes the state of a checkpoint; where the order of the clips is another now, the epoch starts anew."""
        self.step.restore(saved.arrays, saved.state.step, optimizer=not reset_optimizer)
        self.state = state = saved.state
        self.bad_steps = BadSteps(self.config.training.max_bad_steps, state.skipped, state.bad_row)
        if self.bad_steps.too_many:  # that ended the run; it gets another chance
            self.bad_steps.row.clear()
        if self.config.training.auto_batch and self.config.device_clips % state.parts == 0:
            self.step.parts = max(self.step.parts, state.parts)  # memory was too small for more at once
        ours, theirs = self._order(), state.order
        if theirs.keys() != ours.keys() or any(type(theirs[name]) is not type(ours[name]) for name in ours):
            raise UsageError(f"the checkpoint is damaged: state.json has order {theirs}; name another one")
        if theirs["batches"] < 1:
            raise UsageError(f"the checkpoint is damaged: state.json has {theirs['batches']} batches an epoch")
        if changed := [name for name in ours if ours[name] != theirs[name]]:
            epoch = self.state.batches // theirs["batches"]
            self.state.batches = epoch * self.train_set.batches_per_epoch
            what = ", ".join(f"{name} {theirs[name]} then, {ours[name]} now" for name in changed)
            self.notices.append(f"the clips come in another order than before ({what}); epoch {epoch} starts anew")

    def _begin_from(self, saved: Checkpoint, start: Path) -> None:
        """Takes what fits of the averaged weights of a checkpoint."""
        known = len(saved.tokenizer.symbols)
        self._refuse_deaf_symbols(known)
        found = self.step.begin_from(saved.arrays)
        if found.anew:
            self.notices.append(f"{start} does not hold all of this model; anew: {by_part(found.anew)}")
        if found.unexpected:
            self.notices.append(f"{start} holds more than this model; left out: {by_part(found.unexpected)}")
        new_symbols = known != len(self.tokenizer.symbols)
        self.state.knows_alignment = not new_symbols and not any(name.startswith(ALIGNS) for name in found.anew)

    def _refuse_deaf_symbols(self, known: int) -> None:
        """New symbols start at random values and must learn."""
        new = self.tokenizer.symbols[known:] if self.model.symbol_table is not None else ()
        if new and not self.step.learns(self.model.symbol_table):
            raise UsageError(
                f"the data has {len(new)} new symbols ({some(new)}) but "
                f"`training.freeze={self.config.training.freeze}` keeps them from being learned; leave text out of it"
            )

    def _order(self) -> dict[str, Any]:
        """What decides which clips are in which batch."""
        return {
            "data": self.packs.train.folder.name,
            "clips": len(self.train_set.clips),
            "clips a step": self.config.step_clips,
            "batches": self.train_set.batches_per_epoch,
            "seed": self.config.training.seed,
        }

    def feed(
        self, clock: StageClock, stop: threading.Event, resized: Callable[[int, str], None] = lambda slots, reason: None
    ) -> Feed:
        """The batches that are still to be trained on."""
        begin = FeedOptions(start=self.state.batches, epochs=self.config.training.epochs, resized=resized)
        return self._feed(self.train_set, clock, stop, begin)

    def _feed(self, dataset: HostDataset, clock: StageClock, stop: threading.Event, options: FeedOptions) -> Feed:
        data = self.config.data
        options = replace(
            options,
            stop=stop,
            stall_seconds=data.stall_timeout,
            slots=data.prefetch or SLOTS,
            most=data.prefetch or most_slots(self.config.process_clips),
            device_lock=self._data_lock,
            save_memory=self.notices.append if self.config.training.auto_batch else None,
        )
        devices = self.devices if dataset is self.train_set else self.devices.alone()
        return Feed(dataset, self.featurizer, devices, clock, options)

    def batches(self, feed: Iterator[StepInput], stop: threading.Event) -> Iterator[StepInput]:
        """All batches of a feed; those of a new run are first looked at as the target wants it."""
        if self.cluster is not None or not self._is_new:
            return feed
        return self.target.begin(self.model, feed, self.train_set, self.place, stop)

    @property
    def _is_new(self) -> bool:
        """Whether nothing is known of the alignment yet."""
        return not (self.state.step or self.state.knows_alignment)

    def share_weights(self, stop: threading.Event) -> None:
        """Gives every process what rank 0 begins with; of a new run, after it has looked at whole first batches."""
        assert self.cluster is not None
        if not self.leads:
            self.step.restore(split_arrays(self.cluster.share(None, "begin")), self.state.step)
            return
        if self._is_new:
            whole = self.train_set.share(0, 1)
            once = FeedOptions(start=self.state.batches, purpose="flat start")
            with self._feed(whole, StageClock(), stop, once) as feed:
                self.target.begin(self.model, iter(feed), whole, self.place, stop)
        self.cluster.share(join_arrays(self.step.arrays()), "begin")

    def lead_step(self, elapsed: float, seconds: float) -> None:
        """Begins a step on every process: `elapsed` is the share of the run's time, `seconds` how long it has run."""
        if self.cluster is not None:
            self.cluster.order({"elapsed": elapsed, "state": replace(self.state, seconds=seconds).to_document()})
        self.step.note_elapsed(elapsed)

    def take_step(self, batch: StepInput) -> dict[str, tf.Tensor]:
        """One optimizer step, which all processes take together.

        Raises:
            RunError: another process is lost.
        """
        if self.cluster is None:
            return self._take_step(batch)
        self.cluster.require_whole()
        self.cluster.begin_step(self.state.step + 1)
        try:
            return self._take_step(batch)
        except RunError as error:
            if isinstance(error, StageError) and error.out_of_memory:
                raise
            raise self.cluster.explain() or error from error
        finally:
            self.cluster.end_step()

    def _take_step(self, batch: StepInput) -> dict[str, tf.Tensor]:
        """Where memory runs out and `auto_batch` allows it, in smaller parts."""
        adversarial = self.target.adversarial(self.state.step)
        names = functools.partial(self.train_set.names, self.state.batches)
        while True:
            try:
                device = tf.device(self.place.device)
                with naming_stage(Stage.TRAIN, self.state.batches, names), self.place.lock, device:
                    return self.step(batch, adversarial)
            except StageError as error:
                if not error.out_of_memory:
                    raise
                times, notice = make_room(batch, self.config, self.step.parts, self.target.too_large)
                self.step.parts *= times
                self.notices.append(notice)

    def validate(self, stop: threading.Event) -> Validation | None:
        """Losses of the averaged weights on the held-out clips; None when that was cut short."""
        assert self.val_set is not None
        once = FeedOptions(epochs=1, shuffle=False, purpose="validation")
        with self._feed(self.val_set, StageClock(), stop, once) as feed:
            names = functools.partial(self.val_set.names, shuffle=False)
            return validate(self.state.step, feed, self.evaluate, self.target.draw, self.place, names, stop)

    def count_bad_steps(self, flags: Mapping[str, list[bool]], into: BadSteps | None = None) -> None:
        """Counts which of the newest steps were skipped or bad, as `Pace` has read them back."""
        (into or self.bad_steps).add(self.state.batches - len(flags["bad"]), flags["skipped"], flags["bad"])

    def checkpoint(self, open_flags: Mapping[str, list[bool]]) -> Checkpoint:
        """All that it takes to go on from here; `open_flags` are those of steps that no log line has counted."""
        bad = self.bad_steps.copy()
        self.count_bad_steps(open_flags, bad)
        parts, order = self.step.parts, self._order()
        state = replace(self.state, skipped=bad.skipped, bad_row=bad.row, parts=parts, order=order)
        return Checkpoint(self.config, self.tokenizer, self.step.arrays(), self.voices, state)

    def make_generator(self, sentences: int) -> SampleGenerator:
        """What speaks so many sentences now and then, on a device that does not train."""
        apart = not self.devices.prepares_while_training
        place = Place(self.devices.data_device, self._data_lock) if apart else Place(HOST)
        spoken = self.val_set or self.train_set
        return self.target.make_generator(Samples(spoken, self.tokenizer, self.voices, place, sentences))

    def give_back(self) -> None:
        """Gives the model its own variables again."""
        with tf.device(self.place.device):
            self.step.give_back()
