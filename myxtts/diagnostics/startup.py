"""Which settings of a run are known to be poor for this machine and this data, before its first step.

In: `StartupFacts`, which `collect_facts` finds out.
Out: a `PoorSetting` for each of them, with the values to choose instead; none where all is well.
"""

import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from myxtts.cards import RESERVED_MB, FoundCards
from myxtts.config.config import MODEL_SIZES, AudioConfig, ModelConfig, VocoderConfig, XTTSConfig
from myxtts.data.buckets import clip_frames
from myxtts.data.cache import cache_root
from myxtts.data.pack import INDEX, Pack
from myxtts.data.report import LITTLE_SPEECH_HOURS
from myxtts.devices import DevicePlan
from myxtts.diagnostics.advice import WAY_WORTH, Settings
from myxtts.diagnostics.step_cost import COSTS, SLICE_FEATURES_MB, SPEECH_FEATURES_MB, StepCost
from myxtts.diagnostics.verdict import Verdict, device_keys, read_verdict

# A card that gets less work than half of what launching takes is idle for more than half of every step, however fast
# the host is otherwise. Between half and all of it other things decide (`profile` tells), so nothing is said.
BUSY_SHARE = 0.5
FILLED_SHARE = 0.75  # of a card's memory by estimate: what compiled code tells leaves out workspaces and gaps
STEPS_AN_EPOCH = 8  # a batch is not recommended so large that an epoch has fewer
# Starting a run (importing, compiling the first shapes) takes about a minute; a loss below that is none.
LOST_SECONDS = 60.0
# The share of decoding that threads do side by side: finding the pitch. Of 64 clips it took 0.77 s, checks and phonemes
# 0.48 s; on two threads 0.51 s, and no less (two shared cores, OGG at 16 kHz).
SHARED_DECODING = 0.6
# Audio that a card trains on in a second: published for FastPitch on an A100. One thread serves 29,000 from memory
# (benchmarks/data.py), so this is missed only where a disk or a network is slow, and there threads wait side by side.
TRAINED_AUDIO = 1200.0
READ_CLIPS = 64  # that are read to find out
MOST_WORKERS = 16  # as in `profile`
# With less than half of what the card could give, a batch of twice the size would have had room.
LEAST_LIMIT = 0.5
SMALLEST, PACKAGE_VOICE = "tiny", "english"  # the voice in the package is of the smallest size
WITHOUT_SECOND_CARD = {"buffered": "on one card", "sequential": "without overlap"}


@dataclass(frozen=True)
class CardInUse:
    """A card of this run; what the driver does not tell is None."""

    role: str  # "data" or "model"; a single card has the model's
    number: int  # as nvidia-smi counts
    memory_mb: int | None = None
    bandwidth: float | None = None  # bytes a second
    limit_mb: int = 0  # that was asked for; 0: none

    @property
    def usable_mb(self) -> int | None:
        """What TensorFlow can have of it."""
        return None if self.memory_mb is None else max(RESERVED_MB, self.memory_mb - RESERVED_MB)


@dataclass(frozen=True)
class StartupFacts:
    """What is known of a run before its first step."""

    speaks: bool  # a speech model is trained, not a vocoder
    size: str  # the preset
    cost: StepCost | None  # of a step; None where single values differ from the preset
    cards: tuple[CardInUse, ...]  # empty on a CPU, split into virtual devices or not
    batch_shares: int  # devices that `batch_size` clips are divided among
    pipeline: str
    batch_size: int
    grad_accum: int
    workers: int  # 0: chosen by the program
    cores: int
    building_seconds: float  # that decoding the clips into the cache took just now; 0: they were there
    read_audio: float | None  # seconds of audio that one thread reads from the cache in a second; None: not looked at
    static_shapes: bool
    clips: int
    hours: float
    mean_frames: float  # mel frames of a clip, or of the slice of it that is trained on
    longest_frames: int
    preparing_mb: float  # that the data device holds for a batch, by estimate
    new_model: bool = True  # its weights are not taken from a checkpoint
    voice_fits: bool = True  # the voice in the package reads and hears as this run does
    verdict: Verdict | None = None  # of the last profile on these two cards with this model


@dataclass(frozen=True)
class PoorSetting:
    """What is poor, with its evidence, and what to set instead."""

    what: str
    instead: Settings


def find_poor_settings(facts: StartupFacts) -> list[PoorSetting]:
    """Everything that is known to be poor, in the order in which it costs the most."""
    checks = (_small_batch, _few_workers, _memory_limits, _changing_shapes, _little_data, _needless_card)
    return [poor for check in checks for poor in check(facts)]


