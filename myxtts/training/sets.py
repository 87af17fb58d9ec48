"""What a run trains on, what it is judged by, and what it says now and then.

In: packs and a tokenizer.
Out: a training set, perhaps a validation set, each speaker's voice, a few sentences.
"""

from dataclasses import replace

import numpy as np

from myxtts.audio.mel import reference_mel
from myxtts.config.config import XTTSConfig
from myxtts.data.dataset import HostDataset
from myxtts.data.packs import Packs
from myxtts.errors import UsageError
from myxtts.text.tokenizer import Tokenizer

SAMPLES = 2  # sentences that are spoken while a run goes on
EVALUATED = 16  # sentences that are spoken to be scored


def make_sets(packs: Packs, tokenizer: Tokenizer, config: XTTSConfig) -> tuple[HostDataset, HostDataset | None]:
    """The training set and, unless nothing is held out, the validation set in the same batch shapes."""
    if config.data.val_data:
        train, held_out = np.arange(len(packs.train)), np.arange(len(packs.held_out))
    else:
        train, held_out = split_clips(packs.train.records["samples"], config.data.val_clips)
    train_set = HostDataset(packs.train, tokenizer, config, train)
    if not len(held_out):
        return train_set, None
    alone = replace(config, data=replace(config.data, data_gpu=None, model_gpu=None, processes=1))  # one validates
    shapes = [replace(bucket.shape, batch_size=alone.step_clips) for bucket in train_set.buckets]
    return train_set, HostDataset(packs.held_out, tokenizer, alone, held_out, shapes)


def go_without_validation(config: XTTSConfig, clips: int) -> list[str]:
    """What to say where none of so many clips is held out.

    Raises:
        UsageError: something was asked for that goes by held-out clips.
    """
    if asked := [name for name in ("eval_every", "early_stop") if getattr(config.training, name)]:
        raise UsageError(
            f"`training.{asked[0]}` goes by held-out clips, and of {clips} none is held out; give a folder as "
            "`data.val_data`, or leave it out"
        )
    if not config.data.val_clips:
        return []
    return [f"{clips} clips are too few to hold some out: nothing is validated; a folder as `data.val_data` would be"]


def split_clips(samples: np.ndarray, held_out: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the clips to train on and to hold out: of every length, at most a tenth of all.

    Neither the shortest nor the longest is held out.
    """
    count = min(held_out, len(samples) // 10)
    by_length = np.argsort(samples, kind="stable")
    chosen = np.unique(by_length[np.linspace(0, len(samples) - 1, count + 2)[1:-1].astype(int)])
    return np.setdiff1d(np.arange(len(samples)), chosen), chosen


def collect_voices(dataset: HostDataset) -> dict[str, np.ndarray]:
    """A few seconds of each speaker as mel, kept in the checkpoint so that it can speak without a reference."""
    pack, config = dataset.pack, dataset.config
    wanted = config.model.reference_frames * config.audio.hop_samples
    records = pack.records[dataset.clips]
    by_fit = np.argsort(np.abs(records["samples"].astype(np.int64) - wanted), kind="stable")
    speakers, first = np.unique(records["speaker"][by_fit], return_index=True)
    voices: dict[str, np.ndarray] = {}
    for speaker, clip in zip(speakers, dataset.clips[by_fit[first]], strict=True):
        wave = pack.wave(clip)[:wanted].astype(np.float32) / 32768.0
        voices[pack.speakers[speaker]] = reference_mel(wave, config.audio, config.model.frames_per_step)
    return voices


def sample_places(dataset: HostDataset, count: int) -> list[int]:
    """A few clips of middling length to be spoken, as places in the dataset."""
    half = len(dataset.frames) // 2
    first = min(half, max(0, len(dataset.frames) - count))
    return np.argsort(dataset.frames, kind="stable")[first:][:count].tolist()
