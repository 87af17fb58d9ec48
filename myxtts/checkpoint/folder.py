"""Everything a run needs to resume or to speak, in one folder without pickles.

In: arrays by name, configuration, tokenizer, voices and counters.
Out: `RUN/step-00000500/` with `model.safetensors` (the averaged weights and the model's buffers, all that speaking
     needs), `training.safetensors` (weights, moments, counts), `config.yaml`, `symbols.json`, `voices.npz`,
     `state.json`; `RUN/latest` and `RUN/best` point to one of them.
"""

import dataclasses
import json
import math
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.checkpoint import earlier
from myxtts.checkpoint.state import RunState
from myxtts.checkpoint.weights import (
    AVERAGE,
    MOMENTS,
    PARAMETERS,
    only_resumes,
    part_of,
    read_arrays,
    under,
    write_arrays,
)
from myxtts.config.config import XTTSConfig
from myxtts.config.load import load, save
from myxtts.errors import RunError, UsageError
from myxtts.files import lock, sync
from myxtts.text.tokenizer import Tokenizer
from myxtts.voice import SHIPPED

FORMAT, EARLIER = 3, 2  # both are read
MODEL, TRAINING = "model.safetensors", "training.safetensors"
OURS = re.compile(r"step-\d{8,}(-\d+)?")  # a step that was reached twice, by going back, has a number at its end
LOCK = ".lock"


@dataclass(frozen=True)
class Checkpoint:
    """The content of one checkpoint folder."""

    config: XTTSConfig
    tokenizer: Tokenizer
    arrays: dict[str, np.ndarray]  # `average/…`, `parameters/…`, `momentum/…`, `velocity/…`; buffers and counts
    voices: dict[str, np.ndarray]  # speaker -> reference mel [frames, n_mels]
    state: RunState


def write_checkpoint(run: Path, checkpoint: Checkpoint, keep: int, best: bool) -> Path:
    """Writes under a temporary name, syncs, moves into place, then points `latest` (and `best`) at it.

    Killed at any moment it leaves `latest` and `best` as they were or as they should be.

    Raises:
        RunError: it could not be written; what was there is kept.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
        name = _free_name(run, checkpoint.state.step)
    except OSError as error:
        raise RunError(f"cannot save a checkpoint in {run}: {error.strerror}") from None
    target, partial = run / name, run / f".{name}.part"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        save(checkpoint.config, partial / "config.yaml")
        symbols = json.dumps(dataclasses.asdict(checkpoint.tokenizer), ensure_ascii=False, indent=1)
        (partial / "symbols.json").write_text(symbols, encoding="utf-8")
        voices = {f"voice_{number}": mel for number, mel in enumerate(checkpoint.voices.values())}
        np.savez(partial / "voices.npz", allow_pickle=False, **voices)
        for held, arrays in _by_file(checkpoint.arrays).items():
            write_arrays(partial / held, arrays)
        files = sorted(partial.iterdir())
        sizes = {file.name: file.stat().st_size for file in files}
        checksums = {file.name: checksum(file) for file in files if file.name != "config.yaml"}  # people edit that one
        state = {"format": FORMAT, "sizes": sizes, "checksums": checksums, "speakers": list(checkpoint.voices)}
        state.update(checkpoint.state.to_document())
        (partial / "state.json").write_text(json.dumps(state), encoding="utf-8")
        for file in (*partial.iterdir(), partial):
            sync(file)
        partial.rename(target)
        sync(run)
        _point(run / "latest", name)
        if best:
            _point(run / "best", name)
        sync(run)
        _rotate(run, keep)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        kept = f"{(run / 'latest').readlink()} is kept" if (run / "latest").is_symlink() else "there is none yet"
        raise RunError(f"cannot save a checkpoint in {run}: {error.strerror}; {kept}") from None
    return target


def _by_file(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """What goes into which file; averaged weights stand there under the parameters' own names."""
    resuming = {name: array for name, array in arrays.items() if only_resumes(name)}
    buffers = {n: a for n, a in arrays.items() if n not in resuming and not n.startswith(f"{AVERAGE}/")}
    files = {MODEL: part_of(arrays, AVERAGE) | under("buffers", buffers)}
    return files | ({TRAINING: resuming} if resuming else {})


