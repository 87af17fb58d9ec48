"""Which frame belongs to which token: monotonic alignment search, and averages that tell it where to begin.

Kim et al. 2020, "Glow-TTS: A Generative Flow for Text-to-Speech via Monotonic Alignment Search".

In: scores [B, T, M] (log-likelihood of frame m under token t) and both lengths.
Out: the best monotonic path, float32 [B, T, M] of ones and zeros.
"""

import math

import numpy as np
import tensorflow as tf
from keras import layers

from myxtts.models.layers import sizes

IMPOSSIBLE = -1e9
MOST_FRAMES = 1 << 16  # decoder steps of a clip: a quarter of an hour and more


def monotonic_search(scores: tf.Tensor, text_lengths: tf.Tensor, frame_lengths: tf.Tensor) -> tf.Tensor:
    """The best monotonic path; where a trace leaves lengths open, they are padded to one of few that are compiled."""
    if scores.shape.is_fully_defined():
        return _search(scores, text_lengths, frame_lengths)
    _, tokens, frames = sizes(scores)
    more = [[0, _power_of_two(size) - size] for size in (tokens, frames)]
    padded = tf.ensure_shape(tf.pad(scores, [[0, 0], *more]), [scores.shape[0], None, None])
    return _search(padded, text_lengths, frame_lengths)[:, :tokens, :frames]


def _power_of_two(size: int | tf.Tensor) -> tf.Tensor:
    """The next one, at least 32."""
    digits = tf.math.ceil(tf.math.log(tf.cast(size, tf.float64)) / math.log(2.0) - 1e-9)
    return tf.cast(2.0 ** tf.maximum(digits, 5.0), tf.int32)


@tf.function(autograph=False, jit_compile=True)
def _search(scores: tf.Tensor, text_lengths: tf.Tensor, frame_lengths: tf.Tensor) -> tf.Tensor:
    """The path of highest sum that starts at the first token, ends at the last and never skips or goes back.

    The search of Glow-TTS (Kim et al. 2020), turned round: one step of the loop is a token with all its frames, not a
    frame with all its tokens. With S the sums of a token's scores up to each frame, the best sum of a path that ends
    at frame m inside token t is S[t, m] + max over its first frame j <= m of (best[t - 1, j - 1] - S[t, j - 1]), a
    running maximum. Texts have far fewer tokens than frames, and both loops have one counter from 0 to a bound that is
    known when the shape is: XLA then never asks the host whether to go on.

    A clip with more tokens than frames has no such path; its result is of no use.
    """
    rows, tokens, frames = sizes(scores)
    scores -= scores[:, :1]  # what all tokens share at a frame decides nothing, and would cost digits of the sums
    totals = tf.transpose(tf.cumsum(scores, axis=2), [1, 0, 2])  # [T, B, M]
    before = totals - tf.transpose(scores, [1, 0, 2])  # without the frame itself
    best = tf.TensorArray(tf.float32, size=tokens, element_shape=scores.shape[::2], clear_after_read=False)

    def enter(token, best):
        gains = _delay(best.read(token)) - before[token + 1]
        return token + 1, best.write(token + 1, totals[token + 1] + _running_maximum(gains))

    _, best = tf.while_loop(lambda token, _: token < tokens - 1, enter, [0, best.write(0, totals[0])])
    gains = tf.concat([tf.zeros([1, rows, frames]), _delay(best.stack()[:-1])], 0) - before
    frame = tf.range(frames)
    firsts = tf.TensorArray(tf.int32, size=tokens, element_shape=scores.shape[:1])

    def leave(done, end, firsts):
        """The first frame of a token whose last frame is the one before `end`."""
        token = tokens - 1 - done
        likeliest = tf.argmax(tf.where(frame < end[:, None], gains[token], 2 * IMPOSSIBLE), -1, output_type=tf.int32)
        first = tf.where(token < text_lengths, tf.where(token == 0, 0, likeliest), end)
        return done + 1, first, firsts.write(token, first)

    _, _, firsts = tf.while_loop(lambda done, *_: done < tokens, leave, [0, frame_lengths, firsts])
    begin = tf.transpose(firsts.stack())[..., None]  # [B, T, 1]
    end = tf.concat([begin[:, 1:], frame_lengths[:, None, None]], 1)
    return tf.cast((frame >= begin) & (frame < end), tf.float32)


