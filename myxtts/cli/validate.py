"""`myxtts validate`."""

import argparse
import dataclasses
import json

from rich.console import Console

from myxtts.cli.settings import configure
from myxtts.devices import check_request
from myxtts.diagnostics.validate import NOT_RUN, validate


def run(options: argparse.Namespace) -> int:
    """Runs the five sections and prints a line for each check, or one JSON document."""
    flags = vars(options)
    if "data.data_gpu" not in flags and "data.model_gpu" not in flags:
        flags |= {"data.data_gpu": 0, "data.model_gpu": 1}
    config, _ = configure(options)
    check_request(config.data)
    console = Console(stderr=bool(options.json))

    def say(words: str) -> None:
        if not options.json:
            console.print(words, highlight=False, markup=False, soft_wrap=True)

    sections = []
    for number, section in enumerate(validate(config.data), 1):
        sections.append(section)
        say(f"{number}. {section.name}")
        for check in section.checks:
            say(f"   {'✅' if check.passed else '❌'} {check.name}" + (f": {check.detail}" if check.detail else ""))
    failures = sum(not check.passed for section in sections for check in section.checks)
    virtual = config.data.virtual_devices
    if options.json:
        document = {
            "passed": failures == 0,
            "failures": failures,
            "virtual_devices": virtual,
            "sections": [dataclasses.asdict(section) for section in sections],
        }
        print(json.dumps(document))
    elif failures:
        skipped = sum(check.detail == NOT_RUN for section in sections for check in section.checks)
        say(f"❌ {failures - skipped} validation checks failed" + (f", {skipped} not run" if skipped else ""))
    else:
        say("🎉 All validation checks passed!")
        say("Your system is ready for dual-GPU training.")
        if virtual:
            say(f"   (on {virtual} virtual devices: this proves the way through the code, not a GPU)")
    return 1 if failures else 0
