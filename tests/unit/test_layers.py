"""The layers of our own against Keras' and TensorFlow's, forwards and backwards, and both forms against each other."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.layers import ConvBlock, Dense, DepthwiseConv, LayerNorm, gelu, layers_for

RANDOM = np.random.default_rng(0)
X = tf.constant(RANDOM.normal(size=(3, 11, 8)), tf.float32)
UPSTREAM = tf.constant(RANDOM.normal(size=(3, 11, 8)), tf.float32)


def both_ways(function, *given: tf.Tensor) -> list[np.ndarray]:
    """A result and the gradients of all that it is made of."""
    with tf.GradientTape() as tape:
        tape.watch(given)
        result = function(*given)
        loss = tf.reduce_sum(result * tf.cast(UPSTREAM, result.dtype))
    return [tensor.numpy() for tensor in (result, *tape.gradient(loss, given))]


def with_weights(layer: keras.Layer, weights: list[np.ndarray]) -> keras.Layer:
    layer(X)
    for variable, value in zip(layer.trainable_variables, weights, strict=True):
        variable.assign(value)
    return layer


def trained_ways(layer: keras.Layer) -> list[np.ndarray]:
    """A layer's result and the gradients of its input and of its weights."""
    with tf.GradientTape() as tape:
        tape.watch(X)
        loss = tf.reduce_sum(layer(X) * UPSTREAM)
    variables = [variable.value for variable in layer.trainable_variables]
    return [layer(X).numpy(), *(tensor.numpy() for tensor in tape.gradient(loss, [X, *variables]))]


def test_layer_norm_is_that_of_keras():
    weights = [RANDOM.normal(size=8), RANDOM.normal(size=8)]
    ours = trained_ways(with_weights(LayerNorm(), weights))
    theirs = trained_ways(with_weights(keras.layers.LayerNormalization(epsilon=1e-5), weights))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_a_linear_map_is_that_of_keras_for_any_length():
    weights = [RANDOM.normal(size=(8, 8)), RANDOM.normal(size=8)]
    layer = with_weights(Dense(8), weights)
    ours, theirs = trained_ways(layer), trained_ways(with_weights(keras.layers.Dense(8), weights))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    np.testing.assert_allclose(layer(X[:, 0]), ours[0][:, 0], atol=1e-5)
    opened = tf.function(layer, input_signature=[tf.TensorSpec([None, None, 8])])
    np.testing.assert_allclose(opened(X), ours[0], atol=1e-5)
    with layers_for(card=False, precision="bfloat16"):
        half = with_weights(Dense(8), weights)
    assert half(X).dtype == tf.bfloat16 and half.kernel.dtype == "float32"
    np.testing.assert_allclose(tf.cast(half(X), tf.float32), ours[0], atol=0.1)


def test_gelu_is_that_of_tensorflow():
    for one, other in zip(both_ways(gelu, X), both_ways(tf.nn.gelu, X), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("taps", [1, 3, 4, 9, 15])  # more than there are frames, too
@pytest.mark.parametrize("card", [False, True])
def test_depthwise_convolution_is_that_of_keras_in_both_forms(taps, card):
    weights = [RANDOM.normal(size=(taps, 8, 1)), RANDOM.normal(size=8)]
    with layers_for(card):
        ours = trained_ways(with_weights(DepthwiseConv(taps), weights))
    theirs = trained_ways(with_weights(keras.layers.DepthwiseConv1D(taps, padding="same"), weights))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("card", [False, True])
def test_in_half_precision_norms_and_convolutions_stay_exact_inside(precision, card):
    with layers_for(card, precision):
        block = ConvBlock(8, 5)
        norm, convolution = LayerNorm(), DepthwiseConv(5)
    half = tf.cast(X, precision)
    assert block(half, tf.ones([3, 11, 1], precision)).dtype == precision
    for layer in (norm, convolution):
        assert layer(half).dtype == precision
        assert all(variable.value.dtype == tf.float32 for variable in layer.trainable_variables)
    exact = LayerNorm()
    np.testing.assert_array_equal(norm(half), tf.cast(exact(tf.cast(half, tf.float32)), precision))
