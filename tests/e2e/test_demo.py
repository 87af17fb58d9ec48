"""The demo from the command to the page in a real browser."""

import re
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def demo(tmp_path_factory, run_myxtts) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo") / "demo"
    words = (
        "--minutes",
        "0.8",
        "--sentences",
        "60",
        "--voice",
        "espeak",
        "--folder",
        folder,
        "--say",
        "Hello <world>.",
    )
    result = run_myxtts("demo", *words, timeout=400)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_demo_ends_with_the_page_and_what_to_do_next(demo):
    folder, result = demo
    page, advice = result.stdout.strip().splitlines()[-2:]
    assert page.endswith(str(folder / "index.html")) and "myxtts train --train-data" in advice
    assert len((folder / "spoken.lst").read_text().splitlines()) == 30


def test_the_corpus_does_not_hold_the_unseen_sentences(demo):
    folder, _ = demo
    trained = {line.split("|")[1] for line in (folder / "corpus" / "metadata.csv").read_text().splitlines()}
    spoken = {line.split("|")[1] for line in (folder / "spoken.lst").read_text().splitlines()}
    assert len(trained) == 60 and not trained & spoken


def test_the_page_needs_nothing_from_outside(demo):
    page = (demo[0] / "index.html").read_text(encoding="utf-8")
    assert "Hello &lt;world&gt;." in page
    assert not re.findall(r'(?:src|href)="(?!data:)', page)


def test_players_play_and_pictures_render_in_a_browser(demo, browser):
    browser.get((demo[0] / "index.html").as_uri())
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
