"""The tree tells the story: a module imports only from the rooms before its own."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import myxtts

ROOMS = [
    "errors", "files", "voice", "config", "cards", "compiled", "runtime", "devices", "cluster", "batch", "text",
    "audio", "scoring", "data", "pipeline", "models", "checkpoint", "inference", "training", "diagnostics", "demo",
    "utils", "cli", "__main__",
]  # fmt: skip


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("myxtts."):
            names.add(node.module.split(".")[1])
    return names


@pytest.mark.parametrize("module", ["myxtts.inference.synthesizer", "myxtts.checkpoint.packaged"])
def test_speaking_loads_nothing_of_training(module):
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith('myxtts.training')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr


def test_modules_import_only_from_earlier_rooms():
    root = Path(myxtts.__file__).parent
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        later = ROOMS[ROOMS.index(room) + 1 :]
        assert not imported_rooms(path) & set(later), path
