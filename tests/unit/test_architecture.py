"""The tree tells the story: a module imports only from the rooms before its own."""

import ast
from pathlib import Path

import myxtts

ROOMS = [
    "errors", "files", "voice", "config", "cards", "compiled", "devices", "batch", "text", "audio", "scoring", "data",
    "pipeline", "models", "training", "inference", "diagnostics", "demo", "utils", "cli", "__main__",
]  # fmt: skip


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("myxtts."):
            names.add(node.module.split(".")[1])
    return names


def test_modules_import_only_from_earlier_rooms():
    root = Path(myxtts.__file__).parent
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        later = ROOMS[ROOMS.index(room) + 1 :]
        assert not imported_rooms(path) & set(later), path
