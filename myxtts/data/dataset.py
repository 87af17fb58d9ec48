"""Batches on the host: a few fixed bucket shapes, shuffled by seed and epoch, every clip once an epoch.

In: a Pack and its Tokenizer.
Out: a `tf.data.Dataset` of RawBatch on the CPU.
"""

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import mel_frames
from myxtts.batch import BucketShape, RawBatch
from myxtts.config.config import XTTSConfig
from myxtts.data.cache import Pack, PackedClip
from myxtts.errors import UsageError
from myxtts.text.tokenizer import Tokenizer

TEXT_STEP, FRAME_STEP = 8, 16  # bucket edges are rounded up to these


def _round_up(value: int, step: int) -> int:
    return math.ceil(value / step) * step


@dataclass(frozen=True)
class Bucket:
    """Clips of similar length and the one shape their batches have."""

    shape: BucketShape
    clips: tuple[int, ...]


def make_buckets(
    frames: list[int], tokens: list[int], count: int, batch_size: int, frames_per_step: int = 1
) -> list[Bucket]:
    """At most `count` buckets of about equal numbers of clips, shortest first, in whole decoder steps."""
    step = math.lcm(FRAME_STEP, frames_per_step)
    order = sorted(range(len(frames)), key=lambda i: (frames[i], tokens[i], i))
    edges = sorted({_round_up(frames[part[-1]], step) for part in np.array_split(order, count) if len(part)})
    buckets = []
    for low, high in zip([0, *edges], edges, strict=False):
        members = tuple(i for i in order if low < frames[i] <= high)
        longest_text = max(tokens[i] for i in members)
        buckets.append(Bucket(BucketShape(batch_size, _round_up(longest_text, TEXT_STEP), high), members))
    return buckets


def fit_buckets(frames: list[int], tokens: list[int], shapes: list[BucketShape]) -> list[Bucket]:
    """Each clip in the smallest of the given shapes that holds it; what fits in none gets one shape of its own."""
    members: dict[BucketShape, list[int]] = {shape: [] for shape in shapes}
    extra = BucketShape(
        shapes[0].batch_size,
        _round_up(max(*tokens, *(shape.text_tokens for shape in shapes)), TEXT_STEP),
        _round_up(max(*frames, *(shape.mel_frames for shape in shapes)), shapes[0].mel_frames),
    )
    for i in sorted(range(len(frames)), key=lambda i: (frames[i], tokens[i], i)):
        fitting = (s for s in shapes if frames[i] <= s.mel_frames and tokens[i] <= s.text_tokens)
        members.setdefault(next(fitting, extra), []).append(i)
    return [Bucket(shape, tuple(clips)) for shape, clips in members.items() if clips]


