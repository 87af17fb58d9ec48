"""The profiler on the real pipeline in its smallest form, and on stages whose times are known."""

import json
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import soundfile

import myxtts
from myxtts.cli.flags import typed_flags
from myxtts.cli.parser import make_parser
from myxtts.cli.profile import command_line
from myxtts.cli.settings import configure
from myxtts.config.config import DataConfig
from myxtts.config.load import build, read_yaml
from myxtts.devices import plan_devices
from myxtts.diagnostics.advice import advise
from myxtts.diagnostics.profile import Profiler
from myxtts.diagnostics.report import terminal_lines
from myxtts.diagnostics.verdict import read_verdict
from myxtts.diagnostics.workload import make_noise
from tests.helpers import PATIENCE, open_page
from tests.stand_ins import Arrangement, Stages, make_workload

TWO = ("--virtual-devices", 2, "--data-gpu", 0, "--model-gpu", 1)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory, run_myxtts, tiny_yaml):
    home = tmp_path_factory.mktemp("profile")
    words = ("--config", tiny_yaml, *TWO, "--batch-size", 4, "--num-steps", 12, "--step-parts", "--cache-dir", home)
    result = run_myxtts("profile", *words, "--json", "--trace", home / "trace.json", "--html", home / "page.html")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), home


def test_the_real_pipeline_is_measured(profiled):
    document, _ = profiled
    assert all(document["stages"][stage]["mean_ms"] > 0 for stage in ("load", "preprocess", "train"))
    assert set(document["ways"]) == {"sequential", "buffered", "split", "parallel"}
    assert all(way["measured"] and way["step_ms"] > 0 for way in document["ways"].values())
    assert set(document["step_parts_ms"]) == {"forward", "backward", "update"}
    assert document["compile_seconds"] > 0 and document["shapes"] == 1


@pytest.mark.slow
def test_an_overlapped_step_takes_no_longer_than_its_stages(profiled):
    """On a machine that does nothing else meanwhile."""
    document, _ = profiled
    assert document["step_ms"] < 1.5 * document["total_ms"]


def test_no_card_is_not_available_and_never_a_number(profiled):
    document, _ = profiled
    assert document["gpus"] == {} and document["gpus_reason"] == "no NVIDIA card is used"
    assert document["memory_peak_mb"]["/CPU:0"] is None and document["memory_peak_mb"]["host"] > 100


def test_the_verdict_is_kept_for_the_training_that_follows(profiled, tiny_yaml):
    document, home = profiled
    config = build(read_yaml(tiny_yaml))
    verdict = read_verdict(home, config, ("/CPU:0", "/CPU:1"))
    assert verdict is not None and verdict.batch_size == 4
    assert verdict.best_way == document["best_way"]
    assert verdict.step_ms == pytest.approx({name: way["step_ms"] for name, way in document["ways"].items()})
    assert read_verdict(home, config, ("/CPU:1", "/CPU:0")) is None
    assert read_verdict(home, build({"model.size": "small"}), ("/CPU:0", "/CPU:1")) is None


