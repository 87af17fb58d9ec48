"""What a run reports of itself, as plain values without TensorFlow."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.devices import DevicePlan


@dataclass(frozen=True)
class RunFacts:
    """The settings that readers of a log want to know, before the first step; a resumed run states them again."""

    step: int  # that the run starts or resumes from
    batch_size: int
    grad_accum: int
    step_clips: int  # clips of an optimizer step
    target: str
    model_size: str
    precision: str
    pipeline: str
    data_device: str
    model_device: str

    @classmethod
    def of(cls, step: int, config: XTTSConfig, plan: DevicePlan) -> Self:
        return cls(
            step=step,
            batch_size=config.data.batch_size,
            grad_accum=config.training.grad_accum,
            step_clips=config.step_clips,
            target=config.training.target,
            model_size=config.model.size,
            precision=config.training.mixed_precision,
            pipeline=plan.pipeline,
            data_device=plan.data_device,
            model_device=", ".join(plan.training_devices),
        )


@dataclass(frozen=True)
class Metrics:
    """One log line: means since the line before."""

    step: int
    epoch: int
    seconds: float  # since the run began
    losses: dict[str, float]
    learning_rate: float
    step_ms: float
    steps_per_second: float
    frames_per_second: float
    data_wait: float  # share of the time that the model device waited for data
    buffer_fill: float  # share of the slots that were full
    padding: float  # share of the frames that were padding
    skipped: int  # steps of the run so far that were not finite and changed nothing
    memory_mb: float  # peak so far, of the training GPU or else of the process
    gpu_utilisation: dict[str, float]  # mean share by the GPU's id, 0 to 1; empty where it was not sampled
    progress: float  # 0 to 1
    seconds_left: float
    exchange: float = 0.0  # share of the time from a process's own gradient to the sum of all; among several processes
    slowest: str = ""  # the process that the others wait for, by name, with the ms it needs for its part of a step


NoticeKind = Literal["warning", "saved", "clear"]  # what was learned is on the disk; its voice is clear


class Pictures(NamedTuple):
    """One clip to look at."""

    target: np.ndarray  # [frames, n_mels]
    spoken: np.ndarray  # [frames, n_mels]
    path: np.ndarray | None  # [tokens, steps]; a vocoder has none


@dataclass(frozen=True)
class Validation:
    """Losses of the averaged weights on held-out clips, and one of these."""

    step: int
    losses: dict[str, float]
    pictures: Pictures = field(repr=False)


@dataclass(frozen=True)
class Primed:
    """The buffer between two devices was filled before the first step."""

    seconds: float
    batches: int


@dataclass(frozen=True)
class Resized:
    """The buffer between preparing and training has another size now."""

    step: int
    slots: int
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something that a person should know, in words."""

    step: int
    text: str  # settings are named by their keys
    kind: NoticeKind = "warning"


@dataclass(frozen=True)
class Sample:
    """What the averaged weights said."""

    step: int
    folder: str
    rate: int
    waves: list[np.ndarray] = field(repr=False)  # float32 [samples]


@dataclass(frozen=True)
class EvaluationResult:
    """How what the averaged weights said was scored."""

    step: int
    folder: str
    scores: dict[str, float]


@dataclass(frozen=True)
class Summary:
    """How the run went, for the report at its end."""

    steps: int
    seconds: float
    mean_step_ms: float
    deviation_step_ms: float
    variation: float  # deviation / mean, each step against the mean of its own batch shape
    frames_per_second: float
    data_wait: float
    traces: int
    shapes: int
    skipped: int


Event = RunFacts | Metrics | Validation | Primed | Resized | Notice | Sample | EvaluationResult | Summary
