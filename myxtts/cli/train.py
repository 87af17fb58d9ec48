"""`myxtts train`."""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from myxtts.cards import find_cards
from myxtts.checkpoint.folder import find_checkpoint, list_checkpoints, refuse_if_in_use
from myxtts.cli.cluster import (
    Restarts,
    greet,
    holds_run,
    prepare_together,
    refuse_cluster_flags,
    refuse_what_is_for_one,
    resume_if_possible,
    take_settings,
)
from myxtts.cli.devices import configured_lines, model_lines, pipeline_lines
from myxtts.cli.display import poor_setting_lines, report_lines, training_display
from myxtts.cli.flags import in_flags
from myxtts.cli.prepare import prepare_and_report
from myxtts.cli.settings import configure, describe, make_folder
from myxtts.cluster.cluster import Cluster
from myxtts.cluster.members import find_members
from myxtts.cluster.rendezvous import join, tell_failure
from myxtts.config.config import XTTSConfig
from myxtts.config.load import SAVED, build, flatten, save
from myxtts.data.pack import Pack
from myxtts.data.packs import prepare_packs
from myxtts.devices import plan_devices, select_gpus, watched_gpus
from myxtts.diagnostics.gpu_monitor import GpuMonitor
from myxtts.diagnostics.startup import building_seconds, collect_facts, find_poor_settings
from myxtts.errors import RunError, UsageError
from myxtts.scoring.scores import require_measures

