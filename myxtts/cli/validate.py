"""`myxtts validate`."""

import argparse
import dataclasses
import json
from dataclasses import replace

from rich.console import Console

from myxtts.cli.settings import configure
from myxtts.devices import check_request
from myxtts.diagnostics.validate import NOT_RUN, validate


def run(options: argparse.Namespace) -> int:
    """Runs the five sections and prints a line for each check, or one JSON document."""
    data = configure(options)[0].data
    if data.data_gpu is None and data.model_gpu is None:
        data = replace(data, data_gpu=0, model_gpu=1)
    data = replace(data, pipeline="split")
    check_request(data)
    console = Console(stderr=bool(options.json))

    def say(words: str) -> None:
        if not options.json:
            console.print(words, highlight=False, markup=False, soft_wrap=True)

    sections = []
    for number, section in enumerate(validate(data), 1):
        sections.append(section)
        say(f"{number}. {section.name}")
        for check in section.checks:
            say(f"   {'✅' if check.passed else '❌'} {check.name}" + (f": {check.detail}" if check.detail else ""))
    failures = sum(not check.passed for section in sections for check in section.checks)
    virtual = data.virtual_devices
    skipped = sum(check.detail == NOT_RUN for section in sections for check in section.checks)
    if options.json:
        document = {
            "passed": failures == 0,
            "failures": failures - skipped,
            "not_run": skipped,
            "virtual_devices": virtual,
            "sections": [dataclasses.asdict(section) for section in sections],
        }
        print(json.dumps(document))
    elif failures:
        say(f"❌ {failures - skipped} validation checks failed" + (f", {skipped} not run" if skipped else ""))
    else:
        say("🎉 All validation checks passed!")
        say("Your system is ready for dual-GPU training.")
        if virtual:
            say(f"   (on {virtual} virtual devices: this proves the way through the code, not a GPU)")
    return 1 if failures else 0
