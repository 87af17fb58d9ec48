"""Functions of packed batches, traced once for all lengths of clips and texts where nothing is compiled for them.

In: a Python function of tensors whose second dimension is a length.
Out: the traced function for any length; tracing `tiny` takes as long as a hundred of its steps.
"""

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import tensorflow as tf


class AnyLength:
    """Traces `function(state, rows, *settings)` once for each value of the settings, batch size and kinds of tensors.

    `rows` are tensors [B, length] whose length is left open; those of `state` keep their shapes, or are None.

    Args:
        fixed: trace every length by itself, for functions that XLA compiles: it is given numbers in place of shapes,
            and would compile every length by itself in any case.
    """

    def __init__(self, function: Callable[..., Any], fixed: bool = False):
        self._function, self._fixed = function, fixed
        self._traced: dict[Hashable, Callable[..., Any]] = {}
        self._tracing = threading.Lock()  # devices that train at the same time share the function

    @property
    def traces(self) -> int:
        return len(self._traced)

    def __call__(self, state: Any, rows: Sequence[tf.Tensor], *settings: Hashable) -> Any:
        opened = [
            tf.TensorSpec([tensor.shape[0], tensor.shape[1] if self._fixed else None], tensor.dtype) for tensor in rows
        ]
        given = tuple(tensor is not None for tensor in tf.nest.flatten(state))
        key = (*opened, given, *settings)
        with self._tracing:
            if key not in self._traced:
                traced = tf.function(lambda state, rows: self._function(state, rows, *settings), autograph=False)
                kept = tf.nest.map_structure(_spec, state)
                self._traced[key] = traced.get_concrete_function(kept, opened)
        return self._traced[key](state, list(rows))


def _spec(tensor: tf.Tensor | None) -> tf.TensorSpec | None:
    return None if tensor is None else tf.TensorSpec(tensor.shape, tensor.dtype)
