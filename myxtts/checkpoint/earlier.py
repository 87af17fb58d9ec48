"""Checkpoints of format 2, which held all weights as one nameless vector.

In: the arrays of such a checkpoint, its configuration, its number of symbols.
Out: the same arrays by name, as `weights.py` has them.

The order of the vector is written down here and does not follow the model: what was saved is what it was.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from myxtts.checkpoint.weights import AVERAGE, MOMENTS, PARAMETERS
from myxtts.config.config import ModelConfig, XTTSConfig

Place = tuple[str, tuple[int, ...]]
VECTORS = {"weights": PARAMETERS, "average": AVERAGE, **{name: name for name in MOMENTS}}
KERAS_MOMENTS = {"optimizer/2": "momentum", "optimizer/3": "velocity"}  # of still older ones
CALLED_BEFORE = {
    "pitch_embedding": "melody", "discriminators": "critics", "resolutions": "spectra", "conditioning": "tint",
    "stats": "colour", "timestep": "moment",
}  # fmt: skip


def called_before(path: str) -> str:
    """The path of a parameter as runs of format 2 may name it in their settings."""
    return "/".join(CALLED_BEFORE.get(part, part) for part in path.split("/"))


def named(arrays: dict[str, np.ndarray], config: XTTSConfig, symbols: int) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint of format 2 by the names of today.

    Raises:
        ValueError: a vector has another size than its configuration says.
    """
    places = list(speech_places(config, symbols) if config.kind.speaks else vocoder_places(config))
    found = {}
    for name, array in arrays.items():
        part = VECTORS.get(KERAS_MOMENTS.get(name, name))
        if part is None:
            found[name] = array
        else:
            found |= {f"{part}/{path}": value for path, value in _cut(name, array, places)}
    return found


def _cut(name: str, vector: np.ndarray, places: list[Place]) -> Iterator[tuple[str, np.ndarray]]:
    sizes = [math.prod(shape) for _, shape in places]
    if vector.shape != (sum(sizes),):
        raise ValueError(f"{name} holds {vector.size:,} numbers, the configuration needs {sum(sizes):,}")
    for (path, shape), part in zip(places, np.split(vector, np.cumsum(sizes)[:-1]), strict=True):
        yield path, part.reshape(shape)


# The order of the vector


def _under(path: str, places: Iterator[Place]) -> Iterator[Place]:
    return ((f"{path}/{name}", shape) for name, shape in places)


def _dense(width: int, out: int) -> Iterator[Place]:
    yield from (("kernel", (width, out)), ("bias", (out,)))


def _conv(*shape: int) -> Iterator[Place]:
    yield from (("kernel", shape), ("bias", shape[-1:]))


def _norm(width: int) -> Iterator[Place]:
    yield from (("gamma", (width,)), ("beta", (width,)))


def _conv_block(width: int, kernel: int) -> Iterator[Place]:
    yield from (("depthwise/kernel", (kernel, width, 1)), ("depthwise/bias", (width,)))
    yield from _under("norm", _norm(width))
    yield from _under("widen", _dense(width, 3 * width))
    yield from _under("narrow", _dense(3 * width, width))


def _attention(width: int) -> Iterator[Place]:
    yield from _under("norm", _norm(width))
    yield from _under("query", _dense(width, width))
    yield from _under("key_value", _dense(width, 2 * width))
    yield from _under("out", _dense(width, width))


def _sentence_attention(width: int) -> Iterator[Place]:
    yield from _under("norm", _norm(width))
    yield from _under("attention", _attention(width))


def _each(path: str, count: int, make: Any, *arguments: int) -> Iterator[Place]:
    for number in range(count):
        yield from _under(f"{path}/{number}", make(*arguments))


