"""What can be trained, as far as every room has to know it; `training/targets` holds what only training does.

In: the name in `training.target`.
Out: a `TargetKind`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class TargetKind:
    """One kind of model."""

    name: str
    title: str  # in messages
    section: str  # of the configuration; with `audio` it decides the shapes of the weights
    speaks: bool  # reads whole texts in the voice of a reference; otherwise slices of sound are all that it is given
    loss_tells_best: bool  # whether the lowest validation loss is what one wants to speak with
    mixes_precision: bool  # whether its layers can compute in half precision
    shapeless: tuple[str, ...] = ()  # keys of its section that change no weight
    foreign: Mapping[str, str] = field(default_factory=dict)  # keys that mean nothing to it, and what does it instead


SPEECH = TargetKind(
    name="speech",
    title="speech model",
    section="model",
    speaks=True,
    loss_tells_best=True,
    mixes_precision=True,
    shapeless=("model.reference_frames",),
    foreign=MappingProxyType({"vocoder.discriminators_after": "goes with `training.target` vocoder"}),
)

VOCODER = TargetKind(
    name="vocoder",
    title="vocoder",
    section="vocoder",
    speaks=False,
    loss_tells_best=False,  # discriminators prefer what is sharper than the mean, which costs spectral loss
    mixes_precision=False,
    shapeless=(
        "vocoder.slice_frames", "vocoder.discriminators_after", "vocoder.adversarial_loss",
        "vocoder.feature_matching_loss",
    ),
    foreign=MappingProxyType(
        {
            "model.size": "shapes the speech model; a vocoder is shaped by `vocoder` in a YAML file",
            "data.reference_gain_db": "goes with the speech model; a vocoder needs no reference",
        }
    ),
)  # fmt: skip

TARGETS = {kind.name: kind for kind in (SPEECH, VOCODER)}
