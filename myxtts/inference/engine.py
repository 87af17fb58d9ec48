"""What a `Synthesizer` speaks with; how it computes is its own affair.

In: token ids, the mel of a reference, how it is to be said.
Out: mel frames, and waves made of them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from myxtts.errors import UsageError


@dataclass(frozen=True)
class SynthesisOptions:
    """How something is said."""

    speed: float = 1.0  # times as fast
    pitch: float = 1.0  # times as high
    ode_steps: int = 4  # in which the refiner samples the residual, where a model has one; 0: without

    def __post_init__(self) -> None:
        for name, low, high in (("speed", 0.25, 2.0), ("pitch", 0.5, 1.5), ("ode_steps", 0, 100)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise UsageError(f"`{name}` is {value}; it must lie between {low:g} and {high:g}")


DEFAULTS = SynthesisOptions()


class Engine(Protocol):
    """Text to mel, and mel to wave."""

    def mel(self, tokens: np.ndarray, reference: np.ndarray, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Normalised log-mel [frames, n_mels] of token ids [T] in the voice of a reference mel [frames, n_mels]."""

    def wave(self, mel: np.ndarray) -> np.ndarray:
        """Waves [samples] of a mel [frames, n_mels]."""
