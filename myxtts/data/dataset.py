"""Batches on the host: a few fixed bucket shapes, shuffled by seed and epoch, every clip once an epoch.

In: a Pack and a Tokenizer.
Out: a `tf.data.Dataset` of RawBatch on the CPU.
"""

import copy
import functools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from myxtts.batch import HEAD, SLICE_MARGIN, SPANS, RawBatch
from myxtts.config.config import XTTSConfig
from myxtts.data.buckets import (
    BucketShape,
    Plan,
    clip_frames,
    fit_buckets,
    make_buckets,
    padding_share,
    plan_epoch,
    sample_plan,
)
from myxtts.data.pack import Pack
from myxtts.data.references import References
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
        # A batch is a few copies out of the page cache under Python's lock: one thread serves many times what a card
        # can train on, and a second one would mostly wait for the first (benchmarks/data.py).
        self._workers, self._ahead = config.data.num_workers or 1, config.data.pipeline_buffer_size
        self._sampled: Plan | None = None
        self._share = range(config.step_clips)  # rows of each batch that this process trains on
        self.clips = np.arange(len(pack)) if clips is None else np.asarray(clips, np.int64)
        if not len(self.clips):
            raise UsageError("there are no clips to make batches of")
        self._text = _TokenTable(pack, tokenizer)
        self._references = References(pack, self.clips, config)
        step = config.model.frames_per_step
        self.frames = clip_frames(pack.records["samples"][self.clips], config)
        lengths = self._text.lengths(self.clips)
        if shapes:
            self.buckets = fit_buckets(self.frames, lengths, shapes)
        else:
            self.buckets = make_buckets(self.frames, lengths, config.data.buckets, config.step_clips, step)

    @functools.cached_property
    def _whole_epoch(self) -> int:
        return len(self.epoch_plan(0).buckets)

    @property
    def batches_per_epoch(self) -> int:
        return len(self._sampled.buckets) if self._sampled else self._whole_epoch

    @property
    def padding(self) -> float:
        """The share of an epoch's mel frames that is padding, with static shapes."""
        return padding_share(self.buckets, self.frames)

    def epoch_plan(self, epoch: int, shuffle: bool = True) -> Plan:
        """The batches of an epoch; the same for the same seed and epoch. Clips are places in `clips`."""
        if self._sampled:
            return self._sampled
        shuffler = np.random.default_rng([self.config.training.seed, epoch]) if shuffle else None
        return plan_epoch(self.buckets, shuffler, largest_first=epoch == 0)

    def names(self, number: int, shuffle: bool = True) -> list[str]:
        """The ids of the clips of the `number`-th batch, counted from the beginning of epoch 0."""
        epoch, place = divmod(number, self.batches_per_epoch)
        clips = self.epoch_plan(epoch, shuffle).clips[place]
        return [self.pack[int(self.clips[clip])].id for clip in clips if clip >= 0]

    def tokens(self, place: int) -> np.ndarray:
        """The token ids of one clip, int32 [T]; `place` counts in `clips`."""
        clip = int(self.clips[place])
        row = np.zeros(int(self._text.lengths(np.array([clip]))[0]), np.int32)
        self._text.write(clip, row)
        return row

    def assemble(self, bucket: int, clips: np.ndarray, number: int) -> RawBatch:
        """One padded batch; a short one is filled with its own first clips at weight 0.

        `number`, the place of the batch in the run, decides which references go with it, or where slices are cut.
        """
        size, own = self.config.step_clips, self._share
        real = clips[clips >= 0]
        rows = self.clips[np.resize(real, size)]
        chance = np.random.default_rng([self.config.training.seed, number])
        heads = np.zeros((size, HEAD), np.int64)
        heads[:, 3] = np.arange(size) < len(real)
        spans = np.zeros((len(own), SPANS), np.int64)
        spans[:, 2:4] = number, self.config.training.seed
        spans[:, 4] = own
        if self.config.kind.speaks:
            audio, labels = self._pair_with_references(rows, self.buckets[bucket].shape, real, chance, heads)
            spans[:, :2] = heads[own.start : own.stop, 1:3]
        else:
            audio, labels = self._cut_slices(rows, chance, heads)
        labels[:, :HEAD] = heads[own.start : own.stop]
        return RawBatch(audio, spans, labels, heads)

    def _pair_with_references(
        self, rows: np.ndarray, shape: BucketShape, real: np.ndarray, chance: np.random.Generator, heads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Audio and labels of our whole clips, each followed by a reference of the same speaker; fills all heads."""
        hop, lengths = self.config.audio.hop_samples, self._text.lengths(rows)
        width, frames = shape.text_tokens, shape.mel_frames
        if not self.config.data.static_shapes:
            width, frames = int(lengths.max()), int(self.frames[real].max())
        own = self._share
        audio = np.empty((len(own), frames * hop + self._references.samples), np.int16)
        labels = np.zeros((len(own), HEAD + width + frames), np.int64)
        references, spoken = self._references.draw(rows, chance, own)
        audio[:, frames * hop :] = references
        for row, clip in enumerate(rows[own.start : own.stop].tolist()):
            wave, pitch = self.pack.wave(clip), self.pack.pitch(clip)[:frames]
            audio[row, : len(wave)] = wave
            audio[row, len(wave) : frames * hop] = 0
            self._text.write(clip, labels[row, HEAD:])
            labels[row, HEAD + width : HEAD + width + len(pitch)] = pitch
        heads[:, 0] = lengths
        heads[:, 1] = np.minimum(clip_frames(self.pack.records["samples"][rows], self.config), frames)
        heads[:, 2] = np.minimum(self.config.audio.mel_frames(spoken), self.config.model.reference_frames)
        return audio, labels

    def _cut_slices(
        self, rows: np.ndarray, chance: np.random.Generator, heads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Audio and labels of a random slice of each of our clips, between silence; fills all heads."""
        hop, frames, own = self.config.audio.hop_samples, self.config.vocoder.slice_frames, self._share
        audio = np.zeros((len(own), (frames - 1 + 2 * SLICE_MARGIN) * hop), np.int16)
        labels = np.zeros((len(own), HEAD + frames), np.int64)
        for place, clip in enumerate(rows.tolist()):
            wave, pitch = self.pack.wave(clip), self.pack.pitch(clip)
            first = int(chance.integers(0, max(0, len(pitch) - frames) + 1))
            heads[place, 1] = min(frames, len(pitch) - first)
            if place not in own:
                continue
            row = place - own.start
            start = (first - SLICE_MARGIN) * hop
            piece = wave[max(0, start) : start + audio.shape[1]]
            audio[row, max(0, -start) : max(0, -start) + len(piece)] = piece
            heard = pitch[first : first + frames]
            labels[row, HEAD : HEAD + len(heard)] = heard
        return audio, labels

    def batches(self, start: int = 0, epochs: int = 0, shuffle: bool = True) -> tf.data.Dataset:
        """RawBatches from the `start`-th on, assembled by `num_workers` threads, `pipeline_buffer_size` ahead.

        `start` is the whole state: a run that has used n batches goes on with `start=n`, in the middle of an epoch too.

        Args:
            start: how many batches to pass over, counted from the beginning of epoch 0.
            epochs: where to end; 0 means never.
            shuffle: False keeps each bucket in order of length.
        """

        per_epoch = self.batches_per_epoch
        plan = functools.lru_cache(2)(lambda epoch: self.epoch_plan(epoch, shuffle))

        def load(number: int) -> RawBatch:
            epoch, place = divmod(int(number), per_epoch)
            return self.assemble(plan(epoch).buckets[place], plan(epoch).clips[place], int(number))

        size, types = len(self._share), [tf.int16, tf.int64, tf.int64, tf.int64]
        shapes = [[size, None], [size, SPANS], [size, None], [self.config.step_clips, HEAD]]

        def load_in_graph(number: tf.Tensor) -> RawBatch:
            parts = tf.numpy_function(load, [number], types)
            return RawBatch(*[tf.ensure_shape(part, shape) for part, shape in zip(parts, shapes, strict=True)])

        numbers = tf.data.Dataset.range(start, epochs * per_epoch if epochs else tf.int64.max)
        if not self._ahead:
            return numbers.map(load_in_graph).with_options(one_by_one())
        batches = numbers.map(load_in_graph, num_parallel_calls=self._workers, deterministic=True)
        return batches.prefetch(self._ahead).with_options(in_threads(self._workers))

    def loading(self, workers: int, ahead: int) -> "HostDataset":
        """The same batches loaded by so many threads, so far ahead; 0 ahead: each one when it is asked for."""
        other = copy.copy(self)
        other._workers, other._ahead = workers, ahead
        return other

    def share(self, rank: int, size: int) -> "HostDataset":
        """The same batches, of which this is one of so many processes that train on an equal share each."""
        other, rows = copy.copy(self), self.config.step_clips // size
        other._share = range(rank * rows, (rank + 1) * rows)
        return other

    def sample(self, count: int) -> "HostDataset":
        """A few batches again and again, whose shapes are as frequent as in an epoch; first one of each shape."""
        other = copy.copy(self)
        other._sampled = sample_plan(self.epoch_plan(0), count, np.random.default_rng(self.config.training.seed))
        return other


def in_threads(count: int) -> tf.data.Options:
    """Gives a dataset threads of its own; otherwise it shares as many as there are cores with everything else."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = count
    return options


def one_by_one() -> tf.data.Options:
    """Keeps tf.data from reading ahead by itself."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


class _TokenTable:
    """A pack's units to a tokenizer's ids; a unit may become several ids where a stand-in has to speak it."""

    def __init__(self, pack: Pack, tokenizer: Tokenizer):
        self._pack = pack
        self._parts = tokenizer.encode_symbols(pack.symbols)
        self._first = [tokenizer.language_id(language) for language in pack.languages]
        self._last = tokenizer.end_id
        self._single: np.ndarray | None = None
        counts = np.array([len(part) for part in self._parts], np.int32)
        if (counts == 1).all():
            self._single = np.concatenate(self._parts)
            self._lengths = pack.records["units"] + np.int32(2)
        else:
            sums = np.concatenate([[0], np.cumsum(counts[pack.units])])
            first = pack.records["first_unit"]
            self._lengths = (sums[first + pack.records["units"]] - sums[first] + 2).astype(np.int32)

    def lengths(self, clips: np.ndarray) -> np.ndarray:
        """How many ids each clip has, int32."""
        return self._lengths[clips]

    def write(self, clip: int, row: np.ndarray) -> None:
        """Puts the ids of a clip into the beginning of a row; the language's symbol stands first."""
        units = self._pack.unit_numbers(clip)
        ids = self._single[units] if self._single is not None else np.concatenate([self._parts[u] for u in units])
        row[0] = self._first[self._pack.records[clip]["language"]]
        row[1 : 1 + len(ids)] = ids
        row[1 + len(ids)] = self._last
