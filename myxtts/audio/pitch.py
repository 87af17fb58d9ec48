"""How high a voice speaks, frame by frame.

In: waves float32 [B, samples], any device.
Out: pitch in Hz [B, frames], 0 where there is no voice; frames are those of the mel.
"""

import functools

import numpy as np
import tensorflow as tf

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
QUIET = 0.01  # a frame this much softer than the loudest of its clip has no pitch


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


def periodicity(waves: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """How well each frame repeats itself after each of the periods of `OCTAVES`: [B, frames, STATES], at most about 1.

    The autocorrelation of a windowed frame, divided by the window's own (Boersma 1993).
    """
    window, own, lags, transform = _window(audio)
    half, thin = len(window) // 2, _thinning(audio)
    waves = tf.pad(waves, [[0, 0], [half * thin, half * thin + -waves.shape[1] % thin]])
    thinned = tf.add_n([waves[:, first::thin] for first in range(thin)]) / thin
    frames = tf.signal.frame(thinned, len(window), audio.hop_samples // thin)
    frames = (frames - tf.reduce_mean(frames, -1, keepdims=True)) * window
    energy = tf.reduce_sum(frames**2, -1)
    loudest = tf.reduce_max(energy, axis=1, keepdims=True)
    power = tf.abs(tf.signal.rfft(frames, [transform])) ** 2
    correlation = tf.signal.irfft(tf.complex(power, tf.zeros_like(power)), [transform])
    below, share = np.floor(lags).astype(np.int32), (lags % 1).astype(np.float32)
    correlation = correlation[..., : int(lags.max()) + 2] / tf.maximum(correlation[..., :1], 1e-9)
    correlation = correlation / own[: int(lags.max()) + 2]
    values = tf.gather(correlation, below, axis=-1) * (1 - share) + tf.gather(correlation, below + 1, axis=-1) * share
    return tf.where((energy > QUIET**2 * loudest)[..., None], values, 0.0)


def track_pitch(waves: tf.Tensor, audio: AudioConfig) -> tf.Tensor:
    """Pitch [B, frames] in Hz, 0 where voiceless: the smoothest path through the most periodic candidates."""
    values = periodicity(waves, audio)
    scores = values - OCTAVE_COST * (OCTAVES[-1] - OCTAVES)
    voiceless = tf.fill(tf.shape(scores[..., :1]), VOICELESS)
    scores = tf.transpose(tf.concat([scores, voiceless], -1), [1, 0, 2])  # [frames, B, STATES + 1]
    moves = np.full((STATES + 1, STATES + 1), SWITCH_COST, np.float32)
    moves[:STATES, :STATES] = JUMP_COST * np.abs(OCTAVES[:, None] - OCTAVES)
    moves[STATES, STATES] = 0.0
    count = tf.shape(scores)[0]
    came_from = tf.TensorArray(tf.int32, size=count, element_shape=scores.shape[1:])

    def forward(frame, best, came_from):
        arrivals = best[:, :, None] - moves[None]
        came_from = came_from.write(frame, tf.argmax(arrivals, axis=1, output_type=tf.int32))
        return frame + 1, tf.reduce_max(arrivals, axis=1) + scores[frame], came_from

    _, best, came_from = tf.while_loop(lambda frame, *_: frame < count, forward, [1, scores[0], came_from])
    came_from = came_from.write(0, tf.zeros_like(scores[0], tf.int32)).stack()
    last = tf.argmax(best, axis=-1, output_type=tf.int32)
    path = tf.TensorArray(tf.int32, size=count, element_shape=last.shape)

    def back(frame, state, path):
        path = path.write(frame, state)
        return frame - 1, tf.gather(came_from[frame], state, batch_dims=1), path

    _, _, path = tf.while_loop(lambda frame, *_: frame >= 0, back, [count - 1, last, path])
    states = tf.transpose(path.stack())  # [B, frames]
    return tf.where(states < STATES, 2.0 ** _refine(values, tf.minimum(states, STATES - 1)), 0.0)


def _refine(values: tf.Tensor, states: tf.Tensor) -> tf.Tensor:
    """Log2 of the pitch between the grid's points, at the top of the parabola through three of them."""
    middle = tf.clip_by_value(states, 1, STATES - 2)
    low, mid, high = (tf.gather(values, middle + offset, batch_dims=2) for offset in (-1, 0, 1))
    bend = low - 2 * mid + high
    shift = tf.where(bend < -1e-6, 0.5 * (low - high) / tf.minimum(bend, -1e-6), 0.0)
    return tf.gather(OCTAVES, middle) + STEP * tf.clip_by_value(shift, -1.0, 1.0)
