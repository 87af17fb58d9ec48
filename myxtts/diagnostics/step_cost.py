"""What a training step asks of a card: launches, bytes, operations and memory, by model size and mel frames of a batch.

In: a model size, or the vocoder.
Out: estimates from code that was compiled for an A100 in float32; nothing of it was measured on a card. The figures are
those of `make gpu-code GPU_CODE_FLAGS="--precisions float32 --cards a100"`, at 16 and at 64 clips (`--rows 64`).
"""

from dataclasses import dataclass

LAUNCH_SECONDS = 5e-6  # of the host for one kernel, as in benchmarks/gpu_code.py
PEAK = 19.5e12  # float32 operations a second of an A100
VECTORS = 3  # besides the weights themselves: their average and the optimizer's two moments, in float32
SPEECH_FEATURES_MB = 127 / (16 * (800 + 256))  # that preparing holds for a mel frame of a clip or its reference
SLICE_FEATURES_MB = 13 / 16  # for a slice that a vocoder is trained on


@dataclass(frozen=True)
class StepCost:
    """One gradient and its update."""

    parameters: float
    launches: int
    fixed_bytes: float  # read and written however small the batch
    frame_bytes: float  # and for each mel frame of it
    frame_operations: float
    fixed_mb: float  # held while the gradient is computed
    frame_mb: float

    @property
    def launch_ms(self) -> float:
        """What the host needs to begin everything."""
        return 1e3 * LAUNCH_SECONDS * self.launches

    def work_ms(self, frames: float, bandwidth: float) -> float:
        """The shortest time in which a card of that memory bandwidth could do the work of so many frames."""
        moving = (self.fixed_bytes + frames * self.frame_bytes) / bandwidth
        return 1e3 * max(moving, frames * self.frame_operations / PEAK)

    def held_mb(self, frames: float) -> float:
        """Memory of a step with so many frames, weights and optimizer counted, waiting batches not."""
        return self.fixed_mb + frames * self.frame_mb + VECTORS * self.parameters_mb

    @property
    def parameters_mb(self) -> float:
        return 4 * self.parameters / 1e6


COSTS = {
    "tiny": StepCost(3.68e6, 1_725, 842e6, 0.322e6, 6.6e6, 15, 0.042),
    "small": StepCost(13.65e6, 2_029, 1_515e6, 0.783e6, 24.3e6, 144, 0.0955),
    "normal": StepCost(38.36e6, 2_253, 3_279e6, 1.538e6, 69.5e6, 518, 0.190),
    "big": StepCost(87.87e6, 2_670, 6_738e6, 2.824e6, 164.6e6, 659, 0.344),
    "vocoder": StepCost(3.53e6, 1_062, 416e6, 3.482e6, 64.1e6, 14, 0.447),  # with its discriminators
}
