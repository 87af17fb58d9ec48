"""What a prepared dataset is: totals, lengths, and the warnings that matter before hours of training.

In: a Pack.
Out: plain facts; printing them is the command line's work.
"""

import dataclasses
from typing import Any

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.data.buckets import clip_frames, make_buckets, padding_share
from myxtts.data.pack import Pack

LITTLE_SPEECH_HOURS = 0.25
FEW_CLIPS = 5  # of one speaker among several
ODD_FACTOR = 2.5  # times faster or slower than the median of the language
BARS = 12
SHOWN = 3


def report(pack: Pack) -> dict[str, Any]:
    """The specification's JSON document, and the lengths besides."""
    return {
        "accepted": len(pack),
        "hours": round(pack.seconds / 3600, 4),
        "speakers": pack.count("speaker"),
        "languages": pack.count("language"),
        "rejected": [dataclasses.asdict(rejection) for rejection in pack.rejections],
        "warnings": find_warnings(pack),
        "cache": str(pack.folder),
        "sources": pack.sources,
        "lengths": length_histogram(pack),
    }


def length_histogram(pack: Pack) -> list[dict[str, float | int]]:
    """Clips by seconds of speech, in at most a dozen steps of whole or half seconds."""
    if not len(pack):
        return []
    seconds = pack.records["samples"] / pack.sample_rate
    step = max(0.5, float(np.ceil(seconds.max() / BARS * 2) / 2))
    counts, edges = np.histogram(seconds, np.arange(0.0, seconds.max() + step, step))
    return [
        {"from": float(low), "to": float(high), "clips": int(count)}
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]


def shapes_and_padding(pack: Pack, config: XTTSConfig) -> tuple[int, float]:
    """How many batch shapes training will use, and the share of padding in them."""
    step = config.model.frames_per_step
    frames = clip_frames(pack.records["samples"], config)
    buckets = make_buckets(frames, pack.records["units"] + 2, config.data.buckets, config.step_clips, step)
    return len(buckets), padding_share(buckets, frames)


def find_warnings(pack: Pack) -> list[str]:
    """What will make a poor voice although every clip is sound."""
    if not len(pack):
        return list(pack.warnings)
    warnings = []
    hours, speakers = pack.seconds / 3600, pack.count("speaker")
    if len(speakers) == 1:
        warnings.append("one speaker only: the model learns this voice and cannot clone another from a reference")
    elif few := [name for name, count in speakers.items() if count < FEW_CLIPS]:
        warnings.append(f"fewer than {FEW_CLIPS} clips of {some(few, len(few))}; such a voice is hardly learned")
    if hours < LITTLE_SPEECH_HOURS:
        warnings.append(f"{hours * 60:.1f} minutes of speech are little; below 15 minutes expect an unclear voice")
    return [*warnings, *_odd_pace(pack), *pack.warnings]


def _odd_pace(pack: Pack) -> list[str]:
    records = pack.records
    pace = records["samples"] / pack.sample_rate / np.maximum(1, records["units"])  # seconds a sound
    usual = np.zeros(len(pack))
    for language in range(len(pack.languages)):
        same = records["language"] == language
        usual[same] = np.median(pace[same]) if same.any() else 1.0
    ratio = pace / usual
    odd = np.flatnonzero((ratio > ODD_FACTOR) | (ratio < 1 / ODD_FACTOR))
    if not len(odd):
        return []
    worst = odd[np.argsort(-np.abs(np.log(ratio[odd])), kind="stable")][:SHOWN]
    examples = [f"{pack[int(i)].id} ({pace[i]:.2f} s a sound, usual {usual[i]:.2f})" for i in worst]
    return [f"{len(odd)} clips too long or short for their text: {some(examples, len(odd))}; is it the right text?"]


def some(examples: list[str], total: int) -> str:
    """The first few of `total` examples and how many more there are."""
    return ", ".join(examples[:SHOWN]) + (f" and {total - SHOWN} more" if total > SHOWN else "")
