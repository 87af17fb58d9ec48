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
# views that begin at a multiple of 128 bytes as arguments; so slices cost a card nothing, but for those of parameters
# whose size is no multiple of this, which are small and lie behind the others.
ALIGNMENT = 64


class FlatParameters:
    """Where each parameter lies in the vector; zeros fill it up at its end."""

    def __init__(self, named: Mapping[str, keras.Variable]):
        self.names = list(named)
        self._variables = list(named.values())
        self.shapes = [tuple(variable.shape) for variable in self._variables]
        self._sizes = [math.prod(shape) for shape in self.shapes]
        places = range(len(self._sizes))
        self._viewed = [place for place in places if self._sizes[place] % ALIGNMENT == 0]
        self._copied = [place for place in places if self._sizes[place] % ALIGNMENT]
        self._starts = [0] * len(self._sizes)
        end = 0
        for place in (*self._viewed, *self._copied):
            self._starts[place] = end
            end += self._sizes[place]
        self._filling = -end % ALIGNMENT
        self._end = end + self._filling

    @property
    def named_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict(zip(self.names, self.shapes, strict=True))

    @property
    def count(self) -> int:
        """Parameters, without what fills the vector up."""
        return sum(self._sizes)

    def flatten(self, tensors: Iterable[tf.Tensor]) -> tf.Tensor:
        """One tensor for each parameter as one vector."""
        one_dimension = tf.constant([-1])  # one for all: a run traces a hundred of these
        flat = [tensor if len(tensor.shape) == 1 else tf.reshape(tensor, one_dimension) for tensor in tensors]
        ordered = [flat[place] for place in (*self._viewed, *self._copied)]
        return tf.concat([*ordered, tf.zeros([self._filling])], 0)

    def slices(self, flat: tf.Tensor) -> list[tf.Tensor]:
        """The parameters that a vector holds, each in its shape."""
        # Rows of 256 bytes: TensorFlow's split then hands out views, all of them by one operation.
        rows = [self._sizes[place] // ALIGNMENT for place in self._viewed]
        *views, rest = tf.split(tf.reshape(flat, [-1, ALIGNMENT]), [*rows, self._end // ALIGNMENT - sum(rows)])
        sizes = [self._sizes[place] for place in self._copied]
        copies = tf.split(tf.reshape(rest, [-1]), [*sizes, self._filling])[:-1]
        parts = dict(zip((*self._viewed, *self._copied), (*views, *copies), strict=True))
        shaped = (parts[place] for place in range(len(self.shapes)))
        return [p if p.shape == shape else tf.reshape(p, shape) for p, shape in zip(shaped, self.shapes, strict=True)]

    def named(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters that a vector on the host holds, by name."""
        return dict(zip(self.names, self.cut(flat), strict=True))

    def join(self, named: Mapping[str, np.ndarray]) -> np.ndarray:
        """A vector on the host from one array for each name."""
        return self.spread_out(named[name] for name in self.names)

    def cut(self, flat: np.ndarray) -> list[np.ndarray]:
        """The parameters that a vector on the host holds, each in its shape."""
        places = zip(self.shapes, self._sizes, self._starts, strict=True)
        return [flat[start : start + size].reshape(shape) for shape, size, start in places]

    def spread_out(self, parts: Iterable[np.ndarray]) -> np.ndarray:
        """A vector on the host from one array for each parameter."""
        flat = np.zeros(self._end, np.float32)
        for part, size, start in zip(parts, self._sizes, self._starts, strict=True):
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

    @property
    def released(self) -> bool:
        """Whether the model's own variables hold nothing."""
        return all(variable._value is None for variable in self._variables)

    def give_back(self, flat: tf.Tensor) -> None:
        """Makes the model's own variables anew, with the values of a vector."""
        for variable, part in zip(self._variables, self.slices(flat), strict=True):
            variable._value = tf.Variable(part, trainable=variable.trainable, name=variable.name)
