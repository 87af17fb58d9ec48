"""What a card is given: featuriser, gradient and update of every size and precision, compiled without a card.

    make gpu-code          or    python benchmarks/gpu_code.py --compiler .venv-gpu/bin/python [--sizes small …]

Prints a table and exits 1 when a limit is broken. A loop whose number of rounds is not known makes the host wait for
the card in every round, and a conditional makes it wait once; a launch costs the host some microseconds. The floor of
a step's time is estimated from the compiled code (the largest of bytes by bandwidth, operations by the peak of their
precision, and launches by 5 µs) and is no measurement. docs/gpu.md tells how to read all of it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from myxtts.config.config import MODEL_SIZES, PRECISIONS
from myxtts.config.load import build
from myxtts.runtime import import_tensorflow

tf = import_tensorflow()

from myxtts.batch import HEAD, SLICE_MARGIN, SPANS  # noqa: E402
from myxtts.models.alignment import _search  # noqa: E402
from myxtts.training.optimizer import OptimizerState  # noqa: E402
from myxtts.training.step import StepState, TrainStep  # noqa: E402
from myxtts.training.targets import make_target  # noqa: E402

ROWS = 16  # clips of a batch, unless asked for otherwise
FRAMES, TOKENS, SYMBOLS = 800, 120, 100
CARDS = ("a100", "rtx4090")
LAUNCH_SECONDS = 5e-6
# Of `small` in float32 on the A100; the zeroes hold for everything.
LIMITS = {"featuriser kernels": 60, "search launches": 1_000, "step launches": 2_500}
# On an RTX 4090 XLA makes one kernel more of each of the 118 rounds of a loop of the search: 1,086 launches, not 968.
LIMITS_OF = {"a100": LIMITS, "rtx4090": {**LIMITS, "search launches": 1_100}}
MOST_MIXED_BYTES = 0.65  # of float32's


def export(function: Callable, arguments: tuple, path: Path) -> None:
    """Writes what XLA's compiler for GPUs is given."""
    compiled = tf.function(function, autograph=False, jit_compile=True)
    program = compiled.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized", platform_name="GPU")
    path.write_bytes(program)


def fix_last(function: Callable, *last: object) -> Callable:
    """The function with its last arguments given; a `partial` or a default would be traced."""
    return lambda *first: function(*first, *last)


