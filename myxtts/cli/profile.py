"""`myxtts profile`."""

import argparse
import json
import shlex
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from myxtts.cards import find_cards
from myxtts.cli.cluster import greet, refuse_cluster_flags, refuse_what_is_for_one, take_settings
from myxtts.cli.display import counting_display
from myxtts.cli.flags import flag_words, in_flags, typed_flags
from myxtts.cli.settings import configure, require_writable
from myxtts.cluster.cluster import Cluster
from myxtts.cluster.members import find_members
from myxtts.cluster.rendezvous import join, tell_failure
from myxtts.config.config import XTTSConfig
from myxtts.config.load import flatten
from myxtts.data.cache import cache_root
from myxtts.devices import plan_devices, select_gpus, watched_gpus
from myxtts.diagnostics.advice import Way, advise
from myxtts.diagnostics.verdict import Verdict, device_keys, write_verdict
from myxtts.errors import UsageError

USUAL_STEPS, FEWEST_STEPS = 50, 12
MOST_STEPS = 10_000


def run(options: argparse.Namespace) -> int:
    """Measures, advises, reports; writes what was asked for. In a cluster rank 0 reports for all."""
    for flag, file in (("--trace", options.trace), ("--html", options.html)):
        require_writable(flag, file)
    if options.trace and options.html and Path(options.trace).absolute() == Path(options.html).absolute():
        raise UsageError(f"--trace and --html are both {options.html}; name two files")
    config, origin = configure(options)
    steps = USUAL_STEPS if options.num_steps is None else options.num_steps
    if options.run is not None:
        return show_run(options, sorted(origin))
    if not FEWEST_STEPS <= steps <= MOST_STEPS:
        raise UsageError(f"--num-steps is {steps}; choose {FEWEST_STEPS} to {MOST_STEPS}")
    members = find_members(options.cluster, options.rank)
    if members is None:
        refuse_cluster_flags(options)
        return _profile(options, config, origin, steps, None)
    if options.step_parts:
        raise UsageError("--step-parts looks at one process; leave it or --cluster out")
    console = Console(stderr=True)
    say = lambda line: console.print(  # noqa: E731
        in_flags(line, "profile"), highlight=False, markup=False, soft_wrap=True
    )
    try:
        refuse_what_is_for_one(options, config)
    except UsageError as error:
        tell_failure(members, error)
        raise
    greeting = greet(config, origin, only_typed=False, command="profile", steps=steps)
    cluster = join(members, greeting, say, options.cluster_timeout)
    assert cluster is not None
    with cluster:
        return _profile(options, take_settings(cluster, config), origin, steps, cluster)


def _profile(
    options: argparse.Namespace, config: XTTSConfig, origin: Mapping[str, str], steps: int, cluster: Cluster | None
) -> int:
    select_gpus(config.data)
    plan = plan_devices(config.data)
    from myxtts.diagnostics.page import make_page
    from myxtts.diagnostics.profile import Profiler
    from myxtts.diagnostics.ranks import cluster_document, cluster_lines, gather_times
    from myxtts.diagnostics.report import json_document, lane_names, terminal_lines, trace_events
    from myxtts.diagnostics.workload import real_workload

    if cluster:
        from myxtts.training.strategy import join_processes

        join_processes(cluster, plan)
    console = Console(stderr=bool(options.json))
    gpus = watched_gpus(config.data)
    with real_workload(config, steps, cluster) as workload, counting_display(console) as show:
        profile = Profiler(workload, steps, gpus).run(show=show, step_parts=options.step_parts)
        devices = device_keys(workload.devices, find_cards())
    advice, command = advise(profile.measured), command_line(options, config, origin)
    flags = partial(typed_flags, "train")
    document = json_document(profile, advice, command, flags)
    lines = list(terminal_lines(profile, advice, command, flags))
    events = trace_events(profile.overlapped, lane_names(profile))
    if cluster:
        gathered = gather_times(cluster, profile, workload.gradient_bytes)
        if gathered is None:
            console.print("rank 0 reports for all", highlight=False)
            return 0
        times, events = gathered
        document["cluster"] = cluster_document(times)
        lines += ["", *cluster_lines(times)]
    if options.json:
        print(json.dumps(document))
    else:
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    if not cluster:
        keep_verdict(profile.measured.ways, advice.best_way, devices, config)
    if options.trace:
        Path(options.trace).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
    if options.html:
        Path(options.html).write_text(make_page(document, events, profile.cards), encoding="utf-8")
    return 0


def keep_verdict(ways: Mapping[str, Way], best_way: str, devices: tuple[str, ...], config: XTTSConfig) -> None:
    """Leaves what was measured of the ways to use the devices in the cache folder, where `train` looks for it."""
    step_ms = {name: 1e3 * way.step_seconds for name, way in ways.items() if way.measured}
    today = datetime.now().date().isoformat()
    root = cache_root(config)
    try:
        write_verdict(root, config, Verdict(best_way, step_ms, devices, config.data.batch_size, today))
    except OSError as error:
        words = f"⚠️ cannot write {root}: {error.strerror}; train will not know of this profile (see --cache-dir)"
        Console(stderr=True).print(words, highlight=False, markup=False, soft_wrap=True)


def show_run(options: argparse.Namespace, settings: list[str]) -> int:
    """The page of a training run, from what it has logged."""
    from myxtts.diagnostics.page import make_run_page
    from myxtts.diagnostics.runs import read_lines, read_run, run_advice

    others = (options.json, options.trace, options.step_parts, options.num_steps, options.config, *settings)
    if not options.html or any(others):
        raise UsageError("--run goes with --html FILE and nothing else; nothing is measured, a run's log is shown")
    one = read_run(Path(options.run))
    page = make_run_page(one.name, read_lines(Path(options.run)), [in_flags(line, "train") for line in run_advice(one)])
    Path(options.html).write_text(page, encoding="utf-8")
    return 0


def command_line(options: argparse.Namespace, config: XTTSConfig, origin: Mapping[str, str]) -> str:
    """The `train` command that uses the profiled settings."""
    values = flatten(config)
    words = ["myxtts", "train", *(["--config", options.config] if options.config else [])]
    for key in dict.fromkeys(["data.train_data", *(key for key, source in origin.items() if source == "flag")]):
        words += flag_words("train", key, "DIR" if values[key] == "" else values[key])
    return shlex.join(words)
