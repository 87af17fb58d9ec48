"""The status lines that tell which device does what.

In: a DevicePlan.
Out: lines of text; what is not so is not said.
"""

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.devices import DevicePlan, and_last, memory_limits


def configured_lines(plan: DevicePlan, data: DataConfig) -> list[str]:
    """After the devices were set up; for a single one only the memory limits, where there are any."""
    limits = _limit_lines(data)
    if not plan.two_devices and not plan.shares_batches:
        return ["🎯 Configuring memory limits...", *limits] if limits else []
    if not plan.uses_gpu and not plan.virtual:  # the CPUs of several processes
        return []
    shown = [label if plan.virtual else f"GPU {label}" for label in _labels(plan)]
    roles = (["data"] if plan.two_devices else []) + ["model"]
    memory = limits or [f"   Configured memory growth for {role} GPU" for role in roles]
    if plan.virtual:
        memory = [f"   Virtual devices: {plan.virtual} parts of the CPU stand in for GPUs"]
    return [
        "🎯 Configuring Multi-GPU Mode...",
        *_role_lines(plan, "   "),
        f"   Set visible devices: {and_last(shown)}",
        *memory,
        "✅ Multi-GPU configuration completed successfully",
    ]


def _labels(plan: DevicePlan) -> list[str]:
    """What a person calls the devices, the one that prepares first."""
    return ([plan.data_label] if plan.two_devices else []) + plan.model_label.split(", ")


def _role_lines(plan: DevicePlan, indent: str) -> list[str]:
    many = "s" if "," in plan.model_label else ""
    data = [f"{indent}Data Processing GPU: {plan.data_label}"] if plan.two_devices else []
    return [*data, f"{indent}Model Training GPU{many}: {plan.model_label}"]


def _limit_lines(data: DataConfig) -> list[str]:
    """The hard limit of each GPU; nothing where memory grows."""
    limits = memory_limits(data)
    if not limits:
        return []
    return [
        "   Memory isolation enabled",
        *(
            f"   Memory limit for {'data' if number == data.data_gpu else 'model'} GPU: {megabytes} MB (GPU {number})"
            for number, megabytes in zip(data.gpus, limits, strict=True)
        ),
    ]


def pipeline_lines(plan: DevicePlan, config: XTTSConfig) -> list[str]:
    """Before the first batch is prepared."""
    data = config.data
    prefetching = f"   - Prefetching to {plan.data_device} with buffer_size={data.pipeline_buffer_size}"
    if plan.pipeline == "sequential":
        return [
            f"🐢 Sequential pipeline: {plan.data_device} prepares, then {plan.model_device} trains, without overlap"
        ]
    if not plan.two_devices and not plan.shares_batches:
        unused = f"   - Not used: device {data.data_gpu}, because --pipeline buffered keeps both roles on one device"
        return [
            "🚀 Intelligent GPU Pipeline: Single-GPU Buffered Mode",
            f"   - Buffer Size: {data.pipeline_buffer_size}",
            "   - Smart Prefetching: Enabled",
            prefetching,
            *([unused] if data.gpus else []),
        ]
    return [
        "🚀 Intelligent GPU Pipeline: Multi-GPU Mode",
        *_role_lines(plan, "   - "),
        *_share_lines(plan, config),
        prefetching,
    ]


def _share_lines(plan: DevicePlan, config: XTTSConfig) -> list[str]:
    """How a batch is shared, where it is."""
    if not plan.shares_batches:
        return []
    count, clips, all_clips = len(plan.training_devices), config.process_clips, config.step_clips
    preparing = "" if plan.two_devices and not plan.prepares_while_training else ", each prepares its own"
    processes = f"{plan.processes} processes x " if plan.processes > 1 else ""
    devices = f"{count} device{'s' * (count > 1)}"
    return [f"   - Each step: {processes}{devices} x {clips // count} clips = {all_clips} clips{preparing}"]


def model_lines(plan: DevicePlan) -> list[str]:
    """Before the model is made."""
    lines = []
    if plan.two_devices or plan.shares_batches:
        mapped = list(zip(plan.model_label.split(", "), (plan.model_device, *plan.helpers), strict=True))
        lines.append(f"🎯 Multi-GPU Mode: Model will be placed on {and_last([device for _, device in mapped])}")
        if plan.trains_on_gpu:
            lines += [f"   (Original GPU {label} is now mapped to {device.strip('/')})" for label, device in mapped]
    return [*lines, f"Creating model on device: {', '.join((plan.model_device, *plan.helpers))}"]
