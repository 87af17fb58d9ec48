"""Spectrograms and alignments as pictures.

In: a matrix of numbers [rows, columns].
Out: RGB uint8 [height, width, 3] or PNG bytes.
"""

import numpy as np
import tensorflow as tf

# Dark blue through violet and orange to pale yellow, evenly spaced.
_COLOURS = np.array([[8, 8, 32], [66, 20, 110], [140, 35, 105], [210, 70, 65], [248, 140, 45], [252, 230, 150]], float)


def colour(matrix: np.ndarray, scale: int = 1) -> np.ndarray:
    """Lowest value darkest; each value becomes `scale` x `scale` pixels; the first row is at the bottom."""
    matrix = np.nan_to_num(matrix, posinf=0.0, neginf=0.0)  # what is no number has no colour
    low, high = float(matrix.min()), float(matrix.max())
    level = (matrix[::-1] - low) / max(high - low, 1e-6) * (len(_COLOURS) - 1)
    channels = [np.interp(level, np.arange(len(_COLOURS)), _COLOURS[:, c]) for c in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8).repeat(scale, axis=0).repeat(scale, axis=1)


def png(pixels: np.ndarray) -> bytes:
    """PNG file content of RGB pixels."""
    return tf.io.encode_png(pixels).numpy()
