"""The status lines that tell which device does what.

In: a DevicePlan.
Out: lines of text; what is not so is not said.
"""

from myxtts.config.config import DataConfig
from myxtts.devices import DevicePlan, memory_limits


def configured_lines(plan: DevicePlan, data: DataConfig) -> list[str]:
    """After the devices were set up; for a single one only the memory limits, where there are any."""
    limits = _limit_lines(data)
    if not plan.two_devices:
        return ["🎯 Configuring memory limits...", *limits] if limits else []
    device = (lambda label: label) if plan.virtual else (lambda label: f"GPU {label}")
    memory = limits or [f"   Configured memory growth for {role} GPU" for role in ("data", "model")]
    if plan.virtual:
        memory = [f"   Virtual devices: {plan.virtual} parts of the CPU stand in for GPUs"]
    return [
        "🎯 Configuring Multi-GPU Mode...",
        f"   Data Processing GPU: {plan.data_label}",
        f"   Model Training GPU: {plan.model_label}",
        f"   Set visible devices: {device(plan.data_label)} and {device(plan.model_label)}",
        *memory,
        "✅ Multi-GPU configuration completed successfully",
    ]


def _limit_lines(data: DataConfig) -> list[str]:
    """The hard limit of each GPU; nothing where memory grows."""
    limits = memory_limits(data)
    if not limits:
        return []
    found = zip(("data", "model"), data.gpu_pair or (), limits, strict=True)
    return [
        "   Memory isolation enabled",
        *(f"   Memory limit for {role} GPU: {megabytes} MB (GPU {number})" for role, number, megabytes in found),
    ]


def pipeline_lines(plan: DevicePlan, data: DataConfig) -> list[str]:
    """Before the first batch is prepared."""
    prefetching = f"   - Prefetching to {plan.data_device} with buffer_size={data.pipeline_buffer_size}"
    if plan.pipeline == "sequential":
        return [
            f"🐢 Sequential pipeline: {plan.data_device} prepares, then {plan.model_device} trains, without overlap"
        ]
    if not plan.two_devices:
        unused = f"   - Not used: device {data.data_gpu}, because --pipeline buffered keeps both roles on one device"
        return [
            "🚀 Intelligent GPU Pipeline: Single-GPU Buffered Mode",
            f"   - Buffer Size: {data.pipeline_buffer_size}",
            "   - Smart Prefetching: Enabled",
            prefetching,
            *([unused] if data.gpu_pair else []),
        ]
    return [
        "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
        f"   - Data Processing GPU: {plan.data_label}",
        f"   - Model Training GPU: {plan.model_label}",
        *(
            ["   - Both train, each on half of every batch, and prepare in turns"]
            if plan.pipeline == "parallel"
            else []
        ),
        prefetching,
    ]


def model_lines(plan: DevicePlan) -> list[str]:
    """Before the model is made."""
    lines = []
    if plan.two_devices:
        lines.append(f"🎯 Multi-GPU Mode: Model will be placed on {plan.model_device}")
        if not plan.virtual:
            lines.append(f"   (Original GPU {plan.model_label} is now mapped to {plan.model_device.strip('/')})")
    return [*lines, f"Creating model on device: {plan.model_device}"]
