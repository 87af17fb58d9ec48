"""How high a voice speaks, frame by frame: found once, when a dataset is prepared, and kept as one byte a frame.

The autocorrelation of Boersma (1993), "Accurate short-term analysis of the fundamental frequency", and the smoothest
path through its peaks.

In: waves float32 [samples].
Out: pitch in Hz [frames], 0 where there is no voice; frames are those of the mel.
"""

import functools
from collections.abc import Sequence

import numpy as np

from myxtts.config.config import AudioConfig

LOWEST, HIGHEST = 55.0, 550.0  # Hz
STATES = 100  # pitches the search chooses from, evenly spaced in octaves
OCTAVES = np.linspace(np.log2(LOWEST), np.log2(HIGHEST), STATES).astype(np.float32)  # log2 of them
STEP = float(OCTAVES[1] - OCTAVES[0])
WINDOW_SECONDS = 0.05  # almost three periods of the lowest pitch
VOICELESS = 0.45  # periodicity below which a frame has no pitch
OCTAVE_COST = 0.03  # of being an octave lower: a period fits twice into two periods just as well
JUMP_COST = 0.9  # of moving an octave between two frames
SWITCH_COST = 0.18  # of beginning or ending to voice
BLOCK = 32  # frames that are transformed at once: what they need stays in the processor's cache
QUIET = 0.01  # a frame this much softer than the loudest of its clip has no pitch
# What a byte stands for: 0 Hz (voiceless), then steps of 16 cents, so that rounding costs less than half a percent.
BYTE_PITCHES = np.concatenate([[0.0], np.geomspace(LOWEST, HIGHEST, 255)]).astype(np.float32)


def encode_pitch(pitch: np.ndarray) -> np.ndarray:
    """Pitch in Hz as bytes, uint8, that `BYTE_PITCHES` turns back."""
    place = np.log2(np.maximum(pitch, LOWEST) / LOWEST) / np.log2(HIGHEST / LOWEST)
    return np.where(pitch > 0, 1 + np.round(254 * np.minimum(place, 1.0)), 0).astype(np.uint8)


def _thinning(audio: AudioConfig) -> int:
    """How many samples are averaged into one: what lies above some kilohertz says nothing about the pitch."""
    return 2 if audio.sample_rate >= 16_000 and audio.hop_samples % 2 == 0 else 1


@functools.cache
def _window(audio: AudioConfig) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """A Hann window, its own normalised autocorrelation, the periods to look at, and the size of the transform.

    All in thinned samples. The transform is long enough that no period of interest wraps around.
    """
    rate = audio.sample_rate / _thinning(audio)
    size = int(WINDOW_SECONDS * rate) // 2 * 2
    window = np.hanning(size + 1)[:-1]
    lags = rate / 2.0**OCTAVES
    transform = 1 << (size + int(lags.max()) + 1).bit_length()
    own = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * size)) ** 2)
    return window.astype(np.float32), (own / own[0]).astype(np.float32), lags, transform


