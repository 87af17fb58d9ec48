"""A dataset prepared in shards is, joined, what one run makes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from myxtts.config.config import XTTSConfig
from myxtts.config.load import build
from myxtts.data.cache import prepare, prepare_shard
from myxtts.data.shards import Shard
from myxtts.errors import UsageError
from tests.synthetic import make_hums


@pytest.fixture(scope="module")
def hums(tmp_path_factory) -> Path:
    """Twenty recordings, and lines that are rejected for four reasons between them."""
    folder = make_hums(tmp_path_factory.mktemp("shards") / "hums", 20)
    lines = (folder / "metadata.csv").read_text().splitlines()
    lines[3:3] = ["nowhere|A line without a recording.", lines[0]]
    lines[12:12] = ["../../outside|A path that leaves the folder.", "broken"]
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder


def settings(cache: Path) -> XTTSConfig:
    return build({"data.cache_dir": str(cache)})


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(hums, tmp_path_factory) -> dict[str, bytes]:
    return content(prepare(hums, settings(tmp_path_factory.mktemp("whole"))).folder)


def left(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if path.name.startswith((".shard", ".lock", ".building"))]


@pytest.mark.parametrize("of", [4, 7])
def test_shards_in_any_order_join_to_the_same_bytes(hums, whole, tmp_path, of):
    config = settings(tmp_path)
    found = [prepare_shard(hums, config, Shard(number, of)) for number in range(of, 0, -1)]
    assert sum(listed for _, listed in found) == 24 and sum(accepted for accepted, _ in found) == 20
    read: list[str] = []
    pack = prepare(hums, config, lambda what, done, total: read.append(what))
    assert content(pack.folder) == whole
    assert "joining shards" in read and "checking clips" not in read
    assert not left(tmp_path)


def test_what_is_missing_is_prepared_and_what_has_changed_is_not_taken(hums, whole, tmp_path):
    config = settings(tmp_path)
    for number in (4, 2):
        prepare_shard(hums, config, Shard(number, 4))
    prepare_shard(hums, replace(config, data=replace(config.data, max_seconds=1.0)), Shard(1, 4))  # another content
    assert content(prepare(hums, config).folder) == whole
    assert not left(tmp_path)


def interrupt(after: int):
    """Progress that ends the work at some clip."""

    def progress(what: str, done: int, total: int) -> None:
        if what != "reading recordings" and done == after:
            raise KeyboardInterrupt

    return progress


def test_a_shard_and_a_joining_that_are_killed_go_on(hums, whole, tmp_path):
    config = settings(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        prepare_shard(hums, config, Shard(1, 2), interrupt(5))
    assert prepare_shard(hums, config, Shard(1, 2)) == prepare_shard(hums, config, Shard(1, 2)) == (10, 12)
    prepare_shard(hums, config, Shard(2, 2))
    for place in (3, 12, 17):  # within a shard, between two
        with pytest.raises(KeyboardInterrupt):
            prepare(hums, config, interrupt(place))
    assert content(prepare(hums, config).folder) == whole


@pytest.mark.parametrize("word", ["0/4", "5/4", "3", "a/b", "1/0", "-1/3", "1/9999999"])
def test_what_is_no_shard_is_refused(word):
    with pytest.raises(UsageError, match="names no shard; give its number and how many there are, such as 3/16"):
        Shard.parse(word)


def test_the_command_tells_of_a_shard_and_how_to_join(hums, tmp_path, run_here):
    words = ("prepare", hums, "--cache-dir", tmp_path)
    first = run_here(*words, "--shard", "1/2")
    assert first.returncode == 0 and "shard 1 of 2: 10 of 12 clips accepted" in first.stdout
    assert '"accepted": 10' in run_here(*words, "--shard", "2/2", "--json").stdout
    assert "20 of 24 clips accepted" in run_here(*words).stdout
    assert run_here(*words, "--shard", "1/2", "--show", "x").returncode == 2