def test_the_trace_has_a_lane_for_each_stage_and_every_batch(profiled):
    _, home = profiled
    events = json.loads((home / "trace.json").read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert [words.split()[0] for words in lanes.values()] == ["load", "preprocess", "transfer", "wait", "train"]
    batches = {(event["tid"], event["name"]) for event in events if event["ph"] == "X"}
    assert all((lane, "batch 3") in batches for lane in lanes)
    assert any(event["ph"] == "C" for event in events)


def test_known_stages_are_timed_one_by_one_and_reported_in_the_words_of_the_specification():
    """The bottleneck of forty such pipelines is found by `make test-slow`, on a machine that does nothing else."""
    stages = Stages(3, 2, 0, 4)
    profile = Profiler(make_workload(stages, Arrangement(mode="buffered"), plan_devices(DataConfig())), 12).run()
    first = profile.exact[0]  # before it nothing is read ahead that could still be under way
    assert [span.number for span in first.spans if span.stage == "train"] == list(range(len(first.shapes)))
    for span in first.spans:
        inside = [stage for stage, begin, end in stages.taken if span.begin <= begin and end <= span.end]
        if span.stage in ("load", "preprocess", "train"):
            assert inside == [span.stage]  # its own work, and no other stage's
    for stage in ("load", "preprocess", "train"):
        assert 1e3 * profile.measured.times.mean(stage) >= getattr(stages, stage)
    text = "\n".join(terminal_lines(profile, advise(profile.measured), "myxtts train", partial(typed_flags, "train")))
    for words in ("TIMING BREAKDOWN", "Data Load", "Preprocess", "GPU Transfer", "Training", "Total", "Pipeline gaps",
                  "GPU UTILIZATION", "not available: no NVIDIA card is used", "BOTTLENECK ANALYSIS", "RECOMMENDATIONS",
                  "by the stage model"):  # fmt: skip
        assert words in text, words


def hover(browser, name: str, x: float, y: float) -> str:
    """What the page tells where the pointer stands on a canvas; coordinates are its CSS pixels."""
    return browser.execute_script(
        """const canvas = document.querySelector(arguments[0]), box = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new PointerEvent("pointermove",
            {clientX: box.left + arguments[1], clientY: box.top + arguments[2], bubbles: true}));
        const note = document.getElementById("note");
        return note.style.display === "none" ? "" : note.textContent;""",
        name,
        x,
        y,
    )


@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_works_in_a_browser_without_a_network(profiled, browser, width):
    browser.set_window_size(width, 900)
    open_page(browser, profiled[1] / "page.html")
    drawn = browser.execute_script(
        """const canvas = document.getElementById("timeline"), pen = canvas.getContext("2d");
        const pixels = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(pixels).size;"""
    )
    assert drawn > 5  # several colours: the lanes
    wide = browser.execute_script("return document.getElementById('timeline').clientWidth")
    middle, name = browser.execute_script(
        """const [lane] = data.lanes[4], trained = data.slices.filter(slice => slice[0] === lane);
        const [, begin, length, name] = trained[trained.length >> 1];
        return [(begin + length / 2) / end, name];"""
    )
    told = hover(browser, "#timeline", wide * middle, 4 * 34 + 20)
    assert re.match(r"batch \d+ · train \(/CPU:1\) · [\d.]+ ms at [\d.]+ s", told), (told, name)
    browser.find_element("id", "in").click()
    assert browser.execute_script("return view[1] - view[0] < end")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_a_training_run_has_such_a_page_too(trained, run_here, browser, tmp_path):
    page = tmp_path / "run.html"
    result = run_here("profile", "--run", trained, "--html", page)
    assert result.returncode == 0, result.stderr
    open_page(browser, page)
    captions = browser.execute_script("return [...document.querySelectorAll('figcaption')].map(c => c.textContent)")
    assert "Step time (ms)" in captions and "Waiting for data (share)" in captions
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.slow
def test_auto_measures_first_and_says_where_a_setting_came_from(run_myxtts, corpus, tiny_yaml, tmp_path):
    words = ("--train-data", corpus, "--config", tiny_yaml, "--checkpoint-dir", tmp_path / "run", "--max-steps", 2)
    result = run_myxtts("train", *words, "--auto", *TWO, "--pipeline", "sequential")
    assert result.returncode == 0, result.stderr
    assert "⏱️ Measuring 24 steps" in result.stdout
    assert "(auto)" in result.stdout or "nothing to change" in result.stdout


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--num-steps", 3), "choose 12 to 10000"),
        (("--num-steps", 10**12), "--num-steps is 1000000000000; choose 12 to 10000"),
        (("--data-gpu", 0), "--data-gpu 0 needs --model-gpu"),
        (("--html", "/nowhere/at/all.html"), "there is no folder /nowhere/at"),
        (("--html", "/"), "--html / is no file name"),
        (("--trace", ""), "--trace '' is no file name"),
        (("--trace", "same.json", "--html", "same.json"), "name two files"),
        (("--run", "/nowhere"), "goes with --html"),
        (("--run", "x", "--html", "y.html", "--batch-size", 3), "nothing else"),
        (("--run", "x", "--html", "y.html", "--num-steps", 20), "nothing else"),
        (("--run", "", "--html", "y.html"), "holds no metrics.jsonl"),
    ],
)
def test_wrong_usage_is_one_line(run_here, words, what):
    result = run_here("profile", *words)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and what in result.stderr, result.stderr


def test_the_launcher_is_the_command():
    launcher = Path(myxtts.__file__).parent.parent / "utilities" / "dual_gpu_bottleneck_profiler.py"

    def launch(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, launcher, *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=launcher.parent, timeout=PATIENCE)

    shown = launch("--help")
    assert shown.returncode == 0 and "myxtts profile" in shown.stdout and "--num-steps" in shown.stdout
    refused = launch("--num-steps", "3")
    assert refused.returncode == 2 and "choose 12 to 10000" in refused.stderr


def test_the_command_repeats_what_was_typed(tiny_yaml):
    words = [
        "profile",
        "--config",
        str(tiny_yaml),
        "--language",
        "fa",
        "--xla",
        "--train-data=-x y",
        "--max-seconds",
        "3",
    ]
    options = make_parser().parse_args([*words, "--data-gpu", "none", "--model-gpu", "none"])
    config, origin = configure(options)
    line = shlex.split(command_line(options, config, origin))
    again = make_parser().parse_args(line[1:])
    assert configure(again)[0] == config and "--train-data=-x y" in line and "none" in line


def test_noise_is_as_long_as_the_flags_allow(tmp_path):
    for limits in ({"data.max_seconds": 2.0}, {"data.min_seconds": 6.0}, {}):
        config = build({**limits, "data.batch_size": 2})
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        make_noise(folder, config)
        seconds = [soundfile.info(file).duration for file in (folder / "wavs").iterdir()]
        assert config.data.min_seconds <= min(seconds) and max(seconds) <= config.data.max_seconds
