"""Every setting of MyXTTS as frozen dataclasses that check themselves, and the model's size presets.

In: plain values.
Out: an `XTTSConfig` in which every value is known to be usable.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from myxtts.config.languages import LANGUAGES
from myxtts.config.targets import TARGETS, TargetKind
from myxtts.errors import UsageError

MODEL_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {},
    "small": {
        "width": 256,
        "text_blocks": 5,
        "decoder_blocks": 8,
        "heads": 4,
        "speaker_blocks": 2,
        "refiner_blocks": 4,
        "refiner_width": 256,
    },
    "normal": {
        "width": 384,
        "text_blocks": 6,
        "decoder_blocks": 10,
        "heads": 6,
        "speaker_blocks": 3,
        "speaker_tokens": 16,
        "refiner_blocks": 6,
        "refiner_width": 384,
    },
    "big": {
        "width": 512,
        "text_blocks": 8,
        "decoder_blocks": 14,
        "heads": 8,
        "speaker_blocks": 4,
        "speaker_tokens": 32,
        "refiner_blocks": 8,
        "refiner_width": 512,
    },
}

PRECISIONS = ("float32", "bfloat16", "float16")
XLA = ("auto", "on", "off")
PIPELINES = ("sequential", "buffered", "split", "parallel")
LONGEST_WINDOW = 2048  # samples that a discriminator hears at once


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UsageError(message)


def _require_positive(section: str, config: Any, *names: str) -> None:
    for name in names:
        _require(getattr(config, name) > 0, f"`{section}.{name}` is {getattr(config, name)}; it must be positive")


def _require_no_negative(section: str, config: Any, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(0 <= value < math.inf, f"`{section}.{name}` is {value}; it must be a number that is not negative")


@dataclass(frozen=True)
class AudioConfig:
    """The one mel definition: 80 log-mel bands of a 1024-sample window every 256 samples at 22.05 kHz."""

    sample_rate: int = 22050
    n_fft: int = 1024
    hop_samples: int = 256
    n_mels: int = 80
    fmin: float = 0.0
    fmax: float = 8000.0
    floor: float = 1e-5  # smallest magnitude before the logarithm

    def __post_init__(self) -> None:
        _require(
            8000 <= self.sample_rate <= 192_000,
            f"`audio.sample_rate` is {self.sample_rate}; it must lie between 8000 and 192000",
        )
        _require(
            0 < self.hop_samples <= self.n_fft // 2,
            f"`audio.hop_samples` is {self.hop_samples}; it must lie between 1 and n_fft / 2 = {self.n_fft // 2}",
        )
        _require(
            0 <= self.fmin < self.fmax <= self.sample_rate / 2,
            f"`audio.fmin` {self.fmin} and `audio.fmax` {self.fmax} must rise and stay below {self.sample_rate / 2:g}",
        )
        _require(self.n_mels > 0 and self.floor > 0, "`audio.n_mels` and `audio.floor` must be positive")

    def mel_frames(self, samples: Any) -> Any:
        """Frames of a wave with that many samples; an int, or an array or tensor of them."""
        return samples // self.hop_samples + 1


@dataclass(frozen=True)
class ModelConfig:
    """Shapes of the network. `size` names a preset; single values may differ from it."""

    size: str = "tiny"
    width: int = 160
    heads: int = 2
    text_blocks: int = 4
    decoder_blocks: int = 6
    decoder_attention_every: int = 3
    duration_blocks: int = 2
    speaker_blocks: int = 1
    speaker_tokens: int = 8
    refiner_width: int = 192
    refiner_blocks: int = 0  # 0: the decoder's mel is spoken as it is
    frames_per_step: int = 2  # mel frames that one decoder position covers
    reference_frames: int = 256  # mel frames of the longest reference slice in training

    def __post_init__(self) -> None:
        _require(self.size in MODEL_SIZES, f"`model.size` is {self.size!r}; choose one of {', '.join(MODEL_SIZES)}")
        _require_positive(
            "model", self, "width", "heads", "text_blocks", "decoder_blocks", "duration_blocks", "speaker_blocks",
            "speaker_tokens", "frames_per_step", "reference_frames", "decoder_attention_every",
        )  # fmt: skip
        _require_no_negative("model", self, "refiner_blocks")
        _require(
            self.refiner_width > 0 and self.refiner_width % 2 == 0,
            f"`model.refiner_width` is {self.refiner_width}; it must be positive and even",
        )
        _require(
            self.width % (2 * self.heads) == 0,
            f"`model.width` {self.width} must be a multiple of twice `model.heads` ({self.heads})",
        )
        _require(
            self.reference_frames % self.frames_per_step == 0,
            f"`model.reference_frames` {self.reference_frames} must be a multiple of `model.frames_per_step`",
        )


@dataclass(frozen=True)
class VocoderConfig:
    """The network that makes waves of mel frames, and the discriminators that it is trained against."""

    width: int = 256
    blocks: int = 6
    pitch_width: int = 128
    pitch_blocks: int = 3
    discriminator_width: int = 12  # channels of the widest views; they grow as the views narrow
    slice_frames: int = 64  # mel frames of a clip that are trained on at once
    discriminators_after: int = 10_000  # steps by spectra alone
    adversarial_loss: float = 0.2
    feature_matching_loss: float = 1.0

    def __post_init__(self) -> None:
        _require_positive("vocoder", self, "width", "blocks", "pitch_width", "pitch_blocks", "discriminator_width")
        _require_no_negative("vocoder", self, "discriminators_after", "adversarial_loss", "feature_matching_loss")


@dataclass(frozen=True)
class DataConfig:
    """Where the recordings are, how they are read and how batches are formed."""

    train_data: str = ""
    val_data: str = ""  # empty: `val_clips` clips are held out of the training folder
    val_clips: int = 16
    cache_dir: str = ""  # empty: the user's cache folder
    language: str = "en"
    front_end: str = "phonemes"  # or "characters"
    trim_silence: bool = True
    min_seconds: float = 0.4
    max_seconds: float = 15.0
    min_clips: int = 2
    batch_size: int = 16
    buckets: int = 6  # most batch shapes there may be
    static_shapes: bool = True
    num_workers: int = 0  # 0: as many as there are cores to decode with, one to form batches with
    reference_gain_db: float = 6.0  # a reference is made louder or softer by up to this, so that level is no voice
    pipeline_buffer_size: int = 50
    prefetch: int = 0  # most batches ready on the model device; 0: by batch size
    data_gpu: int | None = None  # as nvidia-smi numbers them; None: not given
    model_gpu: int | tuple[int, ...] | None = None  # several: each trains on its share of every batch
    processes: int = 1  # that train together, each on its own devices; told by the cluster
    virtual_devices: int = 0  # parts of the CPU that stand in for GPUs
    memory_isolation: bool = False
    data_gpu_memory: int = 0  # MB, with memory_isolation; 0: all that the card has, less what CUDA itself needs
    model_gpu_memory: int = 0
    pipeline: str = ""  # one of PIPELINES; empty: split where one device prepares for others, else buffered
    model_start_delay: float = 2.0  # shortest wait before the first step where one prepares for others, seconds
    stall_timeout: float = 120.0  # seconds without a batch after which a run ends

    def __post_init__(self) -> None:
        _require(
            self.language in LANGUAGES, f"`data.language` is {self.language!r}; choose one of {', '.join(LANGUAGES)}"
        )
        _require(
            self.front_end in ("phonemes", "characters"),
            f"`data.front_end` is {self.front_end!r}; choose phonemes or characters",
        )
        _require(
            self.pipeline in ("", *PIPELINES), f"`data.pipeline` is {self.pipeline!r}; choose {', '.join(PIPELINES)}"
        )
        _require(
            0 <= self.reference_gain_db <= 40,
            f"`data.reference_gain_db` is {self.reference_gain_db}; it must lie between 0 and 40",
        )
        for name, longest in (("model_start_delay", 3600), ("stall_timeout", 86_400)):
            _require(
                0 <= getattr(self, name) <= longest,
                f"`data.{name}` is {getattr(self, name)}; it must lie between 0 and {longest} seconds",
            )
        if isinstance(self.model_gpu, list | tuple) and len(self.model_gpu) < 2:
            object.__setattr__(self, "model_gpu", next(iter(self.model_gpu), None))
        elif isinstance(self.model_gpu, list):
            object.__setattr__(self, "model_gpu", tuple(self.model_gpu))
        for name, numbers in (("data_gpu", (self.data_gpu,)), ("model_gpu", self.model_gpus)):
            for number in numbers:
                _require(
                    number is None or number >= 0, f"`data.{name}` is {number}; give an id as in nvidia-smi, or none"
                )
        for name, most in (
            ("prefetch", 1024),
            ("processes", 4096),
            ("num_workers", 1024),
            ("pipeline_buffer_size", 10_000),
            ("batch_size", 65_536),
        ):
            _require(getattr(self, name) <= most, f"`data.{name}` is {getattr(self, name)}; it can be at most {most}")
        _require_positive(
            "data", self, "stall_timeout", "batch_size", "buckets",
            "pipeline_buffer_size", "min_clips", "processes",
        )  # fmt: skip
        _require_no_negative(
            "data", self, "num_workers", "val_clips", "prefetch", "data_gpu_memory", "model_gpu_memory"
        )
        _require(
            0 < self.min_seconds < self.max_seconds,
            f"`data.min_seconds` {self.min_seconds} must be positive and less than `data.max_seconds` "
            f"{self.max_seconds}",
        )

    @property
    def model_gpus(self) -> tuple[int, ...]:
        """The ids of all GPUs that train; none where none is given."""
        if self.model_gpu is None:
            return ()
        return self.model_gpu if isinstance(self.model_gpu, tuple) else (self.model_gpu,)

    @property
    def gpus(self) -> tuple[int, ...]:
        """The ids of all GPUs in the order in which TensorFlow sees them; none where too few are given to name roles.

        The one that prepares comes first; last among several processes, whose collective operations take the first.
        """
        if self.data_gpu is not None and self.model_gpus:
            own = (self.data_gpu,)
            return (*self.model_gpus, *own) if self.processes > 1 else (*own, *self.model_gpus)
        if self.data_gpu is not None:
            return ()
        return self.model_gpus if len(self.model_gpus) > 1 else ()

    @property
    def replicas(self) -> int:
        """How many devices of one process train, each on `batch_size` clips."""
        return max(1, len(self.model_gpus))


@dataclass(frozen=True)
class TrainingConfig:
    """The optimisation and its cadence. The first limit reached ends the run; 0 epochs or minutes mean no limit."""

    checkpoint_dir: str = "checkpoints"
    max_steps: int = 200_000
    epochs: int = 0
    max_minutes: float = 0.0
    clear_loss: float = 0.0  # held-out mel loss from which on a run settles and ends; 0: it goes on to its limits
    lr: float = 2e-3
    warmup_steps: int = 100
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    ema_decay: float = 0.998
    target: str = "speech"  # one of TARGETS
    duration_loss: float = 0.1
    prior_loss: float = 1.0
    pitch_loss: float = 0.1
    flow_loss: float = 0.2
    flat_start_sweeps: int = 8  # rounds of alignment by token averages before the first step
    flat_start_clips: int = 256
    guide_steps: int = 600  # steps over which those averages still help the alignment search
    grad_accum: int = 1  # parts of `data.batch_size` clips that make up one optimizer step
    auto_batch: bool = False  # smaller parts, more of them, when memory runs out
    mixed_precision: str = "float32"  # what layers compute in; weights are float32
    max_bad_steps: int = 10  # non-finite steps in a row that end a run
    early_stop: int = 0  # validations without a better loss that end a run; 0: never
    init_from: str = ""  # a checkpoint whose weights a new run starts with
    freeze: str = ""  # weights that do not learn: patterns like text/*, separated by commas
    xla: str = "auto"  # one of XLA; auto: on for GPUs
    seed: int = 0
    log_every: int = 25
    val_every: int = 500
    sample_every: int = 1000  # 0: never
    eval_every: int = 0  # 0: never
    save_every: int = 500
    keep: int = 3  # checkpoints kept besides the best

    def __post_init__(self) -> None:
        _require(
            self.mixed_precision in PRECISIONS,
            f"`training.mixed_precision` is {self.mixed_precision!r}; choose {', '.join(PRECISIONS)}",
        )
        _require(self.xla in XLA, f"`training.xla` is {self.xla!r}; choose {', '.join(XLA)}")
        _require(self.target in TARGETS, f"`training.target` is {self.target!r}; choose {', '.join(TARGETS)}")
        kind = TARGETS[self.target]
        _require(
            kind.mixes_precision or self.mixed_precision == "float32",
            f"`training.mixed_precision` is {self.mixed_precision}; a {kind.title} is trained in float32",
        )
        for name in ("early_stop", "clear_loss"):
            _require(
                kind.loss_tells_best or not getattr(self, name),
                f"`training.{name}` goes by the held-out loss, which does not tell how good a {kind.title} is; "
                "it must be 0 here",
            )
        _require(
            math.isfinite(self.max_minutes),
            f"`training.max_minutes` is {self.max_minutes}; give a number of minutes, or 0 for no limit",
        )
        _require_no_negative(
            "training", self, "epochs", "max_minutes", "clear_loss", "warmup_steps", "flat_start_sweeps", "guide_steps",
            "early_stop", "sample_every", "eval_every", "duration_loss", "prior_loss", "pitch_loss", "flow_loss",
        )  # fmt: skip
        _require_positive(
            "training", self, "lr", "clip_norm", "max_steps", "flat_start_clips", "grad_accum", "max_bad_steps",
            "log_every", "val_every", "save_every", "keep",
        )  # fmt: skip
        _require(self.lr < 1, f"`training.lr` is {self.lr}; it must be less than 1")
        _require(0 <= self.seed < 2**31, f"`training.seed` is {self.seed}; it must lie between 0 and 2147483647")
        _require(0 <= self.ema_decay < 1, f"`training.ema_decay` is {self.ema_decay}; it must lie in [0, 1)")


@dataclass(frozen=True)
class XTTSConfig:
    """All settings of a run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    audio: AudioConfig = field(default_factory=AudioConfig)
    vocoder: VocoderConfig = field(default_factory=VocoderConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        needed = math.ceil((LONGEST_WINDOW + self.audio.n_fft) / self.audio.hop_samples) + 1
        _require(
            self.vocoder.slice_frames >= needed,
            f"`vocoder.slice_frames` is {self.vocoder.slice_frames}; with this audio it must be {needed} or more",
        )
        _require(
            self.data.processes == 1 or not self.training.auto_batch,
            "`training.auto_batch` is for one process; lower `data.batch_size` in a cluster",
        )
        _require(
            not self.training.clear_loss or bool(self.data.val_data) or self.data.val_clips > 0,
            "`training.clear_loss` needs held-out clips; set `data.val_data` or `data.val_clips`",
        )

    @property
    def kind(self) -> TargetKind:
        """What is trained."""
        return TARGETS[self.training.target]

    @property
    def device_clips(self) -> int:
        """Clips of one optimizer step on each device that trains."""
        return self.data.batch_size * self.training.grad_accum

    @property
    def step_clips(self) -> int:
        """Clips of one optimizer step, on all devices of all processes together."""
        return self.process_clips * self.data.processes

    @property
    def process_clips(self) -> int:
        """Clips of one optimizer step on all devices of one process."""
        return self.device_clips * self.data.replicas
