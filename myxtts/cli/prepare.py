"""`myxtts prepare`."""

import argparse
import json
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from myxtts.cli.display import counting_display
from myxtts.cli.flags import in_flags
from myxtts.cli.settings import configure
from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.data.cache import cache_root, learn_tokenizer, prepare, prepare_shard, require_clips
from myxtts.data.inspect import ClipView, inspect_clip
from myxtts.data.pack import REJECTED, Pack
from myxtts.data.report import report, shapes_and_padding
from myxtts.data.shards import Shard
from myxtts.errors import UsageError

SPEAKERS_SHOWN = 10
BAR_WIDTH = 40


def run(options: argparse.Namespace) -> int:
    """Checks the dataset, builds its cache, prints the report, its JSON, or one clip."""
    config, _ = configure(options)
    folder = Path(config.data.train_data)
    if options.picture:
        _check_picture(Path(options.picture), folder, options.show)
    console = Console(stderr=bool(options.json))
    if options.shard is not None:
        return _prepare_shard(folder, config, options, console)
    if options.show is not None:
        with counting_display(console) as progress:
            pack = prepare(folder, config, progress)
        return _show_clip(folder, pack, config, options)
    if not options.json:
        require_clips(prepare_and_report(folder, config, console), config)
        return 0
    with counting_display(console) as progress:
        pack = prepare(folder, config, progress)
    print(json.dumps(report(pack)))
    require_clips(pack, config)
    return 0


def _prepare_shard(folder: Path, config: XTTSConfig, options: argparse.Namespace, console: Console) -> int:
    """Checks one of several parts of a dataset."""
    if options.show is not None:
        raise UsageError("--shard prepares a part of the clips and --show looks at one; give one of them")
    shard = Shard.parse(options.shard)
    with counting_display(console) as progress:
        accepted, listed = prepare_shard(folder, config, shard, progress)
    if options.json:
        print(json.dumps({"shard": shard.number, "shards": shard.of, "listed": listed, "accepted": accepted}))
        return 0
    console.print(
        f"shard {shard.number} of {shard.of}: {accepted} of {listed} clips accepted; when all are there, "
        f"myxtts prepare {folder} joins them",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    return 0


def prepare_and_report(folder: Path, config: XTTSConfig, console: Console) -> Pack:
    """Prepares a folder with a progress bar and prints what was accepted and what was not."""
    with counting_display(console) as progress:
        pack = prepare(folder, config, progress)
    facts = report(pack)

    def say(words: str) -> None:
        console.print(words, highlight=False, markup=False, soft_wrap=True)

    say(f"{facts['accepted']} of {pack.listed} clips accepted, {facts['hours']:.2f} hours")
    for title in ("speakers", "languages"):
        say(f"   {title}: {_counted(facts[title])}")
    if len(pack):
        say(f"   recordings: {_counted(facts['sources'])}; the model hears {pack.sample_rate} Hz, 1 channel")
        shapes, padding = shapes_and_padding(pack, config)
        say(f"   batches of {config.step_clips}: {shapes} shapes, {padding:.1%} padding")
        most = max(bar["clips"] for bar in facts["lengths"])
        for bar in facts["lengths"]:
            span = f"{bar['from']:g}–{bar['to']:g} s"
            say(f"   {span:>11} {'▇' * round(BAR_WIDTH * bar['clips'] / most):<{BAR_WIDTH}} {bar['clips']}")
    if rejected := facts["rejected"]:
        table = Table("reason", "clips", "for example")
        for reason, count in Counter(r["reason"] for r in rejected).most_common():
            example = next(r for r in rejected if r["reason"] == reason)
            table.add_row(reason, str(count), Text(f"{example['id']}: {in_flags(example['detail'], 'prepare')}"))
        console.print(table)
        say(f"every rejected clip: {pack.folder / REJECTED}")
    for warning in facts["warnings"]:
        say(f"⚠️ {warning}")
    return pack


def _counted(counts: dict[str, int]) -> str:
    shown = [f"{name} ({count})" for name, count in list(counts.items())[:SPEAKERS_SHOWN]]
    more = f" and {len(counts) - SPEAKERS_SHOWN} more" if len(counts) > SPEAKERS_SHOWN else ""
    return ", ".join(shown) + more


def _show_clip(folder: Path, pack: Pack, config: XTTSConfig, options: argparse.Namespace) -> int:
    view = inspect_clip(folder, options.show, config, learn_tokenizer([pack], config))
    picture = _draw(view, config, options.picture)
    source = view.source
    facts = {
        "id": view.id,
        "verdict": view.verdict,
        "detail": in_flags(view.detail, "prepare"),
        "recording": view.path,
        "rate": source.rate if source else None,
        "channels": source.channels if source else None,
        "seconds": round(source.seconds, 3) if source else None,
        "speech_seconds": round(view.speech_seconds, 3) or None,
        "speaker": view.speaker,
        "language": view.language,
        "text": view.text,
        "normalised": view.normalised,
        "phonemes" if config.data.front_end == "phonemes" else "characters": list(view.units),
        "tokens": list(view.tokens),
        "picture": str(picture) if picture else None,
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    console = Console()
    for name, value in facts.items():
        words = " ".join(map(str, value)) if isinstance(value, list) else value
        if words not in (None, ""):
            console.print(f"{name:>14}: {words}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _check_picture(target: Path, folder: Path, show: str | None) -> None:
    if show is None:
        raise UsageError("--picture is the picture of one clip; add --show ID")
    if target.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{target} lies in the dataset, which is never changed; choose another --picture")
    if target.is_file() and not target.read_bytes()[:8].startswith(b"\x89PNG"):
        raise UsageError(f"{target} is there and is no PNG; choose another --picture")


def _draw(view: ClipView, config: XTTSConfig, target: str | None) -> Path | None:
    """The clip's mel as a PNG file, where there is sound to draw."""
    if view.wave is None:
        return None
    from myxtts.devices import HOST, select_gpus
    from myxtts.runtime import import_tensorflow

    select_gpus(DataConfig(virtual_devices=1))  # a picture needs no card
    tf = import_tensorflow()
    from myxtts.audio.mel import log_mel
    from myxtts.audio.picture import colour, png

    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in view.id)[:100]
    path = Path(target) if target else cache_root(config) / "pictures" / f"{name}.png"
    with tf.device(HOST):
        mel = log_mel(tf.constant(view.wave[None]), config.audio)[0].numpy()
    try:
        if not target:
            path.parent.mkdir(exist_ok=True)
        path.write_bytes(png(colour(mel.T, scale=4)))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another --picture") from None
    return path
