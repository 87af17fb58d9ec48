"""Generated metadata and mutated recordings: whatever comes, each line is accepted or rejected, never lost."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from myxtts.config.config import XTTSConfig
from myxtts.config.load import build
from myxtts.data.cache import prepare
from myxtts.data.check import Clip, examine
from myxtts.data.manifest import REASONS, Entry
from myxtts.errors import UsageError
from myxtts.text.tokenizer import spell

RATE = 22050
NAMES = ["a", "b", "c", "deep/d"]
ANY = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)


def voice(seconds: float) -> np.ndarray:
    time = np.arange(int(seconds * RATE)) / RATE
    return (0.3 * np.sin(2 * np.pi * 170 * time)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("any")
    for name in NAMES:
        target = folder / "wavs" / f"{name}.wav"
        target.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(target, voice(1.0), RATE)
    return folder


cell = st.one_of(
    st.sampled_from(
        [*NAMES, "a.wav", "wavs/b", "../a", "/etc/passwd", "nobody", "", " ", "en", "fa", "xx", "h_ə_l_oʊ"]
    ),
    st.sampled_from(["Good morning.", "سلام دنیا", "12:30 or $5.20", "☃", "Ω", "\u200c", "1/2 ½ XIV", "9" * 40]),
    st.text(max_size=12),
)
line = st.one_of(st.lists(cell, max_size=6).map("|".join), st.text(max_size=30))
header = st.sampled_from(
    ["", "id|text\n", "text|id|speaker\n", "id|language|phonemes|text\n", "id|text|id\n", "id|text|colour\n"]
)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@settings(ANY, max_examples=700)
@given(header=header, lines=st.lists(line, max_size=8), end=ends, bom=st.booleans())
def test_any_metadata_is_accounted_for_line_by_line(folder, tmp_path_factory, header, lines, end, bom):
    text = header + end.join(lines)
    (folder / "metadata.csv").write_bytes(b"\xef\xbb\xbf" * bom + text.encode("utf-8", "surrogatepass"))
    try:
        pack = prepare(folder, build({"data.cache_dir": str(tmp_path_factory.getbasetemp() / "any-cache")}))
    except UsageError as error:
        assert "\n" not in str(error)
        return
    listed = [part for part in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if part.strip()]
    rejected = pack.rejections
    assert len(pack) + len(rejected) == pack.listed == len(listed) - bool(header)
    assert {rejection.reason for rejection in rejected} <= set(REASONS)
    assert len({clip.id for clip in pack}) == len(pack)


def encoded(ending: str) -> bytes:
    target = io.BytesIO()
    soundfile.write(target, voice(0.8), RATE, format=ending)
    return target.getvalue()


WHOLE = {ending: encoded(ending) for ending in ("WAV", "FLAC", "OGG", "MP3")}
change = st.tuples(
    st.sampled_from(["flip", "cut", "drop", "insert", "zero", "repeat"]), st.floats(0, 1), st.integers(1, 400)
)


def mutate(content: bytes, changes: list[tuple[str, float, int]]) -> bytes:
    data = bytearray(content)
    for kind, place, amount in changes:
        # Half of the changes hit the headers, where they matter most.
        at = int(place * 2 * 64) if place < 0.5 else int((place - 0.5) * 2 * len(data))
        at = min(at, max(0, len(data) - 1))
        if kind == "flip" and data:
            data[at] ^= 1 + amount % 255
        elif kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at : at + amount]
        elif kind == "insert":
            data[at:at] = bytes(amount % 251 for _ in range(amount))
        elif kind == "zero":
            data[at : at + amount] = bytes(len(data[at : at + amount]))
        elif kind == "repeat":
            data[at:at] = data[at : at + amount]
    return bytes(data)


@settings(ANY, max_examples=1000)
@given(ending=st.sampled_from(sorted(WHOLE)), changes=st.lists(change, min_size=1, max_size=4), other=st.booleans())
def test_any_recording_is_a_clip_or_has_a_reason(tmp_path_factory, ending, changes, other):
    name = "wav" if other else ending.lower()
    target = tmp_path_factory.getbasetemp() / f"mutated.{name}"
    target.write_bytes(mutate(WHOLE[ending], changes))
    result = examine(Entry("x", target, "Hello.", "s", "en"), XTTSConfig())
    if isinstance(result, Clip):
        assert result.wave.dtype == np.int16 and len(result.wave) >= 0.4 * RATE and result.units
    else:
        assert result.reason in REASONS and result.detail and "\n" not in result.detail


@settings(ANY, max_examples=500)
@given(text=st.text(max_size=60), language=st.sampled_from(["en", "fa", "de", "ru", "ar", "zh", "ja", "hi", "tr"]))
def test_any_text_is_spoken_or_refused_in_one_line(text, language):
    for front_end in ("phonemes", "characters"):
        try:
            units = spell(text, language, front_end)
        except UsageError as error:
            assert "\n" not in str(error)
        else:
            assert units and all(units)
