"""A few fixed batch shapes for clips of all lengths, chosen so that little of a batch is padding.

In: mel frames and text tokens of each clip.
Out: `Bucket` objects, shortest first, and each epoch's batches.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.config.config import XTTSConfig

TEXT_STEP, FRAME_STEP = 8, 16  # shapes are rounded up to these
BATCHES_WORTH = 8  # batches an epoch that one more shape must have
WORTH = 0.01  # share of all frames that one more shape must save


def round_up(value: int, step: int) -> int:
    return math.ceil(value / step) * step


@dataclass(frozen=True)
class BucketShape:
    """The fixed size of every batch of one bucket."""

    batch_size: int
    text_tokens: int
    mel_frames: int


@dataclass(frozen=True)
class Bucket:
    """Clips of similar length and the one shape their batches have."""

    shape: BucketShape
    clips: np.ndarray  # int64, by length


@dataclass(frozen=True)
class Plan:
    """The batches of one epoch in order."""

    buckets: np.ndarray  # int32 [batches]
    clips: np.ndarray  # int32 [batches, batch_size], -1 where a batch is not full


def clip_frames(samples: np.ndarray, config: XTTSConfig) -> np.ndarray:
    """Mel frames of clips with so many samples, in whole decoder steps."""
    step = config.model.frames_per_step
    return -(-config.audio.mel_frames(samples) // step) * step


def make_buckets(
    frames: np.ndarray, tokens: np.ndarray, count: int, batch_size: int, frames_per_step: int = 1
) -> list[Bucket]:
    """At most `count` buckets that together need the fewest padded frames, in whole decoder steps.

    Each shape is traced once, which takes as long as some steps: a small set gets few of them.
    """
    count = min(count, max(2, len(frames) // (BATCHES_WORTH * batch_size)))
    step = math.lcm(FRAME_STEP, frames_per_step)
    edges = _choose_edges(-(-np.asarray(frames) // step) * step, np.asarray(frames), count)
    order = np.lexsort((tokens, frames))
    cuts = np.searchsorted(np.asarray(frames)[order], edges, side="right")
    buckets: list[Bucket] = []
    waiting, widest = order[:0], 0
    for place, (edge, members) in enumerate(zip(edges, np.split(order, cuts[:-1]), strict=True)):
        members = np.concatenate([waiting, members])
        widest = max(widest, round_up(int(np.max(tokens[members])), TEXT_STEP))
        if len(members) < batch_size and place < len(edges) - 1:  # too few for a shape of their own
            waiting = members
            continue
        buckets.append(Bucket(BucketShape(batch_size, widest, int(edge)), members))
        waiting = order[:0]
    return buckets


def _choose_edges(rounded: np.ndarray, frames: np.ndarray, count: int) -> np.ndarray:
    """Upper edges of the best division into at most `count` parts, by dynamic programming over all edges."""
    edges, groups = np.unique(rounded, return_counts=True)
    clips = np.concatenate([[0], np.cumsum(groups)]).astype(float)
    size = len(edges)
    cost = np.concatenate([[0.0], np.full(size, np.inf)])  # frames of the first j groups in so many buckets
    choices: list[np.ndarray] = []
    totals: list[float] = []
    for _ in range(min(count, size)):
        # [i, j]: the first i groups as before, groups i to j in one new bucket
        table = cost[:-1, None] + (clips[None, 1:] - clips[:-1, None]) * edges[None, :]
        table = np.where(np.arange(size)[:, None] <= np.arange(size)[None, :], table, np.inf)
        choices.append(table.argmin(axis=0))
        cost = np.concatenate([[0.0], table.min(axis=0)])
        totals.append(cost[-1])
        cost[0] = np.inf
    parts = next((n for n in range(1, len(totals)) if totals[n - 1] - totals[n] < WORTH * frames.sum()), len(totals))
    chosen, end = [], size
    for choice in reversed(choices[:parts]):
        chosen.append(edges[end - 1])
        end = int(choice[end - 1])
    return np.array(chosen[::-1])


def fit_buckets(frames: np.ndarray, tokens: np.ndarray, shapes: Sequence[BucketShape]) -> list[Bucket]:
    """Each clip in the smallest of the given shapes that holds it; what fits in none gets one shape of its own."""
    frames, tokens = np.asarray(frames), np.asarray(tokens)
    shapes = sorted(shapes, key=lambda shape: shape.mel_frames)
    extra = BucketShape(
        shapes[0].batch_size,
        round_up(max(int(tokens.max()), *(shape.text_tokens for shape in shapes)), TEXT_STEP),
        round_up(max(int(frames.max()), shapes[-1].mel_frames), math.gcd(*(s.mel_frames for s in shapes))),
    )
    left = np.lexsort((tokens, frames))
    buckets = []
    for shape in (*shapes, extra):
        fits = (frames[left] <= shape.mel_frames) & (tokens[left] <= shape.text_tokens)
        if fits.any():
            buckets.append(Bucket(shape, left[fits]))
        left = left[~fits]
    return buckets


def plan_epoch(buckets: Sequence[Bucket], shuffler: np.random.Generator | None, largest_first: bool) -> Plan:
    """Every clip once. A bucket's last clips join the next larger bucket where that wastes less than filling up."""
    size = buckets[0].shape.batch_size
    numbers: list[np.ndarray] = []
    batches: list[np.ndarray] = []
    waiting = buckets[0].clips[:0]
    for number, bucket in enumerate(buckets):
        clips = np.concatenate([waiting, bucket.clips])
        clips = shuffler.permutation(clips) if shuffler else clips
        rest = len(clips) % size
        length = bucket.shape.mel_frames
        longer = buckets[number + 1].shape.mel_frames if number + 1 < len(buckets) else math.inf
        keep = len(clips) - (rest if rest * (longer - length) < (size - rest) * length else 0)
        clips, waiting = clips[:keep], clips[keep:]
        full = np.full(round_up(len(clips), size), -1, np.int32)
        full[: len(clips)] = clips
        batches.append(full.reshape(-1, size))
        numbers.append(np.full(len(batches[-1]), number, np.int32))
    bucket_of, clips_of = np.concatenate(numbers), np.concatenate(batches)
    order = shuffler.permutation(len(bucket_of)) if shuffler else np.arange(len(bucket_of))
    if largest_first:  # what does not fit in memory fails in the first seconds
        first = int(np.argmax(bucket_of[order] == bucket_of.max()))
        order = np.concatenate([order[first : first + 1], np.delete(order, first)])
    return Plan(bucket_of[order], clips_of[order])


def sample_plan(plan: Plan, count: int, shuffler: np.random.Generator) -> Plan:
    """So many batches of a plan, each bucket by its share; the first of each bucket stand first, the rest mixed."""
    by_bucket = np.argsort(plan.buckets, kind="stable")
    chosen = by_bucket[((np.arange(count) + 0.5) * len(by_bucket) / count).astype(int)]
    firsts = np.unique(plan.buckets[chosen], return_index=True)[1]
    order = np.concatenate([chosen[firsts], shuffler.permutation(np.delete(chosen, firsts))])
    return Plan(plan.buckets[order], plan.clips[order])


def padding_share(buckets: Sequence[Bucket], frames: np.ndarray) -> float:
    """The share of an epoch's mel frames that are no clip's own."""
    plan = plan_epoch(buckets, None, False)
    lengths = np.array([bucket.shape.mel_frames for bucket in buckets])
    room = int(lengths[plan.buckets].sum()) * plan.clips.shape[1]
    return 1.0 - float(np.asarray(frames)[plan.clips[plan.clips >= 0]].sum()) / room
