"""What a `Synthesizer` speaks with; how it computes is its own affair.

In: token ids, the mel of a reference, how it is to be said.
Out: mel frames, and waves made of them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class SynthesisOptions:
    """How something is said."""

    speed: float = 1.0  # times as fast
    pitch: float = 1.0  # times as high
    ode_steps: int = 4  # in which the refiner samples the residual, where a model has one; 0: without


DEFAULTS = SynthesisOptions()


class Engine(Protocol):
    """Text to mel, and mel to wave."""

    def mel(self, tokens: np.ndarray, reference: np.ndarray, how: SynthesisOptions = DEFAULTS) -> np.ndarray:
        """Normalised log-mel [frames, n_mels] of token ids [T] in the voice of a reference mel [frames, n_mels]."""

    def wave(self, mel: np.ndarray) -> np.ndarray:
        """Waves [samples] of a mel [frames, n_mels]."""