class HostDataset:
    """The clips of a pack in batches. `buckets` tells every shape that will ever come.

    Args:
        pack: where the audio lies.
        tokenizer: gives the ids.
        config: batch size, number of buckets, seed.
        clips: some of the pack's clips instead of all.
        shapes: bucket shapes to use where they fit, so that a validation set causes no new traces.
    """

    def __init__(
        self,
        pack: Pack,
        tokenizer: Tokenizer,
        config: XTTSConfig,
        clips: list[PackedClip] | None = None,
        shapes: list[BucketShape] | None = None,
    ):
        self.pack, self.config = pack, config
        self.clips = pack.clips if clips is None else clips
        if not self.clips:
            raise UsageError("there are no clips to make batches of")
        self.tokens = [tokenizer.encode_units(clip.units, clip.language) for clip in self.clips]
        step = config.model.frames_per_step
        self._frames = [_round_up(mel_frames(clip.samples, config.audio), step) for clip in self.clips]
        lengths = [len(tokens) for tokens in self.tokens]
        if shapes:
            self.buckets = fit_buckets(self._frames, lengths, shapes)
        else:
            self.buckets = make_buckets(self._frames, lengths, config.data.buckets, config.data.batch_size, step)
        speakers = sorted({clip.speaker for clip in pack.clips})
        self._speaker_ids = [speakers.index(clip.speaker) for clip in self.clips]

    @property
    def batches_per_epoch(self) -> int:
        size = self.config.data.batch_size
        return sum(math.ceil(len(bucket.clips) / size) for bucket in self.buckets)

    def epoch_plan(self, epoch: int, shuffle: bool = True) -> list[tuple[int, list[int]]]:
        """The batches of an epoch as (bucket, clips); the same for the same seed and epoch."""
        shuffler = np.random.default_rng([self.config.training.seed, epoch])
        plan = []
        for number, bucket in enumerate(self.buckets):
            clips = list(shuffler.permutation(bucket.clips)) if shuffle else list(bucket.clips)
            size = bucket.shape.batch_size
            plan += [(number, [int(i) for i in clips[at : at + size]]) for at in range(0, len(clips), size)]
        if shuffle:
            plan = [plan[i] for i in shuffler.permutation(len(plan))]
        if epoch == 0:  # the largest first: what does not fit in memory fails in the first seconds
            largest = next(i for i, (bucket, _) in enumerate(plan) if bucket == len(self.buckets) - 1)
            plan.insert(0, plan.pop(largest))
        return plan

    def assemble(self, bucket: int, clips: list[int]) -> RawBatch:
        """One padded batch; a short one is filled with its own first clips at weight 0."""
        size = self.config.data.batch_size
        rows = [clips[i % len(clips)] for i in range(size)]
        if self.config.data.static_shapes:
            width, frames = self.buckets[bucket].shape.text_tokens, self.buckets[bucket].shape.mel_frames
        else:
            width, frames = max(len(self.tokens[i]) for i in rows), max(self._frames[i] for i in rows)
        waves = np.zeros((size, frames * self.config.audio.hop_samples), np.int16)
        tokens = np.zeros((size, width), np.int32)
        for row, clip in enumerate(rows):
            wave = self.pack.wave(self.clips[clip])
            waves[row, : len(wave)] = wave
            tokens[row, : len(self.tokens[clip])] = self.tokens[clip]
        return RawBatch(
            waves,
            np.array([self.clips[i].samples for i in rows], np.int32),
            tokens,
            np.array([len(self.tokens[i]) for i in rows], np.int32),
            np.array([self._speaker_ids[i] for i in rows], np.int32),
            (np.arange(size) < len(clips)).astype(np.float32),
        )

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        """RawBatches from the `start`-th on, assembled by `num_workers` threads, `pipeline_buffer_size` ahead.

        Args:
            start: how many batches to pass over, counted from the beginning of epoch 0.
            epochs: where to end; 0 means never.
            shuffle: False keeps each bucket in order of length.
        """

        def plan() -> Iterator[tuple[int, np.ndarray]]:
            size = self.config.data.batch_size
            first, skip = divmod(start, self.batches_per_epoch)
            for epoch in range(first, epochs) if epochs else itertools.count(first):
                for bucket, clips in self.epoch_plan(epoch, shuffle)[skip:]:
                    yield bucket, np.array(clips + [-1] * (size - len(clips)), np.int32)
                skip = 0

        def load(bucket: np.ndarray, clips: np.ndarray) -> RawBatch:
            return self.assemble(int(bucket), [int(i) for i in clips if i >= 0])

        types = [tf.int16, tf.int32, tf.int32, tf.int32, tf.int32, tf.float32]
        size = self.config.data.batch_size
        shapes = [[size, None], [size], [size, None], [size], [size], [size]]

        def load_in_graph(bucket: tf.Tensor, clips: tf.Tensor) -> RawBatch:
            parts = tf.numpy_function(load, [bucket, clips], types)
            return RawBatch(*[tf.ensure_shape(part, shape) for part, shape in zip(parts, shapes, strict=True)])

        spec = (tf.TensorSpec([], tf.int32), tf.TensorSpec([size], tf.int32))
        workers = self.config.data.num_workers or os.cpu_count() or 1
        source = tf.data.Dataset.from_generator(plan, output_signature=spec)
        return source.map(load_in_graph, num_parallel_calls=workers, deterministic=True).prefetch(
            self.config.data.pipeline_buffer_size
        )