def _small_batch(facts: StartupFacts) -> Iterator[PoorSetting]:
    """A batch that leaves the training card waiting for the host."""
    card = facts.cards[-1] if facts.cards else None
    if card is None or card.bandwidth is None or facts.cost is None:
        return
    cost, bandwidth = facts.cost, card.bandwidth

    def work_ms(size: int) -> float:
        return cost.work_ms(size * facts.mean_frames / facts.batch_shares, bandwidth)

    size, parts, least = facts.batch_size, facts.grad_accum, BUSY_SHARE * cost.launch_ms
    while work_ms(size) < least:
        fewer = parts // 2 if parts % 2 == 0 else parts  # as many clips in an optimizer step, where that can be
        if not _fits(2 * size, fewer, facts, card):
            break
        size, parts = 2 * size, fewer
    if size == facts.batch_size:
        return
    instead: Settings = {"data.batch_size": size}
    if facts.grad_accum > 1:
        instead = {**instead, "training.grad_accum": parts}
    yield PoorSetting(
        f"batches of {facts.batch_size} clips give the card {work_ms(facts.batch_size):.1f} ms of work a step, and the "
        f"host needs {cost.launch_ms:.1f} ms to launch it: the card waits (estimated from compiled code)",
        instead,
    )


def _fits(size: int, parts: int, facts: StartupFacts, card: CardInUse) -> bool:
    """Whether so many parts of that size leave enough steps in an epoch and, by estimate, room in the card's memory."""
    room = card.limit_mb or card.usable_mb
    if room is None or facts.cost is None or size * parts * STEPS_AN_EPOCH > facts.clips:
        return False
    return facts.cost.held_mb(size * facts.longest_frames / facts.batch_shares) <= FILLED_SHARE * room


def _few_workers(facts: StartupFacts) -> Iterator[PoorSetting]:
    """Fewer threads than decoding could use, or than reading from a slow disk needs."""
    if facts.workers and facts.workers < facts.cores:
        lost = SHARED_DECODING * facts.building_seconds * (1 - facts.workers / facts.cores)
        if lost > LOST_SECONDS:
            yield PoorSetting(
                f"decoding the clips took {facts.building_seconds:.0f} s with {facts.workers} of {facts.cores} cores; "
                "it comes again when recordings or settings of the audio change",
                {"data.num_workers": 0},
            )
            return
    wanted = TRAINED_AUDIO * facts.batch_shares
    reading = max(1, facts.workers)
    if facts.cards and facts.read_audio is not None and facts.read_audio * reading < wanted:
        needed = min(MOST_WORKERS, math.ceil(wanted / max(facts.read_audio, 1.0)))
        if needed > reading:
            yield PoorSetting(
                f"one thread reads {facts.read_audio:.0f} seconds of audio a second from the cache, and a card may "
                f"train on {wanted:.0f}",
                {"data.num_workers": needed},
            )


def _memory_limits(facts: StartupFacts) -> Iterator[PoorSetting]:
    """Limits that a card cannot give, or that leave most of it unused."""
    for card in facts.cards:
        usable = card.usable_mb
        if not card.limit_mb or usable is None:
            continue
        instead: Settings = {f"data.{card.role}_gpu_memory": usable}
        limit = f"GPU {card.number} is limited to {card.limit_mb} MB"
        if card.limit_mb > usable:
            yield PoorSetting(
                f"{limit}, and of its {card.memory_mb} MB TensorFlow can have {usable}: CUDA's own libraries need the "
                "rest",
                instead,
            )
        elif (card.role == "model" or facts.batch_shares > 1) and card.limit_mb < LEAST_LIMIT * usable:
            yield PoorSetting(f"{limit} of {usable}: the rest lies idle unless another program uses it", instead)
        elif card.role == "data" and card.limit_mb < _data_card_mb(facts) < usable:
            yield PoorSetting(
                f"{limit}, and preparing two batches beside the model that speaks samples takes about "
                f"{_data_card_mb(facts):.0f} (estimated from compiled code)",
                instead,
            )


def _data_card_mb(facts: StartupFacts) -> float:
    """One batch being prepared, one being copied, and the weights that sample audio is made with."""
    return 2 * facts.preparing_mb + (facts.cost.parameters_mb if facts.cost else 0.0)


def _changing_shapes(facts: StartupFacts) -> Iterator[PoorSetting]:
    """A vocoder's slices have one shape whatever is set."""
    if facts.static_shapes or not facts.speaks:
        return
    what = "the step" if facts.cards else "the features"  # on the CPU one trace of the step serves all lengths
    yield PoorSetting(
        "static shapes are off: every batch is as long as its longest clip, and "
        f"{what} must be compiled anew for each new length",
        {"data.static_shapes": True},
    )


def least_hours(size: str) -> float:
    """Speech below which a size is too large.

    `tiny` stays unclear below a quarter of an hour (`prepare` warns of it); the others are given as much speech for
    each of their parameters.
    """
    return LITTLE_SPEECH_HOURS * COSTS[size].parameters / COSTS[SMALLEST].parameters


def _little_data(facts: StartupFacts) -> Iterator[PoorSetting]:
    """A size that the data does not fill; a model that starts from a checkpoint has its size and has learned before."""
    if not facts.speaks or not facts.new_model or facts.hours >= least_hours(facts.size):
        return
    enough = [size for size in MODEL_SIZES if least_hours(size) <= facts.hours]
    size = enough[-1] if enough else SMALLEST
    instead: Settings = {"model.size": size} if size != facts.size else {}
    if not enough and facts.voice_fits:
        instead = {**instead, "training.init_from": PACKAGE_VOICE}
    if not instead:
        return  # there is nothing smaller to choose
    yield PoorSetting(
        f"{60 * facts.hours:.1f} minutes of speech are too few for a new model of the size {facts.size}: it wants at "
        f"least {60 * least_hours(facts.size):.0f}, or it learns the clips by heart",
        instead,
    )


