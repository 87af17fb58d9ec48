"""The demo from the command to the page in a real browser."""

import re
import subprocess
from pathlib import Path

import pytest

from myxtts.config.config import XTTSConfig
from myxtts.config.load import build, flatten, read_yaml
from myxtts.demo import demo as story
from tests.helpers import open_page

STEPS = 30


@pytest.fixture(scope="module")
def demo(tmp_path_factory, tiny_yaml, run_here) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The command with a smaller model and few steps; how long those take changes nothing on the page."""
    folder, whole = tmp_path_factory.mktemp("demo") / "demo", story.demo_config

    def short(*arguments: object) -> XTTSConfig:
        smaller = {**read_yaml(tiny_yaml), "training.log_every": 10, "training.max_steps": STEPS}
        return build({**flatten(whole(*arguments)), **smaller})

    words = ("--sentences", "60", "--voice", "espeak", "--folder", folder, "--say", "Hello <world>.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "demo_config", short)
        result = run_here("demo", "--minutes", "120", *words)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_demo_ends_with_the_page_and_what_to_do_next(demo):
    folder, result = demo
    page, advice = result.stdout.strip().splitlines()[-2:]
    assert f"{STEPS} steps in" in result.stdout
    assert page.endswith(str(folder / "index.html")) and "myxtts train --train-data" in advice
    assert len((folder / "spoken.lst").read_text().splitlines()) == 30


def test_the_corpus_does_not_hold_the_unseen_sentences(demo):
    folder, _ = demo
    trained = {line.split("|")[1] for line in (folder / "corpus" / "metadata.csv").read_text().splitlines()}
    spoken = {line.split("|")[1] for line in (folder / "spoken.lst").read_text().splitlines()}
    assert len(trained) == 60 and not trained & spoken


def test_the_page_needs_nothing_from_outside(demo):
    page = (demo[0] / "index.html").read_text(encoding="utf-8")
    assert "Hello &lt;world&gt;." in page and page.count("<polyline") == 1  # the loss, as it fell
    assert not re.findall(r'(?:src|href)="(?!data:)', page)


def test_players_play_and_pictures_render_in_a_browser(demo, browser):
    open_page(browser, demo[0] / "index.html")
    pictures = browser.execute_script("return [...document.images].map(i => i.complete && i.naturalWidth > 0)")
    assert len(pictures) >= 14 and all(pictures)
    played = browser.execute_async_script(
        """const done = arguments[0];
        Promise.all([...document.querySelectorAll('audio')].map(async player => {
            player.muted = true;
            await player.play();
            await new Promise(go => player.addEventListener('timeupdate', () => player.currentTime && go()));
            return [player.duration, player.error === null];
        })).then(done, error => done(String(error)));"""
    )
    assert isinstance(played, list), played
    assert len(played) == 13 and all(seconds > 0.2 and fine for seconds, fine in played)
    assert browser.execute_script("return document.querySelectorAll('svg polyline').length") == 1
