"""`myxtts validate`."""

import argparse
import dataclasses
import json
from dataclasses import replace

from rich.console import Console

from myxtts.cli.flags import in_flags
from myxtts.cli.settings import configure
from myxtts.config.config import DataConfig
from myxtts.devices import check_request, device_names
from myxtts.diagnostics.checks import Check, Section
from myxtts.diagnostics.validate import validate
from myxtts.errors import UsageError

RULE = "=" * 60


def run(options: argparse.Namespace) -> int:
    """Runs the five sections and prints a line for each check, or one JSON document."""
    data = configure(options)[0].data
    if data.data_gpu is None and data.model_gpu is None:
        data = replace(data, data_gpu=0, model_gpu=1)
    if len(data.model_gpus) > 1:
        raise UsageError("two devices are validated at a time; name one of them as --model-gpu")
    data = replace(data, pipeline="split")
    check_request(data)
    console = Console()

    def say(*lines: str) -> None:
        for line in lines if not options.json else ():
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    say("Dual-GPU Pipeline Validation", RULE)
    sections: list[Section] = []
    for found in validate(data):
        if isinstance(found, Section):
            sections.append(found)
            say(f"{len(sections)}. {found.name}...")
        else:
            say(f"   {'✅' if found.passed else '❌'} {in_flags(found.line, 'validate')}")
    checks = [check for section in sections for check in section.checks]
    if options.json:
        print(json.dumps(_document(data, sections, checks)))
    say(RULE, *_ending(data, checks), RULE)
    return 0 if all(check.passed for check in checks) else 1


def _count(checks: list[Check]) -> tuple[int, int]:
    """Checks that failed by themselves, and checks that were not run because of them."""
    not_run = sum(bool(check.needs) for check in checks)
    return sum(not check.passed for check in checks) - not_run, not_run


def _ending(data: DataConfig, checks: list[Check]) -> list[str]:
    failures, not_run = _count(checks)
    if failures:
        words = f"❌ {failures} validation check{'s' * (failures > 1)} failed"
        return [words + (f", {not_run} not run" if not_run else ""), "Each failed check says what to do."]
    lines = ["🎉 All validation checks passed!", "Your system is ready for dual-GPU training."]
    names = device_names(data)
    if data.virtual_devices and names:
        lines += [
            f"This was on virtual devices ({' and '.join(names)}, parts of the CPU). It proves that model, placement,",
            "transfer and pipeline work in this installation; it proves nothing about GPUs, their driver or their",
            "memory. With GPUs, leave --virtual-devices out.",
        ]
    return lines


def _document(data: DataConfig, sections: list[Section], checks: list[Check]) -> dict[str, object]:
    failures, not_run = _count(checks)
    return {
        "passed": not failures,
        "failures": failures,
        "not_run": not_run,
        "virtual_devices": data.virtual_devices,
        "devices": device_names(data),
        "sections": [
            {"name": section.name, "checks": [_check_document(check) for check in section.checks]}
            for section in sections
        ],
    }


def _check_document(check: Check) -> dict[str, object]:
    words = {"detail": in_flags(check.detail, "validate"), "line": in_flags(check.line, "validate")}
    return {**dataclasses.asdict(check), **words}
