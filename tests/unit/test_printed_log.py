"""What `train` printed is read back as what it wrote to `metrics.jsonl`; what is no such log is one line."""

import dataclasses
import json
import math

import pytest

from myxtts.cli.display import event_line, report_lines
from myxtts.diagnostics.printed_log import decode, parse_log
from myxtts.diagnostics.runs import read_lines, read_run
from myxtts.errors import UsageError
from myxtts.training.metrics import Metrics, RunFacts, Summary

FACTS = RunFacts(0, 2, 3, 6, "speech", "tiny", "float32", "split", "/GPU:0", "/GPU:1")
METRICS = Metrics(
    step=25, epoch=1, seconds=3725.3, losses={"loss": 3.25, "flow_matching": -0.125}, learning_rate=1e-4,
    step_ms=123.4, steps_per_second=8.1, frames_per_second=12345.0, data_wait=0.012, buffer_fill=0.67, padding=0.12,
    skipped=3, memory_mb=1234.0, gpu_utilisation={"3": 0.35, "11": 0.92}, progress=0.25, seconds_left=90.0,
)  # fmt: skip
SUMMARY = Summary(
    steps=100, seconds=12.3, mean_step_ms=110.5, deviation_step_ms=6.6, variation=0.052, frames_per_second=23456.0,
    data_wait=0.021, traces=6, shapes=6, skipped=0,
)  # fmt: skip


def printed(
    steps=(25, 50, 75, 100), begin: int = 0, clips: int = 2, ms: float = 123.4, ended: bool = True, **values
) -> str:
    """A log as `train` prints it into a file."""
    lines = ["   data.batch_size = 2 (flag)", event_line(dataclasses.replace(FACTS, step=begin, step_clips=clips))]
    for step in steps:
        lines.append(event_line(dataclasses.replace(METRICS, step=step, seconds=step / 10, step_ms=ms, **values)))
    if ended:
        lines += [*report_lines(dataclasses.replace(SUMMARY, steps=steps[-1])), "✅ Saved in runs/a/latest"]
    return "\n".join(lines) + "\n"


def steps_of(text: str, tmp_path) -> list[int]:
    (tmp_path / "a.log").write_text(text, encoding="utf-8")
    return [line["step"] for line in read_lines(tmp_path / "a.log") if line["kind"] == "train"]


def test_what_is_printed_is_read_back():
    log = "\n".join([event_line(FACTS), event_line(METRICS), *report_lines(SUMMARY)])
    _, facts, metrics, summary = parse_log(log, "a.log")
    assert facts == {"kind": "run", **dataclasses.asdict(FACTS)}
    expected = dataclasses.asdict(METRICS)
    for unprinted in ("epoch", "learning_rate", "progress"):
        del expected[unprinted]
    assert metrics.pop("kind") == "train" and metrics.keys() == expected.keys()
    for nested in ("losses", "gpu_utilisation"):
        assert metrics.pop(nested) == pytest.approx(expected.pop(nested))
    assert metrics == pytest.approx(expected)
    expected = dataclasses.asdict(SUMMARY)
    del expected["skipped"]
    assert summary.pop("kind") == "summary" and summary == pytest.approx(expected)


def test_numbers_at_their_limits_are_read_back():
    odd = dataclasses.replace(METRICS, losses={"loss": math.nan}, gpu_utilisation={}, skipped=0, seconds=59.96)
    lines = parse_log("\n".join([event_line(FACTS), event_line(odd), *report_lines(SUMMARY)]), "a.log")
    assert lines[2]["losses"] == {"loss": None} and lines[2]["gpu_utilisation"] == {} and lines[2]["skipped"] == 0
    assert lines[2]["seconds"] == 60.0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_other_output_line_ends_colours_and_encodings_do_no_harm(tmp_path, encoding):
    noise = 'W0000 gpu_device.cc:2\nTraceback (most recent call last):\n  File "x.py"\nstep 3 of 5\n10%|##\r20%|####\r'
    colours = "\x1b[32m" + printed().replace("step 50", "\x1b[1mstep\x1b[0m 50") + "\x1b[0m"
    text = noise + colours.replace("\n", f"\n{noise}").replace("\n", "\r\n")
    (tmp_path / "a.log").write_bytes(text.encode(encoding))
    run = read_run(tmp_path / "a.log")
    assert (run.name, run.steps, run.step_clips, run.average_step_ms) == ("a.log", 100, 2, 110.5)
    assert [line["step"] for line in run.lines] == [50, 75, 100]


def test_a_byte_that_is_no_utf_8_and_a_stamp_before_each_line_do_no_harm():
    text = decode(
        b"\xe9\xff\n" + "".join(f"12:30:01 {line}\n" for line in printed().splitlines()).encode("cp1252", "replace")
    )
    assert [line["step"] for line in parse_log(text, "a.log") if line["kind"] == "train"] == [25, 50, 75, 100]