def periodicity(wave: np.ndarray, audio: AudioConfig) -> np.ndarray:
    """How well each frame repeats itself after each of the periods of `OCTAVES`: [frames, STATES], at most about 1.

    The autocorrelation of a windowed frame, divided by the window's own.
    """
    window, own, lags, transform = _window(audio)
    half, thin = len(window) // 2, _thinning(audio)
    count = audio.mel_frames(len(wave))
    wave = np.pad(wave, (half * thin, half * thin + -len(wave) % thin))
    thinned = wave.reshape(-1, thin).mean(1, dtype=np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(thinned, len(window))[:: audio.hop_samples // thin][:count]
    energy, kept = np.empty(len(frames), np.float32), int(lags.max()) + 2
    correlation = np.empty((len(frames), kept), np.float32)
    padded = np.zeros((BLOCK, transform), np.float32)  # by hand: NumPy would pad in float64
    for first in range(0, len(frames), BLOCK):
        block = frames[first : first + BLOCK]
        here = padded[: len(block)]
        here[:, : len(window)] = (block - block.mean(1, keepdims=True)) * window
        energy[first : first + BLOCK] = np.einsum("fs,fs->f", here, here)
        spectrum = np.fft.rfft(here)
        power = spectrum.real**2 + spectrum.imag**2
        correlation[first : first + BLOCK] = np.fft.irfft(power.astype(np.complex64), transform)[:, :kept]
    correlation /= np.maximum(correlation[:, :1], 1e-9) * own[: correlation.shape[1]]
    below, share = np.floor(lags).astype(np.int32), (lags % 1).astype(np.float32)
    values = correlation[:, below] * (1 - share) + correlation[:, below + 1] * share
    return np.where((energy > QUIET**2 * energy.max(initial=0.0))[:, None], values, np.float32(0.0))


def track_pitch(waves: Sequence[np.ndarray], audio: AudioConfig) -> list[np.ndarray]:
    """Pitch [frames] in Hz of each wave, 0 where voiceless: the smoothest path through the most periodic candidates.

    Waves are searched side by side, which saves time and changes nothing: no wave knows of the others.
    """
    values = [periodicity(wave, audio) for wave in waves]
    lengths = np.array([len(one) for one in values], np.int64)
    scores = np.zeros((lengths.max(initial=0), len(waves), STATES), np.float32)
    for row, one in enumerate(values):
        scores[: len(one), row] = one - OCTAVE_COST * (OCTAVES[-1] - OCTAVES)
    return [
        np.where(path >= 0, 2.0 ** _refine(one, np.maximum(path, 0)), 0.0).astype(np.float32)
        for one, path in zip(values, _search(scores, lengths), strict=True)
    ]


def _search(scores: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """For each row of scores [frames, B, STATES] the best path [length] of states, -1 where voiceless (Viterbi).

    The cost of a move grows with its distance alone, so the best arrival at every state is found by two running
    maxima, one from each side, in place of a table of all moves.
    """
    frames, rows, _ = scores.shape
    rise = (JUMP_COST * STEP * np.arange(STATES)).astype(np.float32)
    voiced, voiceless = np.zeros_like(scores), np.zeros((frames, rows), np.float32)  # the best sums that end there
    for frame in range(frames):
        if frame == 0:
            voiced[0], voiceless[0] = scores[0], VOICELESS
            continue
        best, silent = voiced[frame - 1], voiceless[frame - 1]
        from_below = np.maximum.accumulate(best + rise, 1) - rise
        from_above = np.maximum.accumulate((best - rise)[:, ::-1], 1)[:, ::-1] + rise
        arrival = np.maximum(np.maximum(from_below, from_above), silent[:, None] - SWITCH_COST)
        voiced[frame] = arrival + scores[frame]
        voiceless[frame] = np.maximum(silent, best.max(1) - SWITCH_COST) + VOICELESS
    paths = np.full((frames, rows), -1, np.int32)
    row = np.arange(rows)
    state = np.full(rows, -1, np.int32)
    place = np.arange(STATES)
    for frame in range(frames - 1, -1, -1):
        # A row begins at its own last frame, from wherever its sum is best; then it goes where its best sum came from.
        cost = np.where(state[:, None] < 0, SWITCH_COST, JUMP_COST * STEP * np.abs(place - state[:, None]))
        ends: np.ndarray = np.equal(frame, lengths - 1)
        cost = np.where(ends[:, None], 0.0, cost).astype(np.float32)
        reached = voiced[frame] - cost
        best = reached.argmax(1)
        to_voiceless = np.where(ends | (state < 0), 0.0, SWITCH_COST).astype(np.float32)
        silent = voiceless[frame] - to_voiceless > reached[row, best]
        state = np.where(frame < lengths, np.where(silent, -1, best), state)
        paths[frame] = state
    return [paths[:length, number] for number, length in enumerate(lengths)]


def _refine(values: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Log2 of the pitch between the grid's points, at the top of the parabola through three of them."""
    middle = np.clip(states, 1, STATES - 2)
    low, mid, high = (np.take_along_axis(values, middle[:, None] + offset, 1)[:, 0] for offset in (-1, 0, 1))
    bend = low - 2 * mid + high
    shift = np.where(bend < -1e-6, 0.5 * (low - high) / np.minimum(bend, -1e-6), 0.0)
    return OCTAVES[middle] + STEP * np.clip(shift, -1.0, 1.0)