def export_run(name: str, values: dict, folder: Path, features: bool, rows: int) -> list[str]:
    """The programs of one kind of run; returns their names."""
    config = build({"data.batch_size": rows, "training.guide_steps": 0, **values})
    target = make_target(config, SYMBOLS, card=True)
    model, featurizer = target.make_model(), target.make_featurizer()
    model.create_variables()
    step = TrainStep(model, target.objective, config.training, compiled=True)
    audio, vocoder = config.audio, config.training.target == "vocoder"
    if vocoder:
        samples = (config.vocoder.slice_frames - 1 + 2 * SLICE_MARGIN) * audio.hop_samples
    else:
        samples = (FRAMES + config.model.reference_frames) * audio.hop_samples
    sound, spans = tf.zeros([rows, samples], tf.int16), tf.ones([rows, SPANS], tf.int64)
    names = []
    if features:
        export(fix_last(featurizer._featurize), (sound, spans), folder / f"features {name}")
        names.append(f"features {name}")
    floats = featurizer(sound, spans)
    frames = config.vocoder.slice_frames if vocoder else FRAMES + TOKENS
    labels = tf.ones([rows, HEAD + frames], tf.int64)
    taken, scale = tf.zeros([], tf.int64), tf.ones([])
    given = step.given()
    given = given._replace(weights=step.parameters.slices(given.weights))

    for adversarial in (False, True) if vocoder else (False,):
        called = f"gradient {name}{' with discriminators' if adversarial else ''}"
        find = fix_last(step.gradient.find, None, featurizer.layout, adversarial)
        export(find, (given, floats, labels), folder / called)
        names.append(called)
    flat = step.weights.read_value()
    state = StepState(OptimizerState(flat, flat, flat, flat, taken), taken, scale, scale, scale)
    export(lambda *values: step.advance(*values), (state, flat, scale), folder / f"update {name}")
    return [*names, f"update {name}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", required=True, help="a Python with jax-cuda12-plugin (make gpu-code makes one)")
    parser.add_argument("--sizes", nargs="+", choices=MODEL_SIZES, default=list(MODEL_SIZES))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--cards", nargs="+", choices=CARDS, default=list(CARDS))
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help=f"clips of a batch (default {ROWS})")
    parser.add_argument("--json", metavar="FILE", help="also write all figures there")
    options = parser.parse_args()
    rows = options.rows
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        runs = {
            f"{size} {precision}": {"model.size": size, "training.mixed_precision": precision}
            for size in options.sizes
            for precision in options.precisions
        }
        runs["vocoder float32"] = {"training.target": "vocoder"}
        names = []
        for name, values in runs.items():
            names += export_run(name, values, folder, features=name.endswith("float32"), rows=rows)
        lengths = tf.fill([rows], TOKENS), tf.fill([rows], FRAMES // 2)
        search = _search.python_function
        export(lambda *given: search(*given), (tf.zeros([rows, TOKENS, FRAMES // 2]), *lengths), folder / "search")
        names.append("search")
        print(f"batch {rows} x {FRAMES} frames x {TOKENS} tokens; vocoder: {rows} slices of 64 frames\n")
        failures, everything = [], {}
        for card in options.cards:
            found = compile_all(options.compiler, card, [folder / name for name in names])
            everything[card] = found
            print_table(found)
            failures += check(card, found["programs"])
    if options.json:
        Path(options.json).write_text(json.dumps(everything, indent=1))
    print("\n".join(f"❌ {failure}" for failure in failures) or "✅ every limit holds")
    return 1 if failures else 0


def compile_all(python: str, card: str, programs: list[Path]) -> dict:
    script = Path(__file__).with_name("gpu_compiler.py")
    done = subprocess.run([python, script, "--card", card, *programs], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the compiler failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def print_table(found: dict) -> None:
    print(f"{found['card']}, estimated from compiled code, nothing was run")
    heads = ("program", "kernels", "launches", "loops", "unknown", "cond.", "MB", "Gop", "floor ms", "held MB")
    print("{:40}{:>9}{:>10}{:>7}{:>9}{:>7}{:>9}{:>9}{:>10}{:>9}".format(*heads))
    for name, one in found["programs"].items():
        peak = found["half_peak"] if "16" in name else found["peak"]
        floor = max(one["bytes"] / found["bandwidth"], one["operations"] / peak, one["launches"] * LAUNCH_SECONDS)
        unknown = sum(rounds is None for rounds in one["loops"])
        print(
            f"{name:40}{one['kernels']:>9,}{one['launches']:>10,}{len(one['loops']):>7}{unknown:>9}"
            f"{one['conditionals']:>7}{one['bytes'] / 1e6:>9,.0f}{one['operations'] / 1e9:>9,.1f}{1e3 * floor:>10.2f}"
            f"{one['held'] / 1e6:>9,.0f}"
        )
    print(flush=True)


def check(card: str, programs: dict) -> list[str]:
    """What breaks a limit, in words."""
    failures = []
    for name, one in programs.items():
        if None in one["loops"]:
            failures.append(f"{card}, {name}: {one['loops'].count(None)} loops without known rounds, 0 allowed")
        if one["conditionals"]:
            failures.append(f"{card}, {name}: {one['conditionals']} conditionals, 0 allowed")
        if name.startswith("features") and one["loops"]:
            failures.append(f"{card}, {name}: {len(one['loops'])} loops, 0 allowed")
    sums = {}
    if "features small float32" in programs:
        sums["featuriser kernels"] = programs["features small float32"]["kernels"]
        sums["step launches"] = sum(programs[f"{part} small float32"]["launches"] for part in ("gradient", "update"))
    sums["search launches"] = programs["search"]["launches"]
    limits = LIMITS_OF[card]
    for what, value in sums.items():
        print(f"{card}, {what}: {value:,} (limit {limits[what]:,})")
        if value > limits[what]:
            failures.append(f"{card}, {what}: {value:,}, at most {limits[what]:,} allowed")
    for name, one in programs.items():
        kind, *words = name.split()
        if kind == "gradient" and words[-1] in ("bfloat16", "float16") and f"gradient {words[0]} float32" in programs:
            ratio = one["bytes"] / programs[f"gradient {words[0]} float32"]["bytes"]
            print(f"{card}, {name}: {ratio:.0%} of float32's bytes")
            if words[0] == "small" and ratio > MOST_MIXED_BYTES:
                failures.append(
                    f"{card}, {name}: {ratio:.0%} of float32's bytes, at most {MOST_MIXED_BYTES:.0%} allowed"
                )
    return failures


if __name__ == "__main__":
    sys.exit(main())