def speech_places(config: XTTSConfig, symbols: int) -> Iterator[Place]:
    model, width = config.model, config.model.width
    step = config.audio.n_mels * model.frames_per_step
    yield from _under("speaker", _speaker(model, step))
    yield ("text/embed/embeddings", (symbols, width))
    yield from _under("text/conditioning/out", _dense(width, width))
    yield from _each("text/convs", model.text_blocks, _conv_block, width, 5)
    yield from _each("text/attentions", model.text_blocks, _sentence_attention, width)
    yield from _under("text/norm", _norm(width))
    yield from _under("prior", _dense(width, step))
    yield from _each("duration/convs", model.duration_blocks, _conv_block, width, 3)
    yield from _under("duration/out", _dense(width, 1))
    yield from _each("pitch/convs", model.duration_blocks, _conv_block, width, 5)
    yield from _under("pitch/norm", _norm(width))
    yield from _under("pitch/out", _dense(width, 2))
    yield from _under("pitch_embedding/out", _dense(2, width))
    yield from _under("decoder/conditioning/out", _dense(width, width))
    yield from _each("decoder/convs", model.decoder_blocks, _conv_block, width, 9)
    count = model.decoder_blocks // model.decoder_attention_every
    yield from _each("decoder/attentions", count, _sentence_attention, width)
    yield from _under("decoder/norm", _norm(width))
    yield from _under("decoder/out", _dense(width, step))
    if model.refiner_blocks:
        yield from _under("refiner", _refiner(model, step))


def _speaker(model: ModelConfig, step: int) -> Iterator[Place]:
    width, readers = model.width, model.speaker_blocks + 1
    yield ("queries", (model.speaker_tokens, width))
    yield from _under("enter", _dense(step, width))
    yield from _under("stats", _dense(2 * step, width))
    yield from _each("convs", model.speaker_blocks, _conv_block, width, 5)
    yield from _each("readers", readers, _attention, width)
    yield from _each("mixers", readers, _conv_block, width, 1)
    yield from _under("frame_norm", _norm(width))
    yield from _each("norms", readers, _norm, width)
    yield from _under("norm", _norm(width))


def _refiner(model: ModelConfig, step: int) -> Iterator[Place]:
    width = model.refiner_width
    yield from _under("enter", _dense(2 * step + model.width, width))
    yield from _each("timestep", 2, _dense, width, width)
    yield from _each("convs", model.refiner_blocks, _conv_block, width, 7)
    yield from _under("norm", _norm(width))
    yield from _under("out", _dense(width, step))


def vocoder_places(whole: XTTSConfig) -> Iterator[Place]:
    config, n_mels, bins = whole.vocoder, whole.audio.n_mels, whole.audio.n_fft // 2 + 1
    width, narrow, wide = config.pitch_width, config.discriminator_width, 2 * config.discriminator_width
    pitches = 100
    yield from _under("vocoder/pitch/enter", _conv(3, n_mels + 2 * pitches, width))
    yield from _each("vocoder/pitch/blocks", config.pitch_blocks, _conv_block, width, 7)
    yield from _under("vocoder/pitch/norm", _norm(width))
    yield from _under("vocoder/pitch/out", _dense(width, pitches))
    yield from _under("vocoder/enter", _conv(7, n_mels + 1, config.width))
    yield from _each("vocoder/blocks", config.blocks, _conv_block, config.width, 7)
    yield from _under("vocoder/norm", _norm(config.width))
    yield from _under("vocoder/filters", _dense(config.width, 3 * bins))
    for number in range(5):
        channels = (1, narrow, 2 * narrow, 4 * narrow, 8 * narrow)
        yield from _discriminator(f"discriminators/periods/{number}", (5, 1), channels)
    for number in range(3):
        yield from _discriminator(f"discriminators/resolutions/{number}", (3, 3), (8, wide, wide, wide))


def _discriminator(path: str, kernel: tuple[int, int], channels: tuple[int, ...]) -> Iterator[Place]:
    for layer, (read, made) in enumerate(itertools.pairwise(channels)):
        yield from _under(f"{path}/convs/{layer}", _conv(*kernel, read, made))
    yield from _under(f"{path}/out", _conv(3, kernel[1], channels[-1], 1))
