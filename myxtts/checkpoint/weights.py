"""Parameters by name: what a file holds of them, and how much of it a model can use.

In: arrays by the path of a parameter (`text/embed/embeddings`).
Out: `.safetensors` files, named and typed; a model that has the averaged weights of one.
"""

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, load_file, save, save_file

from myxtts.errors import UsageError

Arrays = Mapping[str, np.ndarray]
AVERAGE, PARAMETERS, MOMENTS = "average", "parameters", ("momentum", "velocity")
COUNTS = ("step", "scale", "good")  # of the optimizer and of the loss's scale
NAMED = 3  # names that a line lists


class HasParameters(Protocol):
    """What averaged weights can be given to."""

    def named_weights(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Fit:
    """What of some arrays a model can use, by name and shape."""

    fitting: dict[str, np.ndarray]
    missing: list[str]  # the model has it, the arrays do not
    unexpected: list[str]  # the other way round
    differing: dict[str, str]  # name -> the shapes that were found and needed, in words

    @property
    def complete(self) -> bool:
        return not (self.missing or self.unexpected or self.differing)

    @property
    def anew(self) -> list[str]:
        """What a model that begins with the arrays has to learn from nothing."""
        return [*self.missing, *self.differing]

    def describe(self) -> str:
        """What does not fit, in one line that names the first of it."""
        differing = [f"{name} {shapes}" for name, shapes in self.differing.items()]
        parts = (("missing", self.missing), ("unexpected", self.unexpected), ("of another shape", differing))
        return "; ".join(f"{what}: {_some(names)}" for what, names in parts if names)


def fit(arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> Fit:
    """Compares arrays with the shapes that are needed, both by name."""
    both = [name for name in shapes if name in arrays]
    return Fit(
        {name: arrays[name] for name in both if arrays[name].shape == shapes[name]},
        [name for name in shapes if name not in arrays],
        [name for name in arrays if name not in shapes],
        {n: f"{list(arrays[n].shape)}, needed {list(shapes[n])}" for n in both if arrays[n].shape != shapes[n]},
    )


def by_part(names: Iterable[str]) -> str:
    """How many of the names belong to each part of a model."""
    counts = Counter(name.split("/")[0] for name in names)
    return ", ".join(f"{part} ({count})" for part, count in counts.items())


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def only_resumes(name: str) -> bool:
    """Whether an array is needed to resume a run, and not to speak."""
    return name in COUNTS or name.split("/")[0] in (PARAMETERS, *MOMENTS)


def part_of(arrays: Arrays, part: str) -> dict[str, np.ndarray]:
    """The arrays under `part/`, without that prefix."""
    return {name.removeprefix(f"{part}/"): array for name, array in arrays.items() if name.startswith(f"{part}/")}


def under(part: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """The way back."""
    return {f"{part}/{name}": array for name, array in arrays.items()}


def load_average(
    model: HasParameters, arrays: Arrays, besides: Iterable[str] = (), source: object = "the checkpoint"
) -> None:
    """Gives a model the averaged weights of a checkpoint, for speaking.

    Args:
        model: with its variables.
        arrays: those of the checkpoint.
        besides: parts that the checkpoint may hold and the model does not have.
        source: what an error calls it.

    Raises:
        UsageError: one is missing, unexpected or of another shape.
    """
    average = {n: a for n, a in part_of(arrays, AVERAGE).items() if not n.startswith(tuple(f"{p}/" for p in besides))}
    variables = model.named_weights()
    found = fit(average, {name: tuple(variable.shape) for name, variable in variables.items()})
    if not found.complete:
        raise UsageError(f"the weights of {source} do not fit this model: {found.describe()}")
    for name, variable in variables.items():
        variable.assign(found.fitting[name].astype(np.float32))


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Raises OSError where there is no room."""
    path.touch()
    mode = path.stat().st_mode  # as the user wants it; safetensors would let nobody else read the file
    try:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path)
    except SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from error
    path.chmod(mode)


def join_arrays(arrays: Arrays) -> bytes:
    """Arrays as the bytes of such a file, for another process."""
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def split_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The way back."""
    return load(content)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Raises ValueError where the file is damaged, FileNotFoundError where there is none."""
    try:
        return load_file(path)
    except FileNotFoundError:  # without the file's name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    except SafetensorError as error:
        raise ValueError(f"{path.name} {error}") from None
