"""The building blocks shared by the encoder, the speaker encoder and the decoder.

In: float [B, L, width] with a mask [B, L, 1] of ones and zeros; layers bring both to their own precision.
Out: the same shape; a position under a zero of the mask never changes one under a one.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import keras
import tensorflow as tf
from keras import layers

EPSILON = 1e-5  # added to the variance before the root
_for_card: ContextVar[bool] = ContextVar("for_card", default=False)


@contextmanager
def layers_for(card: bool, precision: str = "float32") -> Iterator[None]:
    """Layers made in the block are meant for a card or for the CPU, compute in that precision and keep float32 weights.

    The numbers are the same within rounding; a card and the CPU are quick at different forms of them.
    """
    token, before = _for_card.set(card), keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32" if precision == "float32" else f"mixed_{precision}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
        _for_card.reset(token)


def sizes(tensor: tf.Tensor) -> list[int | tf.Tensor]:
    """The dimensions of a tensor, as numbers where they are known while tracing."""
    if tensor.shape.is_fully_defined():
        return list(tensor.shape)
    found = tf.shape(tensor)
    return [found[axis] if size is None else size for axis, size in enumerate(tensor.shape)]


def row_count(tensor: tf.Tensor) -> int | tf.Tensor:
    """The first dimension, as a number where it is known while tracing."""
    return tensor.shape[0] or tf.shape(tensor)[0]


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
    return tf.reshape(mel, [row_count(mel), -1, mel.shape[-1] * frames_per_step])


def unstack_frames(stacked: tf.Tensor, frames_per_step: int) -> tf.Tensor:
    """The inverse of `stack_frames`."""
    return tf.reshape(stacked, [row_count(stacked), -1, stacked.shape[-1] // frames_per_step])


class Block(layers.Layer):
    """A layer made of layers, which build themselves when first called.

    Without this `build` Keras would trace every nested call symbolically first, most of a cold start's model time.
    """

    def build(self, *_shapes, **_named_shapes):
        self.built = True


@tf.custom_gradient
def _normalize(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor):
    """Layer normalisation (Ba et al. 2016) of float32, and its gradient in as few passes as it takes.

    Left to automatic differentiation it is the largest part of a training step's graph.
    """
    mean = tf.reduce_mean(x, -1, keepdims=True)
    centred = x - mean
    inverse = tf.math.rsqrt(tf.reduce_mean(centred * centred, -1, keepdims=True) + EPSILON)

    def gradient(upstream):
        normal, wanted = (x - mean) * inverse, upstream * gamma
        along = tf.reduce_mean(wanted * normal, -1, keepdims=True)
        rows = list(range(len(x.shape) - 1))
        return (
            (wanted - tf.reduce_mean(wanted, -1, keepdims=True) - normal * along) * inverse,
            tf.reduce_sum(upstream * normal, rows),
            tf.reduce_sum(upstream, rows),
        )

    return centred * inverse * gamma + beta, gradient


class LayerNorm(layers.Layer):
    """Every position brought to zero mean and unit variance, in float32 whatever the layers around it compute in."""

    def build(self, shape):
        size = (shape[-1],)
        self.gamma = self.add_weight(shape=size, initializer="ones", name="gamma", autocast=False)
        self.beta = self.add_weight(shape=size, initializer="zeros", name="beta", autocast=False)

    def call(self, x):
        scale, offset = tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)
        return tf.cast(_normalize(tf.cast(x, tf.float32), scale, offset), x.dtype)


@tf.custom_gradient
def gelu(x: tf.Tensor):
    """The exact GELU (Hendrycks & Gimpel 2016), whose gradient takes up what was computed on the way forward."""
    below = 0.5 * (1.0 + tf.math.erf(x * 0.5**0.5))
    return x * below, lambda upstream: upstream * (below + x * tf.exp(-0.5 * x * x) * (2.0 * math.pi) ** -0.5)


class Dense(layers.Layer):
    """A linear map of x [B, width] or [B, L, width] at each position.

    Keras' own asks every tensor for its shape at run time: a fifth of the operations of a training step's graph.
    """

    def __init__(self, width: int, kernel_initializer: str = "glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.width, self._initializer = width, keras.initializers.get(kernel_initializer)

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], self.width), initializer=self._initializer, name="kernel")
        self.bias = self.add_weight(shape=(self.width,), initializer="zeros", name="bias")

    def call(self, x):
        kernel, bias = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)
        mapped = tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel), bias)
        return mapped if len(x.shape) == 2 else tf.reshape(mapped, [row_count(x), -1, self.width])


class DepthwiseConv(layers.Layer):
    """A convolution along time of each channel by itself; float32 inside, whatever the layers around it compute in.

    On the CPU TensorFlow's own operation is the quickest. On a card it is not: with filters of one row it never
    reaches cuDNN's good kernels, brings transposes with it and adds float16 gradients in float16 (tensorflow#41715).
    There the sum over the filter is written out, which XLA makes one kernel of, together with what stands around it.
    """

    def __init__(self, kernel_size: int, **kwargs):
        super().__init__(**kwargs)
        self.kernel_size, self._written_out = kernel_size, _for_card.get()

    def build(self, shape):
        size = (self.kernel_size, shape[-1], 1)
        self.kernel = self.add_weight(shape=size, initializer="glorot_uniform", name="kernel", autocast=False)
        self.bias = self.add_weight(shape=size[1:2], initializer="zeros", name="bias", autocast=False)

    def call(self, x):
        kernel, bias = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)
        wide = tf.cast(x, tf.float32)
        if self._written_out:
            return tf.cast(_convolve(wide, kernel[..., 0]) + bias, x.dtype)
        image, filters = tf.expand_dims(wide, 1), tf.expand_dims(kernel, 0)
        convolved = tf.squeeze(tf.nn.depthwise_conv2d(image, filters, [1, 1, 1, 1], "SAME"), 1)
        return tf.cast(tf.nn.bias_add(convolved, bias), x.dtype)


@tf.custom_gradient
def _convolve(x: tf.Tensor, kernel: tf.Tensor):
    """Depthwise convolution of x [B, L, width] with a kernel [K, width], a sum of K shifted products."""
    taps, length = kernel.shape[0], x.shape[1] or tf.shape(x)[1]
    left, right = (taps - 1) // 2, taps // 2

    def shifts(values, before, after):
        padded = tf.pad(values, [[0, 0], [before, after], [0, 0]])
        return [tf.slice(padded, [0, tap, 0], [-1, length, -1]) for tap in range(taps)]

    def gradient(upstream):
        back = shifts(upstream, right, left)
        products = tf.stack(shifts(x, left, right)) * upstream
        return tf.add_n([shift * kernel[taps - 1 - tap] for tap, shift in enumerate(back)]), tf.reduce_sum(
            products, [1, 2]
        )

    return tf.add_n([shift * kernel[tap] for tap, shift in enumerate(shifts(x, left, right))]), gradient


class ConvBlock(Block):
    """ConvNeXt (Liu et al. 2022): a depthwise convolution along time, then a two-layer network at each position."""

    def __init__(self, width: int, kernel: int, **kwargs):
        super().__init__(**kwargs)
        self.depthwise = DepthwiseConv(kernel)
        self.norm = LayerNorm()
        self.widen = Dense(3 * width)
        self.narrow = Dense(width, kernel_initializer="zeros")  # the block starts as the identity

    def call(self, x, mask):
        return x + self.narrow(gelu(self.widen(self.norm(self.depthwise(x * mask)))))


class Attention(Block):
    """Multi-head attention of x [B, L, width] over a source [B, S, width] with its mask [B, S, 1]."""

    def __init__(self, width: int, heads: int, **kwargs):
        super().__init__(**kwargs)
        self.width, self.heads = width, heads
        self.norm = LayerNorm()
        self.query = Dense(width)
        self.key_value = Dense(2 * width)
        self.out = Dense(width, kernel_initializer="zeros")

    def _split(self, x):
        heads = tf.reshape(x, [row_count(x), -1, self.heads, self.width // self.heads])
        return tf.transpose(heads, [0, 2, 1, 3])  # [B, heads, L, d]

    def call(self, x, source, source_mask):
        key, value = tf.split(self.key_value(source), 2, axis=-1)
        query = self.query(self.norm(x)) * (self.width // self.heads) ** -0.5
        scores = tf.matmul(self._split(query), self._split(key), transpose_b=True)
        scores = tf.cast(scores, tf.float32)  # the softmax of many half-precision scores would round badly
        scores += (1.0 - tf.cast(source_mask[:, None, None, :, 0], tf.float32)) * -1e9
        shares = tf.cast(tf.nn.softmax(scores), value.dtype)
        mixed = tf.transpose(tf.matmul(shares, self._split(value)), [0, 2, 1, 3])
        return x + self.out(tf.reshape(mixed, [row_count(x), -1, self.width]))


class SentenceAttention(Block):
    """Attention of x over itself and over the voice tokens [B, K, width], which have no padding."""

    def __init__(self, width: int, heads: int, **kwargs):
        super().__init__(**kwargs)
        self.norm = LayerNorm()
        self.attention = Attention(width, heads)

    def call(self, x, mask, voice):
        source = tf.concat([voice, self.norm(x)], axis=1)
        return self.attention(x, source, tf.concat([tf.ones_like(voice[..., :1]), mask], axis=1))


class SpeakerConditioning(Block):
    """Every position of x knows the voice, whether or not it attends to the voice tokens [B, K, width]."""

    def __init__(self, width: int, **kwargs):
        super().__init__(**kwargs)
        self.out = Dense(width)

    def call(self, x, voice):
        return x + self.out(tf.reduce_mean(voice, axis=1, keepdims=True))


def named_weights(model: keras.Model, parts: Sequence[str]) -> dict[str, tf.Variable]:
    """Every trainable weight of a model's parts by the way to it, in Keras' own order."""
    return _in_order(model, ((part, getattr(model, part)) for part in parts))


def weights_under(name: str, model: keras.Model) -> dict[str, tf.Variable]:
    """The same for a model that is itself the part of another."""
    return _in_order(model, [(name, model)])


def _in_order(model: keras.Model, parts: Iterable[tuple[str, keras.Layer]]) -> dict[str, tf.Variable]:
    names = {id(v): name for part, layer in parts for name, v in _walk(part, layer)}
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
