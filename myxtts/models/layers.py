"""The building blocks shared by the encoder, the speaker encoder and the decoder.

In: float [B, L, width] with a mask [B, L, 1] of ones and zeros; layers bring both to their own precision.
Out: the same shape; a position under a zero of the mask never changes one under a one.
"""

import math
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf
from keras import layers


def length_mask(lengths: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """Ones up to each length: float32 [B, size, 1]."""
    return tf.sequence_mask(lengths, size, tf.float32)[:, :, None]


def positions(length: int | tf.Tensor, width: int, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """Sinusoidal positions [1, length, width]."""
    rates = tf.exp(-math.log(1e4) * tf.range(0, width, 2, dtype=tf.float32) / width)
    angles = tf.cast(tf.range(length), tf.float32)[:, None] * rates
    return tf.cast(tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)[None], dtype)


def stack_frames(mel: tf.Tensor, frames_per_step: int) -> tf.Tensor:
    """[B, M, n_mels] -> [B, M / frames_per_step, n_mels * frames_per_step]."""
    shape = tf.shape(mel)
    return tf.reshape(mel, [shape[0], shape[1] // frames_per_step, mel.shape[-1] * frames_per_step])


def unstack_frames(stacked: tf.Tensor, frames_per_step: int) -> tf.Tensor:
    """The inverse of `stack_frames`."""
    shape = tf.shape(stacked)
    return tf.reshape(stacked, [shape[0], shape[1] * frames_per_step, stacked.shape[-1] // frames_per_step])


class Block(layers.Layer):
    """A layer made of layers, which build themselves when first called.

    Without this `build` Keras would trace every nested call symbolically first, most of a cold start's model time.
    """

    def build(self, *_shapes, **_named_shapes):
        self.built = True


class ConvBlock(Block):
    """ConvNeXt: a depthwise convolution along time, then a two-layer network at each position."""

    def __init__(self, width: int, kernel: int, **kwargs):
        super().__init__(**kwargs)
        self.depthwise = layers.DepthwiseConv1D(kernel, padding="same")
        self.norm = layers.LayerNormalization(epsilon=1e-5)
        self.widen = layers.Dense(3 * width, activation="gelu")
        self.narrow = layers.Dense(width, kernel_initializer="zeros")  # the block starts as the identity

    def call(self, x, mask):
        return x + self.narrow(self.widen(self.norm(self.depthwise(x * mask))))


class Attention(Block):
    """Multi-head attention of x [B, L, width] over a source [B, S, width] with its mask [B, S, 1]."""

    def __init__(self, width: int, heads: int, **kwargs):
        super().__init__(**kwargs)
        self.width, self.heads = width, heads
        self.norm = layers.LayerNormalization(epsilon=1e-5)
        self.query = layers.Dense(width)
        self.key_value = layers.Dense(2 * width)
        self.out = layers.Dense(width, kernel_initializer="zeros")

    def _split(self, x):
        shape = tf.shape(x)
        return tf.transpose(tf.reshape(x, [shape[0], shape[1], self.heads, -1]), [0, 2, 1, 3])  # [B, heads, L, d]

    def call(self, x, source, source_mask):
        key, value = tf.split(self.key_value(source), 2, axis=-1)
        query = self.query(self.norm(x)) * (self.width // self.heads) ** -0.5
        scores = tf.matmul(self._split(query), self._split(key), transpose_b=True)
        scores = tf.cast(scores, tf.float32)  # the softmax of many half-precision scores would round badly
        scores += (1.0 - tf.cast(source_mask[:, None, None, :, 0], tf.float32)) * -1e9
        shares = tf.cast(tf.nn.softmax(scores), value.dtype)
        mixed = tf.transpose(tf.matmul(shares, self._split(value)), [0, 2, 1, 3])
        return x + self.out(tf.reshape(mixed, tf.shape(x)))


class SentenceAttention(Block):
    """Attention of x over itself and over the voice tokens [B, K, width], which have no padding."""

    def __init__(self, width: int, heads: int, **kwargs):
        super().__init__(**kwargs)
        self.norm = layers.LayerNormalization(epsilon=1e-5)
        self.attention = Attention(width, heads)

    def call(self, x, mask, voice):
        source = tf.concat([voice, self.norm(x)], axis=1)
        return self.attention(x, source, tf.concat([tf.ones_like(voice[..., :1]), mask], axis=1))


class Tint(Block):
    """Every position of x knows the voice, whether or not it attends to the voice tokens [B, K, width]."""

    def __init__(self, width: int, **kwargs):
        super().__init__(**kwargs)
        self.out = layers.Dense(width)

    def call(self, x, voice):
        return x + self.out(tf.reduce_mean(voice, axis=1, keepdims=True))


def named_weights(model: keras.Model, parts: Sequence[str]) -> dict[str, tf.Variable]:
    """Every trainable weight of a model's parts by the way to it, in Keras' own order."""
    names = {id(v): name for part in parts for name, v in _walk(part, getattr(model, part))}
    return {names[id(v)]: v for v in model.trainable_variables}


def _walk(name: str, layer: keras.Layer) -> Iterator[tuple[str, tf.Variable]]:
    """Weights of a layer and of the layers that it keeps, alone or in lists."""
    kept = [(key, value) for key, value in vars(layer).items() if not key.startswith("_")]
    for key, value in kept:
        inner = value if isinstance(value, list) else [value]
        for number, item in enumerate(inner):
            if isinstance(item, keras.Layer):
                yield from _walk(f"{name}/{key}/{number}" if isinstance(value, list) else f"{name}/{key}", item)
    yield from ((f"{name}/{v.name}", v) for v in layer._trainable_variables)