def _read_by_file(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The way back."""
    model = read_arrays(path / MODEL)
    buffers = part_of(model, "buffers")
    average = {name: array for name, array in model.items() if not name.startswith("buffers/")}
    resuming = read_arrays(path / TRAINING) if TRAINING in names else {}
    return under(AVERAGE, average) | buffers | resuming


def _free_name(run: Path, step: int) -> str:
    """A name for a checkpoint that no other has: `latest` may point at one of an earlier try at this step."""
    plain = f"step-{step:08d}"
    names = (plain, *(f"{plain}-{number}" for number in range(2, 1000)))
    return next(name for name in names if not (run / name).exists())


@contextmanager
def locked_run(run: Path) -> Iterator[None]:
    """Keeps a run folder for one trainer and clears away what a killed one left half-written.

    Raises:
        UsageError: another trainer has it.
    """
    run.mkdir(parents=True, exist_ok=True)
    with lock(run / LOCK, None) as ours:
        if not ours:
            raise _in_use(run)
        for partial in run.glob(".step-*.part"):
            shutil.rmtree(partial)
        _point_at_best(run)
        yield


def _point(link: Path, name: str) -> None:
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    fresh.replace(link)


def list_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, in the order in which they were written."""
    if not run.is_dir():
        return []
    found = [path for path in run.iterdir() if OURS.fullmatch(path.name) and (path / "state.json").is_file()]
    return sorted(found, key=lambda path: ((path / "state.json").stat().st_mtime_ns, path.name))


def validation_loss(path: Path) -> float:
    """What a checkpoint's weights lost on the held-out clips; infinite where that is not known."""
    try:
        loss = json.loads((path / "state.json").read_text(encoding="utf-8")).get("loss")
    except (OSError, ValueError, AttributeError):
        return math.inf
    return float(loss) if isinstance(loss, int | float) else math.inf


def _point_at_best(run: Path) -> None:
    """Mends `best` where a run was killed between writing a better checkpoint and pointing at it."""
    best = min(list_checkpoints(run), key=validation_loss, default=None)
    if best is not None and validation_loss(best) < validation_loss(run / "best"):
        _point(run / "best", best.name)


def _rotate(run: Path, keep: int) -> None:
    """Deletes all but the `keep` that were written last and those that are pointed at."""
    pinned = {str((run / link).readlink()) for link in ("latest", "best") if (run / link).is_symlink()}
    for path in list_checkpoints(run)[:-keep]:
        if path.name not in pinned:
            doomed = path.rename(run / f".{path.name}.part")  # what a kill leaves of it is cleared away
            shutil.rmtree(doomed)


def refuse_if_in_use(run: Path) -> None:
    """Tells at once what `locked_run` would tell later.

    Raises:
        UsageError: another trainer has it.
    """
    if (run / LOCK).exists():
        with lock(run / LOCK, None) as ours:
            if not ours:
                raise _in_use(run)


def _in_use(run: Path) -> UsageError:
    return UsageError(f"another trainer is at work in {run}; wait for it or choose another `training.checkpoint_dir`")


def find_checkpoint(path: Path, prefer: tuple[str, ...] = ("best", "latest")) -> Path:
    """A checkpoint folder from itself, from the run that holds it, or by the name of one in the package.

    Raises:
        UsageError: there is none.
    """
    if not path.exists():
        path = SHIPPED.get(str(path), path)
    if (path / "state.json").is_file():
        return path
    for name in prefer:
        if (path / name / "state.json").is_file():
            return path / name
    if not path.exists():
        raise UsageError(f"no such checkpoint: {path}; name a run folder, or {' or '.join(SHIPPED)} in the package")
    if others := list_checkpoints(path):
        raise UsageError(f"{path / prefer[-1]} is missing or points nowhere; name a checkpoint: {others[-1]}")
    raise UsageError(f"{path} holds no checkpoint; name the folder of a run, or one of its checkpoints")


def read_checkpoint(path: Path, to_resume: bool = True) -> Checkpoint:
    """Reads a checkpoint folder, or only what speaking and starting another run need of it.

    Raises:
        UsageError: a part is missing, damaged or of another format; it names an intact-looking one beside it.
    """
    try:
        return _read(path, to_resume)
    except FileNotFoundError as error:
        problem = f"the checkpoint {path} lacks {Path(error.filename).name}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"the checkpoint {path} is damaged: {' '.join(str(error).split())}"
    others = [other for other in list_checkpoints(path.resolve().parent) if other != path.resolve()]
    instead = f"; name another one: {others[-1]}" if others else ""
    raise UsageError(problem + instead)


def _read(path: Path, to_resume: bool) -> Checkpoint:
    document = json.loads((path / "state.json").read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        raise ValueError("state.json holds no table of values")
    form = document.get("format")
    if form not in (FORMAT, EARLIER):
        raise UsageError(f"{path} has checkpoint format {form}; this version reads {EARLIER} and {FORMAT}")
    try:
        state = RunState.from_document(document)
    except ValueError as error:
        raise ValueError(f"state.json {error}") from None
    sizes = {name: size for name, size in document["sizes"].items() if to_resume or name != TRAINING}
    checksums = document.get("checksums", {})  # not in older checkpoints
    for name, size in sizes.items():
        if (found := (path / name).stat().st_size) != size:
            raise ValueError(f"{name} has {found} bytes, expected {size}")
        if name in checksums and checksum(path / name) != checksums[name]:
            raise ValueError(f"the content of {name} has changed since it was written")
    symbols = json.loads((path / "symbols.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_document(symbols)
    config = load(path / "config.yaml")
    mels = _read_archive(path / "voices.npz")
    voices = {name: mels[f"voice_{number}"] for number, name in enumerate(document["speakers"])}
    if form == EARLIER:
        arrays = earlier.named(_read_archive(path / "arrays.npz"), config, len(tokenizer.symbols))
    else:
        arrays = _read_by_file(path, sizes)
    read = Checkpoint(config, tokenizer, arrays, voices, state)
    _require_sound(read)
    return read


def checksum(path: Path) -> int:
    """CRC-32 of a file, read piece by piece."""
    found = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found = zlib.crc32(piece, found)
    return found


def _read_archive(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a `.npz` file.

    Raises:
        ValueError: it is damaged.
    """
    try:
        with np.load(path) as held:
            return dict(held)
    except FileNotFoundError:
        raise
    except Exception as error:  # numpy and zipfile raise a dozen kinds for damaged archives
        raise ValueError(f"{path.name}: {error or type(error).__name__}") from None


def _require_sound(checkpoint: Checkpoint) -> None:
    """Refuses what can be read and not be used."""
    if not checkpoint.tokenizer.languages:
        raise ValueError("symbols.json names no language")
    if not checkpoint.voices and checkpoint.config.kind.speaks:
        raise ValueError("state.json names no speaker")
    n_mels = checkpoint.config.audio.n_mels
    if any(mel.ndim != 2 or mel.shape[1] != n_mels for mel in checkpoint.voices.values()):
        raise ValueError(f"voices.npz holds mels that have not {n_mels} bands")
    for part in (AVERAGE, PARAMETERS, *MOMENTS):
        for name, array in part_of(checkpoint.arrays, part).items():
            if array.dtype not in (np.float32, np.float16):
                raise ValueError(f"{part}/{name} is of type {array.dtype}, not float32 or float16")
            if not np.isfinite(array).all():
                raise ValueError(f"{part}/{name} holds what is no number")