def test_steps_of_a_resumed_run_count_once_and_a_new_run_replaces_the_old(tmp_path):
    resumed = printed() + printed((75, 100, 125), begin=50, ms=99.0)
    assert steps_of(resumed, tmp_path) == [25, 50, 75, 100, 125]
    assert {line["step_ms"] for line in read_run(tmp_path / "a.log").lines[-3:]} == {99.0}
    assert steps_of(printed() + printed((25, 50)), tmp_path) == [25, 50]
    killed = printed((25, 50, 75), ended=False) + "Killed\n" + printed((75, 100), begin=50)
    assert steps_of(killed, tmp_path) == [25, 50, 75, 100]
    complete = printed() + event_line(dataclasses.replace(FACTS, step=100)) + "\nnothing was left to do\n"
    assert steps_of(complete, tmp_path) == [25, 50, 75, 100]


CUT_REPORT = printed().split("mel frames/s")[0]
ASKED = printed(ended=False) + "📊 Performance so far\n" + "\n".join(report_lines(SUMMARY)[1:]) + "\n"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "is empty"),
        (b" \r\n\n", "is empty"),
        (bytes(range(256)) * 40, "is no text file"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is no text file"),
        (b"Epoch 1/5 loss 2.0\nstep 3 | loss 2\n", "holds no line of a training run, it begins 'Epoch 1/5 loss 2.0'"),
        (b"myxtts train: no training data; add --train-data DIR\n", "it begins 'myxtts train: no training data"),
        ("".join(printed().splitlines(keepends=True)[2:]).encode(), "its beginning with the run's settings is missing"),
        (printed((), ended=False).encode(), "it ends before the run's first log line"),
        (printed((25,), ended=False)[:-20].encode(), "it ends before the run's first log line"),
        (printed((25, 50), ended=False).encode(), "it ends after step 50 without the performance report"),
        (printed((25, 50), ended=False)[:-20].encode(), "it ends after step 25 without the performance report"),
        (CUT_REPORT.encode(), "it ends after step 100 without the performance report"),
        (ASKED.encode(), "it ends after step 100 without the performance report"),
        ((printed() + printed((75,), begin=50, ended=False)).encode(), "it ends after step 75 without"),
        (b'{"no": "run"}\n', "line 1 is no log line of a run"),
        (b"{'a': 1}\nstep\n", "line 1 is no JSON"),
    ],
)
def test_a_log_that_is_empty_foreign_or_cut_is_refused(tmp_path, content, found):
    (tmp_path / "a.log").write_bytes(content)
    with pytest.raises(UsageError) as error:
        read_run(tmp_path / "a.log")
    assert found in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("command", ["compare", "scaling"])
def test_a_bad_log_is_one_line_and_exit_code_2(tmp_path, run_myxtts, command):
    good = tmp_path / "good.log"
    good.write_text(printed(), encoding="utf-8")
    (tmp_path / "cut.log").write_text(printed(ended=False), encoding="utf-8")
    for bad, words in (("cut.log", "--checkpoint-dir"), ("none.log", "there is no ")):
        result = run_myxtts(command, good, tmp_path / bad)
        assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
        assert words in result.stderr and not result.stdout


def test_logs_are_compared_with_all_measures(tmp_path, run_myxtts):
    one, other = tmp_path / "baseline.log", tmp_path / "optimized.log"
    one.write_text(printed(range(5, 105, 5), ms=200.0, gpu_utilisation={}), encoding="utf-8")
    other.write_text(printed(range(5, 105, 5), clips=4), encoding="utf-8")
    result = run_myxtts("compare", one, other, "--plot", tmp_path / "a.png")
    assert result.returncode == 0 and (tmp_path / "a.png").stat().st_size > 1000, result.stderr
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines()]
    rows = {row[0]: row[1:] for row in cells if row}
    assert rows["average step time"] == ["110.5 ms", "110.5 ms"] and rows["total time"] == ["0:10.0", "0:10.0"]
    assert rows["timing stability (std / mean)"] == ["5.2%", "5.2%"] and rows["memory"] == ["1234 MB", "1234 MB"]
    assert rows["GPU utilisation"] == ["not sampled", "GPU 3 35%, GPU 11 92%"]
    assert "optimized.log against baseline.log: step time: 38% faster" in result.stdout
    document = json.loads(run_myxtts("scaling", one, other, "--json", "--plot", tmp_path / "b.png").stdout)
    assert [row["clips"] for row in document["runs"]] == [2, 4] and (tmp_path / "b.png").stat().st_size > 1000
    assert document["runs"][0]["gpu_utilisation"] is None and document["runs"][1]["gpu_utilisation"][
        "3"
    ] == pytest.approx(0.35)