def _delay(values: tf.Tensor, frames: int = 1) -> tf.Tensor:
    """The same so many frames later; what comes before is impossible."""
    empty = [[0, 0]] * (len(values.shape) - 1)
    padded = tf.pad(values, [*empty, [frames, 0]], constant_values=IMPOSSIBLE)
    return padded[..., : sizes(values)[-1]]


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """The largest value up to each frame, by doubling: as many operations as the number of frames has digits.

    Where that number is not known while tracing, XLA drops what reaches beyond it.
    """
    reach = 1
    while reach < (values.shape[-1] or MOST_FRAMES):
        values = tf.maximum(values, _delay(values, reach))
        reach *= 2
    return values


def even_path(text_lengths: tf.Tensor, frame_lengths: tf.Tensor, tokens: int, frames: int) -> tf.Tensor:
    """Every token the same number of frames: where the flat start begins. [B, T, M]"""
    place = tf.cast(tf.range(frames), tf.float32)[None] / tf.cast(frame_lengths, tf.float32)[:, None]
    owner = tf.cast(place * tf.cast(text_lengths, tf.float32)[:, None], tf.int32)
    owner = tf.where(tf.range(frames)[None] < frame_lengths[:, None], owner, -1)
    return tf.one_hot(owner, tokens, axis=1, dtype=tf.float32)


class AlignmentGuide(layers.Layer):
    """One Gaussian of cepstra per symbol, re-estimated from alignments (Viterbi training, as recognisers begin).

    Searching on these averages finds usable durations within seconds, long before the network could.
    """

    CEPSTRA = 16

    def __init__(self, symbols: int, n_mels: int, frames_per_step: int, **kwargs):
        super().__init__(trainable=False, **kwargs)
        self.symbols, self.n_mels, self.frames_per_step = symbols, n_mels, frames_per_step
        band = (np.arange(n_mels) + 0.5)[:, None]
        self._cosines = np.cos(math.pi / n_mels * band * np.arange(self.CEPSTRA)).astype(np.float32) / n_mels**0.5

    def build(self, *_shapes, **_named_shapes):
        shape = (self.symbols, 2 * self.CEPSTRA)
        self.means = self.add_weight(shape=shape, initializer="zeros", trainable=False, name="means")
        self.precisions = self.add_weight(shape=shape, initializer="ones", trainable=False, name="precisions")
        self.built = True

    def features(self, stacked: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Cepstra less the clip's own mean (so voices agree) and their slope: [B, M, 2 * CEPSTRA]."""
        mel = tf.add_n(tf.split(stacked, self.frames_per_step, axis=-1)) / self.frames_per_step
        cepstra = (mel * mask) @ tf.constant(self._cosines)
        cepstra -= tf.reduce_sum(cepstra, 1, keepdims=True) / tf.reduce_sum(mask, 1, keepdims=True)
        cepstra *= mask
        padded = tf.pad(cepstra, [[0, 0], [1, 1], [0, 0]])
        return tf.concat([cepstra, padded[:, 2:] - padded[:, :-2]], axis=-1)

    def call(self, tokens, stacked, mask):
        """Log-likelihood of each frame under each token's Gaussian, up to a constant: [B, T, M]."""
        features = self.features(stacked, mask)
        mean, precision = tf.gather(self.means, tokens), tf.gather(self.precisions, tokens)
        square = tf.matmul(precision, features**2, transpose_b=True)
        cross = tf.matmul(precision * mean, features, transpose_b=True)
        constant = tf.reduce_sum(precision * mean**2 - tf.math.log(precision), axis=-1, keepdims=True)
        return -0.5 * (square - 2.0 * cross + constant)

    def statistics(self, tokens, stacked, mask, path) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Count [S], sum and sum of squares [S, F] of the frames that a path gives to each symbol."""
        features = self.features(stacked, mask)
        owner = tf.einsum("btm,bts->bms", path, tf.one_hot(tokens, self.symbols))
        return (
            tf.reduce_sum(owner, [0, 1]),
            tf.einsum("bms,bmf->sf", owner, features),
            tf.einsum("bms,bmf->sf", owner, features**2),
        )

    def estimate(self, count: tf.Tensor, total: tf.Tensor, squares: tf.Tensor, faith: float = 20.0) -> None:
        """New Gaussians; a symbol heard in fewer than `faith` frames leans on the average of all."""
        everything = tf.reduce_sum(count)
        mean = tf.reduce_sum(total, 0, keepdims=True) / everything
        variance = tf.reduce_sum(squares, 0, keepdims=True) / everything - mean**2
        means = (total + faith * mean) / (count[:, None] + faith)
        second = (squares + faith * (variance + mean**2)) / (count[:, None] + faith)
        self.means.assign(means)
        self.precisions.assign(1.0 / tf.maximum(second - means**2, 0.05 * variance))