AUTO_STEPS = 24  # that `--auto` measures
SHAPES = (  # how the settings begin that a run takes over from the checkpoint it starts from
    "model.", "audio.", "vocoder.width", "vocoder.blocks", "vocoder.pitch_", "vocoder.discriminator_width",
    "vocoder.slice_frames", "data.front_end", "training.target",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Prepares the data where needed, trains, reports; in a cluster together with others."""
    console = Console()

    def say(*lines: str) -> None:
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # there is nothing to report before the first step
    members = find_members(options.cluster, options.rank)
    if members is None:
        refuse_cluster_flags(options)
        start = _read_settings(options)
        if start.config.data.processes > 1:
            raise UsageError(f"`data.processes={start.config.data.processes}` is what a cluster sets; leave it out")
        _require_new_or_resumed(start)
        return _train(options, start, None, console, say)
    restarts = Restarts.of(options)
    try:
        if restarts.made or (restarts.left and options.resume is None and holds_run(options)):
            resume_if_possible(options)
        start = _read_settings(options, follows=members.rank > 0 and not restarts.made)
        refuse_what_is_for_one(options, start.config)
    except (UsageError, RunError) as error:
        tell_failure(members, error)
        raise
    cluster = join(
        members,
        greet(start.config, start.origin, only_typed=start.partial, command="train", restarts=options.restarts),
        lambda line: say(in_flags(line, "train")),
        options.cluster_timeout,
        anyone=restarts.made > 0,
    )
    if cluster is None:
        say("🌐 no other process has come back; this one goes on alone")
        return _train(options, start, None, console, say)
    try:
        with cluster:
            start = replace(start, config=take_settings(cluster, start.config))
            say(f"🌐 {cluster.size} processes train together:")
            say(*(f"   {cluster.name(rank)}{' - this one' * (rank == cluster.rank)}" for rank in range(cluster.size)))
            if cluster.leads:
                _require_new_or_resumed(start)
            return _train(options, start, cluster, console, say)
    except RunError as error:
        if cluster.lost in (None, cluster.rank) or not restarts.left:
            raise
        say(f"🔁 {in_flags(str(error), 'train')}", f"   restart {restarts.made + 1} of {restarts.left + restarts.made}")
        restarts.start_over()


@dataclass(frozen=True)
class Start:
    """What is asked for."""

    config: XTTSConfig
    origin: Mapping[str, str]
    resume: Path | None
    partial: bool = False  # rank 0 reads a checkpoint and knows the rest of the settings


def _read_settings(options: argparse.Namespace, follows: bool = False) -> Start:
    """The settings as flags, files and a checkpoint say them; who follows rank 0 in a cluster needs no checkpoint."""
    if options.reset_optimizer and options.resume is None:
        raise UsageError("--reset-optimizer goes with --resume; a new run starts with a fresh optimizer anyway")
    partial = follows and (options.resume is not None or "training.init_from" in vars(options))
    resume = None if partial else _find_resumed(options)
    config, origin = configure(options) if partial else configure_run(options, resume)
    if options.resume is not None and origin.get("training.init_from", SAVED) != SAVED:
        raise UsageError("--init-from starts a new run and --resume continues one; give one of them")
    if not config.data.train_data:
        raise UsageError("no training data; add --train-data DIR")
    for key, reason in config.kind.foreign.items():
        if key in vars(options):
            raise UsageError(f"`{key}` {reason}")
    if resume and origin.get("training.checkpoint_dir", SAVED) == SAVED:  # the run goes on where it lies now
        if resume.resolve() not in list_checkpoints(resume.resolve().parent):
            raise UsageError(f"{resume} is a copy of a checkpoint; say with --checkpoint-dir where its run shall go on")
        config = replace(config, training=replace(config.training, checkpoint_dir=str(resume.resolve().parent)))
    if origin.get("data.processes", SAVED) == SAVED:  # how many trained together before
        config = replace(config, data=replace(config.data, processes=1))
    return Start(config, {key: source for key, source in origin.items() if key != "data.processes"}, resume, partial)


def _require_new_or_resumed(start: Start) -> None:
    """Refuses a run folder that another run has, or that cannot be one."""
    run_folder, resume = Path(start.config.training.checkpoint_dir), start.resume
    if list_checkpoints(run_folder):
        if resume is None:
            raise UsageError(
                f"{run_folder} already holds a run; add --resume to go on with it or choose another --checkpoint-dir"
            )
        if resume.resolve().parent != run_folder.resolve():
            raise UsageError(f"{run_folder} holds another run than {resume}; choose another --checkpoint-dir")
    for folder in (run_folder, *run_folder.parents):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; choose another --checkpoint-dir")
    refuse_if_in_use(run_folder)


def _train(
    options: argparse.Namespace, start: Start, cluster: Cluster | None, console: Console, say: Callable[..., None]
) -> int:
    """Everything after it is known who trains."""
    config, origin, resume = start.config, start.origin, start.resume
    leads, run_folder = cluster is None or cluster.leads, Path(config.training.checkpoint_dir)
    select_gpus(config.data)
    if config.training.eval_every and leads:
        require_measures("--eval-every")
    say(*(f"   {line}" for line in describe(config, origin)))
    if not config.kind.speaks and config.vocoder.discriminators_after >= config.training.max_steps:
        after = config.vocoder.discriminators_after
        say(f"⚠️ discriminators would come after step {after}, and the run ends before; lower --discriminators-after")
    began = time.time()
    built: list[float] = []

    def prepare(folder: Path, config: XTTSConfig) -> Pack:
        pack = prepare_and_report(folder, config, console)
        built.append(building_seconds(pack, began))
        return pack

    packs = prepare_together(cluster, config, prepare) if cluster else prepare_packs(config, prepare)

    if leads:
        make_folder(run_folder, "choose another --checkpoint-dir")
    if options.auto:
        chosen = _choose_by_profile(config, say)
        config = build({**flatten(config), **chosen})
        say(*(f"   {line}" for line in describe(config, dict.fromkeys(chosen, "auto"))))

    plan = plan_devices(config.data)
    if cluster:
        from myxtts.training.strategy import join_processes

        join_processes(cluster, plan)
    say(*configured_lines(plan, config.data), *pipeline_lines(plan, config), *model_lines(plan))
    facts = collect_facts(
        config, plan, packs.train, find_cards(), watched_gpus(config.data), built[0], resume is not None
    )
    say(*poor_setting_lines(find_poor_settings(facts)))
    from myxtts.training.trainer import XTTSTrainer

    trainer = XTTSTrainer(
        config, resume_checkpoint=resume, reset_optimizer=options.reset_optimizer, packs=packs, cluster=cluster
    )
    if plan.pipeline == "split":
        say(f"🕐 Multi-GPU Mode: Waiting {config.data.model_start_delay:.1f}s for data pipeline to warm up...")
    begun = trainer.state.step
    with (
        GpuMonitor(watched_gpus(config.data) if plan.uses_gpu else (), measures=("utilisation",)) as monitor,
        listen_to_signals() as signals,
        training_display(console) as show,
    ):
        summary = trainer.train(show, signals.stop, signals.report, monitor.take_utilisation)
    if trainer.state.step == begun:
        say("stopped before the first step; there is nothing to save" if signals.received else "nothing was left to do")
    else:
        say(*report_lines(summary))
        say(f"✅ Saved in {run_folder / 'latest'}" if leads else "✅ Ended by rank 0, which saves")
    if signals.received:
        return 128 + signals.received[0]
    if cluster and cluster.stopped_by is not None:
        say(f"🛑 {cluster.name(cluster.stopped_by)} was told to end the run")
        return 128 + signal.SIGTERM
    return 0


def _choose_by_profile(config: XTTSConfig, say: Callable[..., None]) -> dict[str, Any]:
    """The settings that a short profile recommends first; it runs in a process of its own and leaves no memory used.

    Raises:
        RunError: the profile failed.
    """
    say(f"⏱️ Measuring {AUTO_STEPS} steps to choose the pipeline's settings...")
    with tempfile.TemporaryDirectory() as home:
        save(config, Path(home) / "config.yaml")
        words = ["profile", "--json", "--num-steps", str(AUTO_STEPS), "--config", f"{home}/config.yaml"]
        code, output, errors = _run_to_the_end([sys.executable, "-m", "myxtts", *words])
    if code:
        reason = errors.strip().splitlines()[-1:] or [f"exit code {code}"]
        raise RunError(f"--auto: the profile failed: {reason[0]}; leave --auto out or mend that")
    document = json.loads(output)
    best = next(iter(document["recommendations"]), None)
    if best is None:
        say(f"   {document['step_ms']:.0f} ms a step; nothing to change")
        return {}
    say(f"   {best['why']}: {best['now_ms']:.0f} → {best['expected_ms']:.0f} ms a step expected")
    return best["settings"]


def _run_to_the_end(command: list[str]) -> tuple[int, str, str]:
    """Exit code and output of a command; one that is cut short is let clear away what it has written."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            process.terminate()
            process.communicate()
            raise
    return process.returncode, output, errors


def _find_resumed(options: argparse.Namespace) -> Path | None:
    """The checkpoint that `--resume` means; without a name, the newest of --checkpoint-dir."""
    if options.resume is None:
        return None
    folder = options.resume or configure(options)[0].training.checkpoint_dir
    return find_checkpoint(Path(folder), ("latest",))


def configure_run(options: argparse.Namespace, resume: Path | None) -> tuple[XTTSConfig, Mapping[str, str]]:
    """Settings on top of the resumed run's; a run that starts from a checkpoint takes its model's shapes."""
    if resume is not None:
        return configure(options, resume / "config.yaml")
    config, origin = configure(options)
    if not config.training.init_from:
        return config, origin
    saved = find_checkpoint(Path(config.training.init_from)) / "config.yaml"
    return configure(options, saved, keep=SHAPES)


@dataclass(frozen=True)
class Signals:
    """What the process was told while it trained."""

    stop: threading.Event = field(default_factory=threading.Event)
    report: threading.Event = field(default_factory=threading.Event)
    received: list[int] = field(default_factory=list)


@contextmanager
def listen_to_signals() -> Iterator[Signals]:
    """Ctrl-C, SIGTERM and a closed terminal ask the loop to finish its step and save, a second one interrupts.

    SIGUSR1 wants a report.
    """
    signals = Signals()

    def end(number: int, _frame: object) -> None:
        if signals.received:
            raise KeyboardInterrupt
        signals.received.append(number)
        signals.stop.set()

    handlers = {signal.SIGINT: end, signal.SIGTERM: end, signal.SIGUSR1: lambda *_: signals.report.set()}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup has it ignored
        handlers[signal.SIGHUP] = end
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