def _needless_card(facts: StartupFacts) -> Iterator[PoorSetting]:
    """Two cards where the last profile of the same two measured one, or no overlap, to be better."""
    verdict = facts.verdict
    if verdict is None or len(facts.cards) < 2 or verdict.best_way not in WITHOUT_SECOND_CARD:
        return
    best, now = verdict.step_ms[verdict.best_way], verdict.step_ms.get(facts.pipeline)
    if now is None or best > (1 - WAY_WORTH) * now:
        return
    where = WITHOUT_SECOND_CARD[verdict.best_way]
    yield PoorSetting(
        f"the last profile of these two cards ({verdict.date}, batches of {verdict.batch_size}) measured {best:.1f} ms "
        f"a step {where} and {now:.1f} with two",
        {"data.pipeline": verdict.best_way},
    )


# Finding out


def collect_facts(
    config: XTTSConfig,
    plan: DevicePlan,
    pack: Pack,
    found: FoundCards,
    numbers: tuple[int, ...],
    building_seconds: float = 0.0,
    resumed: bool = False,
) -> StartupFacts:
    """The facts of a run whose devices are set up and whose clips are prepared.

    Args:
        config: its settings.
        plan: its devices.
        pack: its clips.
        found: the cards of this machine.
        numbers: which of them it uses, the one that prepares first (`watched_gpus`).
        building_seconds: how long decoding took (`building_seconds`).
        resumed: whether it goes on from a checkpoint.
    """
    data, training = config.data, config.training
    cards = _cards_in_use(config, plan, found, numbers)
    verdict = None
    if plan.two_devices and len(cards) == 2:
        verdict = read_verdict(cache_root(config), config, device_keys(plan, found))
    frames = clip_frames(pack.records["samples"], config)
    if config.kind.speaks:
        preparing = SPEECH_FEATURES_MB * float(frames.max() + config.model.reference_frames)
    else:
        preparing, frames = SLICE_FEATURES_MB, np.full(len(frames), config.vocoder.slice_frames)
    return StartupFacts(
        speaks=config.kind.speaks,
        size=config.model.size,
        cost=_cost(config),
        cards=cards,
        batch_shares=len(plan.training_devices) // data.replicas,
        pipeline=plan.pipeline,
        batch_size=data.batch_size,
        grad_accum=training.grad_accum,
        workers=data.num_workers,
        cores=os.cpu_count() or 1,
        building_seconds=building_seconds,
        read_audio=read_speed(pack) if cards else None,
        static_shapes=data.static_shapes,
        clips=len(pack),
        hours=pack.seconds / 3600,
        mean_frames=float(frames.mean()),
        longest_frames=int(frames.max()),
        preparing_mb=config.step_clips * preparing / len(plan.preparing_devices),
        new_model=not resumed and not training.init_from,
        voice_fits=config.audio == AudioConfig() and data.front_end == "phonemes" and _is_preset(config.model),
        verdict=verdict,
    )


def _cards_in_use(
    config: XTTSConfig, plan: DevicePlan, found: FoundCards, numbers: tuple[int, ...]
) -> tuple[CardInUse, ...]:
    if not plan.trains_on_gpu:
        return ()
    data = config.data
    limits = {"data": data.data_gpu_memory, "model": data.model_gpu_memory} if data.memory_isolation else {}
    roles = ["data" if number == data.data_gpu else "model" for number in numbers]
    return tuple(
        CardInUse(role, number, card.memory_mb, card.bandwidth, limits.get(role, 0))
        for role, number in zip(roles, numbers, strict=True)
        for card in found.cards[number : number + 1]
    )


def _cost(config: XTTSConfig) -> StepCost | None:
    if config.kind.speaks:
        return COSTS[config.model.size] if _is_preset(config.model) else None
    return COSTS["vocoder"] if config.vocoder == VocoderConfig() else None


def _is_preset(model: ModelConfig) -> bool:
    """Whether the model is one of the sizes as they are, without a value of its own."""
    return model == ModelConfig(model.size, **MODEL_SIZES[model.size])


def building_seconds(pack: Pack, began: float) -> float:
    """Seconds since `began` (of `time.time`) where the pack was built after it; 0 where it was there already."""
    built = (pack.folder / INDEX).stat().st_mtime
    return time.time() - began if built >= began else 0.0


def read_speed(pack: Pack) -> float:
    """Seconds of audio that one thread reads from a pack in a second, clips picked at random as training does."""
    count = min(READ_CLIPS, len(pack))
    chosen = np.random.default_rng(0).choice(len(pack), count, replace=False)
    begin = time.perf_counter()
    samples = sum(len(pack.wave(int(number))) for number in chosen)  # the checksum reads every byte
    return samples / pack.sample_rate / max(1e-6, time.perf_counter() - begin)
