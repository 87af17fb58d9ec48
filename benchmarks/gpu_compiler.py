"""XLA's GPU compiler without a GPU: programs in, what a card would be given out. Runs in an environment of its own.

    .venv-gpu/bin/python benchmarks/gpu_compiler.py --card a100 PROGRAM.hlo.pb…

Prints one JSON document: for each program its kernels and launches, loops, conditionals, bytes, operations and the
memory that it holds. The compiler is that of JAX's CUDA plugin, which is near TensorFlow's own but not the same;
nothing is run or timed.
"""

import argparse
import functools
import json
import os
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

os.environ["JAX_PLATFORMS"] = "cpu"
# As training sets it (`devices.py`); and without a card there is nothing to tune Triton's matrix products on.
os.environ["XLA_FLAGS"] = "--xla_allow_excess_precision=false --xla_gpu_enable_triton_gemm=false"

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import _jax, xla_client
from jax._src.lib.mlir import ir


class Card(NamedTuple):
    """What the compiler asks about a card, from its data sheet."""

    name: str
    capability: tuple[int, int]
    processors: int
    lanes: int  # float32 units of a processor
    gigahertz: float
    bandwidth: float  # bytes a second
    memory: int
    cache: int
    shared: int  # bytes of a processor
    shared_most: int  # of one block
    threads: int  # of a processor
    half_peak: float  # float16 multiplications and additions a second, by tensor cores


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
CARDS = {
    "a100": Card(
        "NVIDIA A100-SXM4-40GB",
        (8, 0),
        108,
        64,
        1.41,
        1.555e12,
        40 * GIB,
        40 * MIB,
        164 * KIB,
        163 * KIB,
        2048,
        312e12,
    ),
    "rtx4090": Card(
        "NVIDIA GeForce RTX 4090",
        (8, 9),
        128,
        128,
        2.52,
        1.008e12,
        24 * GIB,
        72 * MIB,
        100 * KIB,
        99 * KIB,
        1536,
        165.2e12,
    ),
}


def describe_target(card: Card) -> str:
    """The card in the compiler's own words."""
    figures = {
        "threads_per_block_limit": 1024, "threads_per_warp": 32, "shared_memory_per_block": 48 << 10,
        "block_dim_limit_x": 2**31 - 1, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
        "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
        "core_count": card.processors, "fpus_per_core": card.lanes, "clock_rate_ghz": card.gigahertz,
        "memory_bandwidth": int(card.bandwidth), "device_memory_size": card.memory, "l2_cache_size": card.cache,
        "shared_memory_per_core": card.shared, "shared_memory_per_block_optin": card.shared_most,
        "threads_per_core_limit": card.threads,
    }  # fmt: skip
    major, minor = card.capability
    info = " ".join(f"{name}: {value}" for name, value in figures.items())
    return (
        f"gpu_device_info {{ {info} "
        f"cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: NONE }} }} "
        f'platform_name: "CUDA" dnn_version_info {{ major: 8 minor: 9 patch: 4 }} device_description_str: "{card.name}"'
    )


def open_compiler(card: Card) -> list:
    """Devices that can be compiled for and nothing else."""
    plugin = next(Path(jax.__file__).parent.parent.glob("jax_plugins/xla_cuda12/xla_cuda_plugin.so"))
    interface = xla_client.load_pjrt_plugin_dynamically("cuda", str(plugin))
    xla_client.initialize_pjrt_plugin("cuda")
    topology = xla_client.make_c_api_device_topology(
        interface, "", target_config=describe_target(card), topology="1x1x1"
    )
    return topology._make_compile_only_devices()


def compile_program(program: bytes, devices: list) -> tuple[str, int]:
    """The optimised code as text, and the bytes of its arguments, results and intermediate values at their most."""
    text = _jax.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(program))
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.zeros((1, 1), "int32"))
    with mlir.make_ir_context():
        code = devices[0].client.compile(ir.Module.parse(text), _jax.DeviceList(tuple(devices)), options)
    held = code.get_compiled_memory_stats()
    shared = held.alias_size_in_bytes  # results that take the place of an argument
    most = held.argument_size_in_bytes + held.output_size_in_bytes + held.temp_size_in_bytes - shared
    return code.hlo_modules()[0].to_string(), most


def count_operations(program: bytes) -> float:
    """Additions and multiplications of a program before it is optimised; a loop's body counts once."""
    module = xla_client.XlaComputation(program).get_hlo_module()
    client = jax.devices("cpu")[0].client
    return float(xla_client._xla.hlo_module_cost_analysis(client, module).get("flops", 0.0))


# The text of optimised code

INSTRUCTION = re.compile(r"^\s*(ROOT )?%(\S+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\((.*)$")
COMPUTATION = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
TYPE = re.compile(r"\b(pred|[suf]\d+|bf16|c64|c128|f8\w+)\[([\d,]*)\]")
FREE = frozenset(
    "parameter constant tuple get-tuple-element bitcast after-all optimization-barrier get-dimension-size "
    "while conditional call async-start async-update async-done copy-start copy-done".split()
)
CUTTING = ("dynamic-slice", "slice", "gather")


@dataclass
class Instruction:
    name: str
    shape: str
    opcode: str
    operands: list[str]
    rest: str
    root: bool


