"""Whose voice a clip is spoken in: slices of the speaker's other clips.

In: clips of a pack.
Out: for each clip a random slice, int16, padded.
"""

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.data.pack import Pack

SHORTEST_SECONDS = 1.0  # of a slice, where its clip is as long


class References:
    """Draws references from some clips of a pack.

    Another clip than the one that is spoken keeps its words out of the voice; it stands for itself only where the
    speaker has no other one. Slices have every length from a second on, as the recordings that people give.
    """

    def __init__(self, pack: Pack, clips: np.ndarray, config: XTTSConfig):
        self._pack, hop = pack, config.audio.hop_samples
        self.samples = config.model.reference_frames * hop if config.kind.speaks else 0
        self._shortest = min(self.samples, int(SHORTEST_SECONDS * config.audio.sample_rate))
        speakers = pack.records["speaker"][clips]
        order = np.argsort(speakers, kind="stable")
        names, first = np.unique(speakers[order], return_index=True)
        self._of_speaker = dict(zip(names.tolist(), np.split(clips[order], first[1:]), strict=True))

    def draw(
        self, clips: np.ndarray, chance: np.random.Generator, rows: range | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slices [rows, samples] for some rows of so many clips, or for all, and the lengths of all [B]."""
        rows = range(len(clips)) if rows is None else rows
        slices = np.zeros((len(rows), self.samples), np.int16)
        lengths = np.zeros(len(clips), np.int32)
        for row, clip in enumerate(clips.tolist() if self.samples else []):
            wave = self._pack.wave(self._choose(clip, chance))
            wanted = int(chance.integers(self._shortest, self.samples + 1))
            start = int(chance.integers(0, max(0, len(wave) - wanted) + 1))
            piece = wave[start : start + wanted]
            lengths[row] = len(piece)
            if row in rows:
                slices[row - rows.start, : len(piece)] = piece
        return slices, lengths

    def _choose(self, clip: int, chance: np.random.Generator) -> int:
        own = self._of_speaker[int(self._pack.records["speaker"][clip])]
        if len(own) == 1:
            return clip
        other = int(own[chance.integers(0, len(own) - 1)])
        return other if other != clip else int(own[-1])
