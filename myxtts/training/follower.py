"""The loop of a process that is not rank 0: it takes the steps that rank 0 orders, and saves where that one is lost.

In: a `Run` in a cluster.
Out: a Summary; a checkpoint only in need.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from myxtts.checkpoint.folder import locked_run, write_checkpoint
from myxtts.errors import RunError, UsageError
from myxtts.pipeline.clock import StageClock
from myxtts.training.metrics import Event, Notice, Summary
from myxtts.training.pace import Pace
from myxtts.training.ranks import report_of
from myxtts.training.run import Run
from myxtts.training.run_ahead import RunAhead


def follow(run: Run, show: Callable[[Event], None], stop: threading.Event) -> Summary:
    """Trains until rank 0 ends the run; `stop` asks it to.

    Raises:
        RunError: a process is lost.
    """
    cluster, clock = run.cluster, StageClock()
    assert cluster is not None
    config, asked = run.config.training, False
    with run.feed(clock, threading.Event()) as feed, RunAhead() as ahead:
        pace = Pace(clock, run.state.seconds)
        run.share_weights(stop)
        batches = iter(feed)
        try:
            while True:
                with pace.paused():  # while rank 0 validates, or waits for its own data
                    order = cluster.next_order()
                if order.get("end"):
                    cluster.stopped_by = order["stopped_by"]
                    break
                run.note_state(order["state"])
                batch = next(batches)
                run.step.note_elapsed(order["elapsed"])
                results = run.take_step(batch)
                ahead.add(results["loss"])
                run.state.step += 1
                run.state.batches += 1
                pace.add(batch.mel_shape, results)
                if run.state.step % config.log_every == 0:
                    measured, flags = pace.close_window()
                    run.count_bad_steps(flags)
                    cluster.report({**report_of(measured), "step": run.state.step})
                while run.notices:
                    show(Notice(run.state.step, run.notices.pop(0)))
                if stop.is_set() and not asked:
                    cluster.ask_to_end()
                    asked = True
        except RunError:
            if cluster.lost == 0 and cluster.rank == 1:
                show(_save_in_place_of_rank_0(run, pace))
            raise
        summary = pace.summary()
    return Summary(steps=run.state.step, traces=run.step.traces, skipped=run.bad_steps.skipped, **summary)


def _save_in_place_of_rank_0(run: Run, pace: Pace) -> Notice:
    """Writes what was learned, unless rank 0 still holds the folder or has saved as much."""
    step, folder = run.state.step, Path(run.config.training.checkpoint_dir)
    if not step:
        return Notice(step, "not saved in place of rank 0: no step was taken")
    if int(run.step.taken) != step:  # host sync
        return Notice(step, f"not saved: the weights are at step {int(run.step.taken)}, and the run at {step}")
    checkpoint = run.checkpoint(pace.open_flags())
    try:
        with locked_run(folder):
            path = write_checkpoint(folder, checkpoint, run.config.training.keep, best=False)
    except (UsageError, RunError) as error:
        return Notice(step, f"not saved in place of rank 0: {error}")
    return Notice(step, f"saved in place of rank 0: {path}", "saved")