@dataclass
class Totals:
    """What a computation and everything that it calls comes to."""

    kernels: int = 0
    launches: int = 0
    bytes: int = 0
    conditionals: int = 0
    loops: list[int | None] = field(default_factory=list)  # rounds; None where they are not known
    libraries: Counter = field(default_factory=Counter)

    def add(self, other: "Totals", rounds: int = 1) -> None:
        self.kernels += other.kernels
        self.launches += rounds * other.launches
        self.bytes += rounds * other.bytes
        self.conditionals += other.conditionals
        self.loops += other.loops
        self.libraries += other.libraries


def size_of(shape: str) -> int:
    """Bytes of a shape, or of a tuple of them."""
    found = 0
    for kind, axes in TYPE.findall(shape):
        width = 8 if kind == "pred" else int(re.search(r"\d+", kind)[0])
        found += width // 8 * int(np.prod([int(axis) for axis in axes.split(",") if axis], dtype=np.int64))
    return found


class Code:
    """Optimised code, read once."""

    def __init__(self, text: str):
        self._computations: dict[str, list[Instruction]] = {}
        self._entry = ""
        current: list[Instruction] = []
        for line in text.splitlines():
            if head := COMPUTATION.match(line):
                current = self._computations[head[2]] = []
                self._entry = head[2] if head[1] else self._entry
            elif found := INSTRUCTION.match(line):
                root, name, shape, opcode, rest = found.groups()
                arguments = rest[: rest.index(")")] if ")" in rest else rest
                operands = re.findall(r"%([^\s,()]+)", arguments)
                current.append(Instruction(name, shape, opcode, operands, rest, bool(root)))

    def count(self) -> Totals:
        return self._count(self._entry)

    @functools.cache  # noqa: B019 (one Code a program)
    def _count(self, name: str) -> Totals:
        totals, here = Totals(), {one.name: one for one in self._computations[name]}
        for one in here.values():
            called = [target for target in re.findall(r"%([^\s,(){}]+)", one.rest) if target in self._computations]
            if one.opcode == "while":
                known = re.search(r'known_trip_count":\{"n":"(\d+)"', one.rest)
                rounds = int(known[1]) if known else None
                totals.loops.append(rounds)
                body = re.search(r"body=%([^\s,]+)", one.rest)[1]
                totals.add(self._count(body), rounds or 1)
            elif one.opcode == "conditional":
                totals.conditionals += 1
                for branch in called:
                    totals.add(self._count(branch))
            elif one.opcode == "call":
                for target in called:
                    totals.add(self._count(target))
            if one.opcode not in FREE:
                totals.kernels += 1
                totals.launches += 1
                totals.bytes += self._bytes(one, here)
                if library := re.search(r'custom_call_target="([^"]*)"', one.rest):
                    totals.libraries[library[1]] += 1
        return totals

    def _bytes(self, one: Instruction, here: dict[str, Instruction]) -> int:
        """What a kernel reads and writes; of an operand that it only cuts pieces out of, the pieces."""
        read = [size_of(here[operand].shape) if operand in here else 0 for operand in one.operands]
        written = size_of(one.shape)
        if one.opcode == "custom-call":  # its workspace is not counted
            written = max((size_of(part) for part in re.findall(r"\w+\[[\d,]*\]", one.shape)), default=0)
        if one.opcode != "fusion":
            return sum(read) + written
        body = self._computations[re.search(r"calls=%([^\s,]+)", one.rest)[1]]
        root = next(part for part in body if part.root)
        for parameter in (part for part in body if part.opcode == "parameter"):
            place = int(re.match(r"(\d+)", parameter.rest)[1])
            users = [part for part in body if parameter.name in part.operands]
            if users and all(user.opcode in CUTTING and user.operands[0] == parameter.name for user in users):
                read[place] = sum(size_of(user.shape) for user in users)
            if root.opcode == "dynamic-update-slice" and root.operands[0] == parameter.name:  # written in place
                read[place] = 0
                update = next(part for part in body if part.name == root.operands[1])
                written = size_of(update.shape)
        return sum(read) + written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--card", choices=CARDS, default="a100")
    parser.add_argument("--keep", action="store_true", help="write the optimised code beside each program")
    options = parser.parse_args()
    card, reports = CARDS[options.card], {}
    devices = open_compiler(card)
    for path in options.programs:
        begin, program = time.perf_counter(), path.read_bytes()
        text, held = compile_program(program, devices)
        if options.keep:
            path.with_suffix(f".{options.card}.txt").write_text(text)
        found = Code(text).count()
        reports[path.name] = {
            "kernels": found.kernels,
            "launches": found.launches,
            "loops": found.loops,
            "conditionals": found.conditionals,
            "bytes": found.bytes,
            "held": held,
            "operations": count_operations(program),
            "libraries": dict(found.libraries),
            "compile_seconds": time.perf_counter() - begin,
        }
    peak = 2 * card.processors * card.lanes * card.gigahertz * 1e9
    document = {"card": card.name, "bandwidth": card.bandwidth, "peak": peak, "half_peak": card.half_peak}
    print(json.dumps({**document, "programs": reports}))


if __name__ == "__main__":
    main()
