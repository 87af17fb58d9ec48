"""`myxtts prepare`."""

import argparse
import csv
import dataclasses
import json
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from myxtts.cli.display import counting_display
from myxtts.cli.settings import configure
from myxtts.config.config import XTTSConfig
from myxtts.data.cache import Pack, prepare, require_clips

SHORT_SPEECH_HOURS = 0.25


def run(options: argparse.Namespace) -> int:
    """Checks the dataset, builds its cache, prints the report or its JSON."""
    config, _ = configure(options, **{"data.train_data": options.dataset})
    folder = Path(options.dataset)
    if options.json:
        pack = prepare(folder, config)
        print(json.dumps(report(pack), ensure_ascii=False))
    else:
        pack = prepare_and_report(folder, config, Console())
    require_clips(pack, config)
    return 0


def prepare_and_report(folder: Path, config: XTTSConfig, console: Console) -> Pack:
    """Prepares a folder with a progress bar and prints what was accepted and what was not."""
    with counting_display(console, "checking clips") as progress:
        pack = prepare(folder, config, progress)
    facts = report(pack)
    voices = ", ".join(f"{name} ({count})" for name, count in facts["speakers"].items())
    console.print(
        f"{facts['accepted']} clips accepted, {facts['hours']:.2f} hours, speakers: {voices}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if pack.rejections:
        listing = pack.folder / "rejected.csv"
        with listing.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "reason", "detail"), *(dataclasses.astuple(r) for r in pack.rejections)])
        table = Table("reason", "clips", "for example")
        for reason, count in Counter(r.reason for r in pack.rejections).most_common():
            example = next(r for r in pack.rejections if r.reason == reason)
            table.add_row(reason, str(count), Text(f"{example.id}: {example.detail}"))
        console.print(table)
        console.print(f"every rejected clip: {listing}", highlight=False, markup=False, soft_wrap=True)
    for warning in facts["warnings"]:
        console.print(f"⚠️ {warning}", highlight=False, markup=False, soft_wrap=True)
    return pack


def report(pack: Pack) -> dict:
    """The facts of the specification's JSON document."""
    hours = pack.seconds / 3600
    speakers = Counter(clip.speaker for clip in pack.clips)
    warnings = []
    if len(speakers) == 1:
        warnings.append("one speaker only: the model learns this voice and cannot clone another from a reference")
    if hours < SHORT_SPEECH_HOURS:
        warnings.append(f"{hours * 60:.1f} minutes of speech are little; below 15 minutes expect an unclear voice")
    return {
        "accepted": len(pack.clips),
        "hours": round(hours, 4),
        "speakers": dict(speakers),
        "languages": dict(Counter(clip.language for clip in pack.clips)),
        "rejected": [dataclasses.asdict(rejection) for rejection in pack.rejections],
        "warnings": warnings,
        "cache": str(pack.folder),
    }
