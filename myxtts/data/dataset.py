"""Batches on the host: a few fixed bucket shapes, shuffled by seed and epoch, every clip once an epoch.

In: a Pack and a Tokenizer.
Out: a `tf.data.Dataset` of RawBatch on the CPU.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import tensorflow as tf

from myxtts.batch import RawBatch
from myxtts.config.config import XTTSConfig
from myxtts.data.buckets import BucketShape, Plan, fit_buckets, make_buckets, padding_share, plan_epoch
from myxtts.data.pack import Pack
from myxtts.errors import UsageError
from myxtts.text.tokenizer import Tokenizer


class HostDataset:
    """The clips of a pack in batches. `buckets` tells every shape that will ever come.

    Args:
        pack: where the audio lies.
        tokenizer: gives the ids.
        config: batch size, number of buckets, seed.
        clips: numbers of some of the pack's clips instead of all.
        shapes: bucket shapes to use where they fit, so that a validation set causes no new traces.
    """

    def __init__(
        self,
        pack: Pack,
        tokenizer: Tokenizer,
        config: XTTSConfig,
        clips: Sequence[int] | np.ndarray | None = None,
        shapes: list[BucketShape] | None = None,
    ):
        self.pack, self.config = pack, config
        self.clips = np.arange(len(pack)) if clips is None else np.asarray(clips, np.int64)
        if not len(self.clips):
            raise UsageError("there are no clips to make batches of")
        self._text = _TokenTable(pack, tokenizer)
        step = config.model.frames_per_step
        self.frames = -(-config.audio.mel_frames(pack.records["samples"][self.clips]) // step) * step
        lengths = self._text.lengths(self.clips)
        if shapes:
            self.buckets = fit_buckets(self.frames, lengths, shapes)
        else:
            self.buckets = make_buckets(self.frames, lengths, config.data.buckets, config.data.batch_size, step)

    @cached_property
    def batches_per_epoch(self) -> int:
        return len(self.epoch_plan(0).buckets)

    @property
    def padding(self) -> float:
        """The share of an epoch's mel frames that is padding, with static shapes."""
        return padding_share(self.buckets, self.frames)

    def epoch_plan(self, epoch: int, shuffle: bool = True) -> Plan:
        """The batches of an epoch; the same for the same seed and epoch. Clips are places in `clips`."""
        shuffler = np.random.default_rng([self.config.training.seed, epoch]) if shuffle else None
        return plan_epoch(self.buckets, shuffler, largest_first=epoch == 0)

    def assemble(self, bucket: int, clips: np.ndarray) -> RawBatch:
        """One padded batch; a short one is filled with its own first clips at weight 0."""
        size = self.config.data.batch_size
        real = clips[clips >= 0]
        rows = self.clips[np.resize(real, size)]
        tokens = [self._text.ids(clip) for clip in rows]
        if self.config.data.static_shapes:
            width, frames = self.buckets[bucket].shape.text_tokens, self.buckets[bucket].shape.mel_frames
        else:
            width, frames = max(map(len, tokens)), int(self.frames[real].max())
        waves = np.empty((size, frames * self.config.audio.hop_samples), np.int16)
        padded = np.zeros((size, width), np.int32)
        for row, clip in enumerate(rows):
            wave = self.pack.wave(clip)
            waves[row, : len(wave)] = wave
            waves[row, len(wave) :] = 0
            padded[row, : len(tokens[row])] = tokens[row]
        records = self.pack.records[rows]
        return RawBatch(
            waves,
            np.ascontiguousarray(records["samples"]),
            padded,
            np.array([len(ids) for ids in tokens], np.int32),
            np.ascontiguousarray(records["speaker"]),
            (np.arange(size) < len(real)).astype(np.float32),
        )

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        """RawBatches from the `start`-th on, assembled by `num_workers` threads, `pipeline_buffer_size` ahead.

        `start` is the whole state: a run that has used n batches goes on with `start=n`, in the middle of an epoch too.

        Args:
            start: how many batches to pass over, counted from the beginning of epoch 0.
            epochs: where to end; 0 means never.
            shuffle: False keeps each bucket in order of length.
        """

        def plan() -> Iterator[tuple[np.int32, np.ndarray]]:
            first, skip = divmod(start, self.batches_per_epoch)
            for epoch in range(first, epochs) if epochs else itertools.count(first):
                batches = self.epoch_plan(epoch, shuffle)
                yield from zip(batches.buckets[skip:], batches.clips[skip:], strict=True)
                skip = 0

        types = [tf.int16, tf.int32, tf.int32, tf.int32, tf.int32, tf.float32]
        size = self.config.data.batch_size
        shapes = [[size, None], [size], [size, None], [size], [size], [size]]

        def load_in_graph(bucket: tf.Tensor, clips: tf.Tensor) -> RawBatch:
            parts = tf.numpy_function(self.assemble, [bucket, clips], types)
            return RawBatch(*[tf.ensure_shape(part, shape) for part, shape in zip(parts, shapes, strict=True)])

        spec = (tf.TensorSpec([], tf.int32), tf.TensorSpec([size], tf.int32))
        workers = self.config.data.num_workers or os.cpu_count() or 1
        source = tf.data.Dataset.from_generator(plan, output_signature=spec)
        return source.map(load_in_graph, num_parallel_calls=workers, deterministic=True).prefetch(
            self.config.data.pipeline_buffer_size
        )


class _TokenTable:
    """A pack's units to a tokenizer's ids; a unit may become several ids where a stand-in has to speak it."""

    def __init__(self, pack: Pack, tokenizer: Tokenizer):
        self._pack = pack
        self._parts = tokenizer.encode_symbols(pack.symbols)
        counts = np.array([len(part) for part in self._parts], np.int32)
        self._counts = None if (counts == 1).all() else counts
        self._single = np.array([part[0] for part in self._parts], np.int32) if self._counts is None else None
        self._start = np.array([tokenizer.language_id(language) for language in pack.languages], np.int32)
        self._end = tokenizer.end_id

    def lengths(self, clips: np.ndarray) -> np.ndarray:
        """How many ids each clip has."""
        records = self._pack.records
        if self._counts is None:
            return records["units"][clips] + 2
        ends = np.cumsum(self._counts[self._pack.units])
        sums = np.concatenate([[0], ends])
        first = records["first_unit"][clips]
        return (sums[first + records["units"][clips]] - sums[first] + 2).astype(np.int32)

    def ids(self, clip: int) -> np.ndarray:
        """Ids of a clip, int32; the language's symbol stands first."""
        units = self._pack.unit_numbers(clip)
        body = self._single[units] if self._single is not None else np.concatenate([self._parts[u] for u in units])
        return np.concatenate([[self._start[self._pack.records[clip]["language"]]], body, [self._end]])
