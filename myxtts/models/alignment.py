"""Which frame belongs to which token: monotonic alignment search, and averages that tell it where to begin.

In: scores [B, T, M] (log-likelihood of frame m under token t) and both lengths.
Out: the best monotonic path, float32 [B, T, M] of ones and zeros.
"""

import math

import numpy as np
import tensorflow as tf
from keras import layers

IMPOSSIBLE = -1e9


@tf.function(jit_compile=True)
def monotonic_search(scores: tf.Tensor, text_lengths: tf.Tensor, frame_lengths: tf.Tensor) -> tf.Tensor:
    """The path of highest sum that starts at the first token, ends at the last and never skips or goes back.

    Compiled by XLA as one loop over the frames forward and one back: no Python, no copy to the host.
    A clip with more tokens than frames has no such path; its result is of no use.
    """
    scores = tf.transpose(scores, [2, 0, 1])  # [M, B, T]
    frames, rows, tokens = tf.unstack(tf.shape(scores))
    before = tf.fill([rows, 1], IMPOSSIBLE)
    best = tf.concat([tf.zeros([rows, 1]), tf.fill([rows, tokens - 1], IMPOSSIBLE)], axis=1)
    stays = tf.TensorArray(tf.bool, size=frames, element_shape=scores.shape[1:])
    best += scores[0]
    for frame in tf.range(1, frames):
        moved = tf.concat([before, best[:, :-1]], axis=1)
        stays = stays.write(frame, best >= moved)
        best = tf.maximum(best, moved) + scores[frame]
    stays = stays.write(0, tf.ones_like(scores[0], tf.bool))
    stay = tf.cast(stays.stack(), tf.int32)

    token = text_lengths - 1
    owners = tf.TensorArray(tf.int32, size=frames, element_shape=text_lengths.shape)
    for back in tf.range(frames):
        frame = frames - 1 - back
        inside = frame < frame_lengths
        owners = owners.write(frame, tf.where(inside, token, -1))  # -1 becomes a row of zeros
        left = 1 - tf.gather(stay[frame], token, batch_dims=1)
        token = tf.where(inside, tf.maximum(token - left, 0), token)
    return tf.one_hot(tf.transpose(owners.stack()), tokens, axis=1, dtype=tf.float32)


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
