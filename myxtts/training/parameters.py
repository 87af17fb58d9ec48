"""A model's parameters as one flat vector, and the model computed from slices of it.

In: a model whose variables exist.
Out: the vector's layout; inside `scope` the model has the parameters of any such vector.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

# Floats. A slice that begins and ends at a multiple of 64 bytes is no copy to TensorFlow but a view, and XLA takes
# views that begin at a multiple of 128 bytes as arguments; so slices cost a card nothing, but for those of weights
# whose size is no multiple of 16, which are small.
ALIGNMENT = 64


class FlatParameters:
    """Where each parameter lies in the vector; zeros fill the room between them."""

    def __init__(self, named: Mapping[str, keras.Variable]):
        self.names = list(named)
        self._variables = list(named.values())
        self.shapes = [tuple(variable.shape) for variable in self._variables]
        self._sizes = [math.prod(shape) for shape in self.shapes]
        self._rooms = [-(-size // ALIGNMENT) * ALIGNMENT for size in self._sizes]
        self._starts = np.cumsum([0, *self._rooms]).tolist()

    @property
    def count(self) -> int:
        """Parameters, without what lies between them."""
        return sum(self._sizes)

    def flatten(self, tensors: Iterable[tf.Tensor]) -> tf.Tensor:
        """One tensor for each parameter as one vector."""
        parts, one_dimension = [], tf.constant([-1])  # one for all: a run traces a few hundred of these
        for tensor, size, room in zip(tensors, self._sizes, self._rooms, strict=True):
            parts.append(tf.reshape(tensor, one_dimension))
            if room > size:
                parts.append(tf.zeros([room - size]))
        return tf.concat(parts, 0)

    def slices(self, flat: tf.Tensor) -> list[tf.Tensor]:
        """The parameters that a vector holds, each in its shape."""
        # Rows of 256 bytes: TensorFlow's split then hands out views, all of them by one operation.
        views = tf.split(tf.reshape(flat, [-1, ALIGNMENT]), [room // ALIGNMENT for room in self._rooms])
        found = []
        for view, shape, size, room in zip(views, self.shapes, self._sizes, self._rooms, strict=True):
            whole = view if size == room else tf.slice(tf.reshape(view, [room]), [0], [size])
            found.append(tf.reshape(whole, shape))
        return found

    def compact(self, flat: np.ndarray) -> np.ndarray:
        """The parameters alone, one behind the other, as checkpoints hold them."""
        return np.concatenate([part.ravel() for part in self.cut(flat)])

    def cut(self, flat: np.ndarray) -> list[np.ndarray]:
        """The parameters that a vector on the host holds, each in its shape."""
        places = zip(self.shapes, self._sizes, self._starts, strict=False)
        return [flat[start : start + size].reshape(shape) for shape, size, start in places]

    def spread_out(self, parts: Iterable[np.ndarray]) -> np.ndarray:
        """A vector on the host from one array for each parameter."""
        flat = np.zeros(self._starts[-1], np.float32)
        for part, size, start in zip(parts, self._sizes, self._starts, strict=False):
            flat[start : start + size] = np.ravel(part)
        return flat

    def flags(self, values: Sequence[bool]) -> np.ndarray:
        """One flag for each element of the vector, from one for each parameter; bool."""
        return self.spread_out(np.full(size, v) for size, v in zip(self._sizes, values, strict=True)) > 0

    def scope(
        self, slices: Sequence[tf.Tensor], buffers: Sequence[tuple[keras.Variable, tf.Tensor]] = ()
    ) -> keras.StatelessScope:
        """Inside the block the model has these parameters, and these values of its buffers."""
        return keras.StatelessScope([*zip(self._variables, slices, strict=True), *buffers])

    def release(self) -> None:
        """Lets go of the memory of the model's own variables: from now on only the vector counts.

        Outside `scope` the model can then not be called. Keras has no public name for this.
        """
        for variable in self._variables:
            variable._value = None

    def give_back(self, flat: tf.Tensor) -> None:
        """Makes the model's own variables anew, with the values of a vector."""
        for variable, part in zip(self._variables, self.slices(flat), strict=True):
            variable._value = tf.Variable(part, trainable=variable.trainable, name=variable.name)
