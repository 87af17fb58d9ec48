"""Logs of runs side by side, through the commands."""

import json

import numpy as np
import pytest

from myxtts.diagnostics.runs import (
    Report,
    Run,
    Size,
    compare,
    compare_runs,
    fit_scaling,
    read_lines,
    read_run,
)
from myxtts.errors import UsageError


def write_run(folder, step_ms: float, clips: int = 16, lines: int = 40, noise: float = 0.03, seed: int = 0):
    """A run folder whose steps take about so long."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    texts = [{"kind": "run", "step": 0, "step_clips": clips}]
    seconds = 0.0
    for number in range(1, lines + 1):
        found = step_ms * (1 + noise * rng.standard_normal()) * (5 if number <= 2 else 1)  # tracing first
        seconds += 25 * found / 1e3
        texts.append({"kind": "train", "step": 25 * number, "seconds": seconds, "step_ms": found, "data_wait": 0.02,
                      "frames_per_second": 1e6 / found, "memory_mb": 900 + 10 * clips,
                      "buffer_fill": 1.0, "padding": 0.1, "losses": {"loss": 1.0}})  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    return folder


def test_a_difference_is_told_and_noise_is_not(tmp_path, run_myxtts):
    runs = [write_run(tmp_path / n, ms, seed=s) for n, ms, s in (("a", 100, 1), ("b", 100, 2), ("c", 112, 3))]
    result = run_myxtts("compare", *runs)
    assert result.returncode == 0, result.stderr
    assert "b against a: step time: no difference beyond noise" in result.stdout
    assert "c against a: step time: 1" in result.stdout and "% slower" in result.stdout
    picture = tmp_path / "runs.png"
    document = json.loads(run_myxtts("compare", *runs, "--json", "--plot", picture).stdout)
    assert [one["name"] for one in document["runs"]] == ["a", "b", "c"]
    assert document["runs"][0]["step_ms"]["median"] == pytest.approx(100, rel=0.02)  # without the tracing
    assert [one["step_ms"]["differs"] for one in document["against_first"]] == [False, True]
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_equal_runs_are_called_different_about_one_time_in_twenty():
    rng = np.random.default_rng(0)
    pairs = [100 + 3 * rng.standard_normal((2, 40)) for _ in range(300)]
    wrong = sum(compare(one, other).differs for one, other in pairs)
    assert wrong < 0.08 * len(pairs)


def test_scaling_tells_fixed_cost_and_where_it_ends(tmp_path, run_myxtts):
    runs = [write_run(tmp_path / str(n), 20 + 5 * n, clips=n, noise=0.01) for n in (4, 8, 16, 64)]
    document = json.loads(run_myxtts("scaling", *runs[::-1], "--json", "--plot", tmp_path / "s.png").stdout)
    assert document["fixed_ms"] == pytest.approx(20, abs=3) and document["clip_ms"] == pytest.approx(5, rel=0.05)
    assert [row["clips"] for row in document["runs"]] == [4, 8, 16, 64]
    assert document["runs"][-1]["memory_mb"] == 1540 and (tmp_path / "s.png").stat().st_size > 1000
    flat = [write_run(tmp_path / f"flat-{n}", 5 * n, clips=n, noise=0.01) for n in (4, 8)]
    assert "beyond 4 clips a doubling adds less than 5 %" in " ".join(run_myxtts("scaling", *flat).stdout.split())


def test_steps_that_were_done_again_count_once(tmp_path):
    run = write_run(tmp_path / "run", 100, lines=4)
    lines = [json.loads(text) for text in (run / "metrics.jsonl").read_text().splitlines()]
    lines = [*lines, {"kind": "resumed", "step": 50}, *lines[3:]]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "tr')
    assert [line["step"] for line in read_lines(run) if line["kind"] == "train"] == [25, 50, 75, 100]


def test_the_report_gives_average_and_variation_where_it_covers_the_run(tmp_path):
    run = write_run(tmp_path / "run", 100, lines=4)
    assert read_run(run).average_step_ms == pytest.approx(100, rel=0.1) and read_run(run).variation is None

    def report(steps: int, mean: float, variation: float) -> str:
        return json.dumps({"kind": "summary", "steps": steps, "mean_step_ms": mean, "variation": variation}) + "\n"

    with (run / "metrics.jsonl").open("a") as log:
        log.write(report(50, 70.0, 0.5) + report(100, 80.0, 0.3))  # asked for on the way, and at the end
    assert (read_run(run).average_step_ms, read_run(run).variation) == (80, pytest.approx(0.3))
    with (run / "metrics.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "resumed", "step": 100}) + "\n" + json.dumps({"kind": "run", "step": 100}) + "\n")
        log.write(report(400, 40.0, 0.1))
    assert read_run(run).average_step_ms == pytest.approx((100 * 80 + 300 * 40) / 400)
    lines = (run / "metrics.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"steps": 400' not in line]
    later = {**json.loads(lines[4]), "step": 400}
    (run / "metrics.jsonl").write_text("\n".join([*kept, json.dumps(later)]) + "\n")
    assert not read_run(run).reports  # it covers a quarter of the run


def test_a_resumed_run_with_a_log_of_its_own_keeps_its_report(tmp_path):
    trained = [json.loads(text) for text in (write_run(tmp_path / "a", 100, lines=4) / "metrics.jsonl").open()][1:]
    lines = [
        {"kind": "run", "step": 1000, "step_clips": 16},
        *({**line, "step": 1000 + line["step"]} for line in trained),
        {"kind": "summary", "steps": 1100, "mean_step_ms": 80.0, "variation": 0.3},
    ]
    log = tmp_path / "resumed.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(log).reports == (Report(100, 80.0, 0.3),)  # it covers all that this log tells, not a tenth


def test_single_steps_tell_a_large_difference_of_short_runs():
    def short(mean: float, variation: float) -> Run:
        return Run("", {}, ({"step_ms": 1.0},), (Report(100, mean, variation),))

    assert (
        compare_runs(short(100, 0.1), short(150, 0.1), "step_ms").words("slower", "faster").startswith("50% slower (")
    )
    assert compare_runs(short(150, 0.1), short(100, 0.1), "step_ms").differs
    for other in (short(105, 0.1), short(150, 0.4), short(300, 1.5)):
        found = compare_runs(short(100, 0.1), other, "step_ms")
        assert found.differs is None and "slower, but too few log lines" in found.words("slower", "faster")


def test_few_log_lines_are_shown_and_called_too_few(tmp_path, run_myxtts):
    runs = [write_run(tmp_path / str(clips), ms, clips, lines=4) for clips, ms in ((2, 100), (4, 150))]
    result = run_myxtts("compare", *runs)
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "4 against 2: step time: 50% slower, but too few log lines to tell it from noise" in words
    assert "too few log lines to tell small differences from noise: 2, 4; log more often" in words
    document = json.loads(run_myxtts("compare", *runs, "--json").stdout)
    assert [one["tells_noise"] for one in document["runs"]] == [False, False]
    assert document["against_first"][0]["step_ms"]["differs"] is document["against_first"][0]["step_ms"]["low"] is None
    result = run_myxtts("scaling", *runs)
    assert result.returncode == 0 and "too few log lines to tell small differences from noise: 2, 4" in result.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "holds no metrics.jsonl"),
        ("hello\nworld\n", "line 1 is no JSON"),
        ("[1]\n", "line 1 is no log line"),
        ("", "found 0 log lines, needed is one"),
    ],
)
def test_what_is_no_run_is_one_line(tmp_path, run_myxtts, content, words):
    good, bad = write_run(tmp_path / "good", 100), tmp_path / "bad"
    bad.mkdir()
    if content is not None:
        (bad / "metrics.jsonl").write_text(content)
    result = run_myxtts("compare", good, bad)
    assert result.returncode == 2 and words in result.stderr and len(result.stderr.strip().splitlines()) == 1


def test_wrong_usage(tmp_path, run_myxtts):
    good = write_run(tmp_path / "good", 100)
    assert "at least two runs" in run_myxtts("compare", good).stderr
    assert "at least two sizes" in run_myxtts("scaling", good).stderr
    assert "there is no folder" in run_myxtts("compare", good, good, "--plot", tmp_path / "no" / "x.png").stderr


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("step", None),
        ("seconds", "x"),
        ("step_ms", float("nan")),
        ("step_ms", 0),
        ("padding", None),
        ("data_wait", []),
        ("memory_mb", "much"),
        ("gpu_utilisation", "high"),
        ("gpu_utilisation", {"0": None}),
    ],
)
def test_a_damaged_log_is_one_line(tmp_path, run_myxtts, key, value):
    good, bad = write_run(tmp_path / "good", 100), write_run(tmp_path / "bad", 100)
    lines = [json.loads(text) for text in (bad / "metrics.jsonl").read_text().splitlines()]
    lines[9][key] = value
    (bad / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run_myxtts("compare", good, bad)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and f"line 10 has {key}" in result.stderr


def test_blank_lines_and_a_mark_of_order_do_no_harm_and_a_deep_one_is_refused(tmp_path, run_myxtts):
    run = write_run(tmp_path / "a", 100)
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text("\ufeff" + text.replace("\n", "\n\n"), encoding="utf-8")
    assert len(read_lines(run)) == 41
    (run / "metrics.jsonl").write_text("[" * 100_000 + "\n" + text)
    with pytest.raises(UsageError, match="line 1 is no JSON"):
        read_lines(run)
    with pytest.raises(UsageError, match="there is no "):
        read_lines(tmp_path / "none.jsonl")


def test_odd_names_are_shown_as_they_are(tmp_path, run_myxtts):
    runs = [write_run(tmp_path / name, 100) for name in ("a[]z", "b[red]", "$DATA")]
    result = run_myxtts("compare", *runs)
    assert result.returncode == 0 and "a[]z" in result.stdout and "b[red]" in result.stdout
    page = tmp_path / "page.html"
    assert run_myxtts("profile", "--run", runs[2], "--html", page).returncode == 0
    assert "<h1>$DATA</h1>" in page.read_text()


def test_the_line_and_the_best_size_fit_the_points():
    def sizes(**times: float) -> list[Size]:
        flat = {int(name[1:]): ms for name, ms in times.items()}
        return [Size("", n, ms, 1e3 * n / ms, 0.0, 1.0, 0.0, {}, None, 1.0, True) for n, ms in flat.items()]

    steep = fit_scaling(sizes(s4=100, s16=1605))
    assert steep.fixed_ms == 0 and steep.off > 0.2
    falling = fit_scaling(sizes(s4=100, s8=50))
    assert falling.clip_ms == 0 and falling.fixed_ms == 75
    assert fit_scaling(sizes(s2=30, s4=100, s8=190, s16=195, s32=900)).best == 16
    assert fit_scaling(sizes(s4=40, s8=60, s16=100)).off < 0.01


@pytest.mark.parametrize("plot", ["", "x.jpg", "-", "no/folder.png"])
def test_a_picture_that_cannot_be_written_is_refused_first(tmp_path, run_myxtts, plot):
    runs = [write_run(tmp_path / name, 100) for name in "ab"]
    result = run_myxtts("compare", *runs, "--plot", plot)
    assert result.returncode == 2 and result.stderr.count("\n") == 1
