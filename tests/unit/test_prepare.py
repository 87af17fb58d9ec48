"""Preparing real folders: file formats, encodings, changes, full disks."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile

from myxtts.data.cache import prepare
from myxtts.data.pack import open_pack
from myxtts.data.report import find_warnings, length_histogram
from myxtts.errors import RunError, UsageError
from tests.recordings import RATE, config_for, make_set, voice


def reasons(pack) -> dict[str, str]:
    return {rejection.id: rejection.reason for rejection in pack.rejections}


# Formats and layouts


@pytest.mark.parametrize(
    ("ending", "options"),
    [
        ("wav", {"subtype": "PCM_16"}),
        ("wav", {"subtype": "PCM_24"}),
        ("wav", {"subtype": "FLOAT"}),
        ("WAV", {"format": "WAV"}),
        ("flac", {}),
        ("ogg", {}),
        ("mp3", {}),
    ],
)
def test_every_format_rate_and_channel_count_is_read(tmp_path, ending, options):
    folder = make_set(tmp_path / "set", "a|good morning\nb|good evening\n")
    soundfile.write(folder / "wavs" / f"a.{ending}", voice(2.0), RATE, **options)
    stereo = np.stack([voice(2.0), voice(2.0)], axis=1)
    soundfile.write(folder / "wavs" / f"b.{ending}", stereo, 44100, **options)
    pack = prepare(folder, config_for(tmp_path, **{"data.trim_silence": False}))
    assert [clip.id for clip in pack] == ["a", "b"]
    assert pack[0].samples == pytest.approx(2.0 * RATE, rel=0.05)
    assert pack[1].samples == pytest.approx(1.0 * RATE, rel=0.1)
    assert set(pack.sources) == {f"{RATE} Hz, 1 channel", "44100 Hz, 2 channels"}


def test_sixteen_bit_audio_at_the_models_rate_is_packed_as_it_is(tmp_path):
    samples = np.random.default_rng(0).integers(-32768, 32767, RATE * 2).astype(np.int16) // 2
    folder = make_set(tmp_path / "set", "a|good morning\n", a=samples)
    pack = prepare(folder, config_for(tmp_path, **{"data.trim_silence": False}))
    assert np.array_equal(pack.wave(0), samples)


@pytest.mark.parametrize(
    "content",
    [
        b"a|good morning\r\nb|good evening\r\n",
        b"\xef\xbb\xbfa|good morning\nb|good evening",
        b"a|good morning|\n\n   \nb|x|good evening\n",
        b"text|id\ngood morning|a\ngood evening|b\n",
        b"audio_file|text|speaker_name\nwavs/a.wav|good morning|x\nwavs/b.wav|good evening|x\n",
        b"a.wav|good morning\r./b|good evening\r",
        b"id|language|text\na|en-US|good morning\nb|EN|good evening\n",
    ],
)
def test_metadata_is_read_however_it_was_saved(tmp_path, content):
    folder = make_set(tmp_path / "set", content, a=voice(2), b=voice(2, 1))
    pack = prepare(folder, config_for(tmp_path))
    assert [clip.text for clip in pack] == ["good morning", "good evening"], pack.rejections


def test_other_encodings_are_refused_with_what_to_type(tmp_path):
    for content, words in (("a|é".encode("cp1252"), "line 1"), ("a|b".encode("utf-16"), "UTF-16")):
        folder = make_set(tmp_path / "set", content)
        with pytest.raises(UsageError, match=f"{words}.*iconv"):
            prepare(folder, config_for(tmp_path))


def test_recordings_in_nested_folders_name_their_speakers(tmp_path):
    folder = make_set(tmp_path / "set", "anna/one|good morning\ntwo|good evening\ntwin|which one\n..\\x|out\n")
    for place in ("anna/one", "babak/deep/two", "anna/twin", "babak/twin"):
        (folder / "wavs" / place).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / "wavs" / f"{place}.wav", voice(2), RATE)
    pack = prepare(folder, config_for(tmp_path))
    assert [(clip.id, clip.speaker) for clip in pack] == [("anna/one", "anna"), ("two", "babak")]
    assert reasons(pack) == {"twin": "bad_row", "..\\x": "outside_folder"}


@pytest.mark.parametrize(
    ("header", "words"),
    [("id|text|phonems", "did you mean 'phonemes'"), ("id|text|text", "twice"), ("id|text|zzz", "known: id")],
)
def test_a_header_with_a_mistake_is_refused(tmp_path, header, words):
    with pytest.raises(UsageError, match=words):
        prepare(make_set(tmp_path / "set", f"{header}\na|b|c\n"), config_for(tmp_path))


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3"])
def test_a_cut_file_is_called_truncated(tmp_path, ending):
    folder = make_set(tmp_path / "set", "a|good morning\n")
    target = folder / "wavs" / f"a.{ending}"
    soundfile.write(target, voice(3.0), RATE)
    whole = target.read_bytes()
    for share in (0.95, 0.5, 0.1):
        target.write_bytes(whole[: int(len(whole) * share)])
        assert reasons(prepare(folder, config_for(tmp_path))) == {"a": "truncated"}, share


def test_odd_recordings_have_their_reasons(tmp_path):
    clips = {"still": np.full(RATE, 0.5, np.float32), "nan": np.full(RATE, np.nan, np.float32), "fine": voice(2)}
    lines = "".join(f"{name}|good morning\n" for name in [*clips, "hour", "folder", "pipe"])
    folder = make_set(tmp_path / "set", lines)
    for name, wave in clips.items():
        soundfile.write(folder / "wavs" / f"{name}.wav", wave, RATE, subtype="FLOAT")
    soundfile.write(folder / "wavs" / "hour.flac", np.zeros(RATE * 600, np.int16), RATE)
    (folder / "wavs" / "folder.wav").mkdir()
    os.mkfifo(folder / "wavs" / "pipe.wav")
    pack = prepare(folder, config_for(tmp_path))
    expected = {"still": "silent", "nan": "unreadable", "hour": "too_long", "folder": "missing", "pipe": "missing"}
    assert reasons(pack) == expected and [clip.id for clip in pack] == ["fine"]


# What is said about a good set


def test_warnings_name_the_clips_that_matter(tmp_path):
    clips = {f"c{i}": voice(1.5, i) for i in range(6)} | {"same": voice(1.5, 1), "slow": voice(9, 7)}
    lines = "id|speaker|text\n" + "".join(f"{name}|anna|good morning to you all\n" for name in clips if name != "slow")
    folder = make_set(tmp_path / "set", lines + "slow|babak|good morning to you\n", **clips)
    warnings = find_warnings(prepare(folder, config_for(tmp_path)))
    text = "\n".join(warnings)
    assert "1 clip is the same recording as another: same = c1" in text
    assert "7 clips have the same text 'good morning to you all'" in text
    assert "slow (" in text and "fewer than 5 clips of babak" in text and "minutes of speech are little" in text
    assert len(warnings) == 5


def test_the_histogram_counts_every_clip_once(tmp_path):
    clips = {f"c{i}": voice(0.6 + i) for i in range(8)}
    folder = make_set(tmp_path / "set", "".join(f"{name}|hello\n" for name in clips), **clips)
    bars = length_histogram(prepare(folder, config_for(tmp_path)))
    assert sum(bar["clips"] for bar in bars) == 8 and len(bars) <= 16


# The cache


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    target = folder / "wavs" / "a.wav"
    old = time.time() - 1000
    os.utime(target, (old, old))
    first = prepare(folder, config_for(tmp_path))
    before = target.stat()
    content = bytearray(target.read_bytes())
    content[5000] ^= 0x40
    target.write_bytes(bytes(content))
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = prepare(folder, config_for(tmp_path))
    assert second.folder != first.folder and not np.array_equal(second.wave(0), first.wave(0))


@pytest.mark.parametrize(
    "values", [{"data.front_end": "characters"}, {"data.max_seconds": 9.0}, {"audio.sample_rate": 24000}]
)
def test_a_changed_setting_has_a_pack_of_its_own(tmp_path, values):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    assert prepare(folder, config_for(tmp_path)).folder != prepare(folder, config_for(tmp_path, **values)).folder


def test_a_changed_text_is_seen(tmp_path):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    prepare(folder, config_for(tmp_path))
    (folder / "metadata.csv").write_text("a|good evening\n", encoding="utf-8")
    assert prepare(folder, config_for(tmp_path))[0].text == "good evening"


@pytest.mark.parametrize(
    "part", ["audio.i16", "pitch.u8", "clips.bin", "units.u16", "words.utf8", "rejected.csv", "pack.json"]
)
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_every_damaged_part_is_noticed_when_it_is_opened(tmp_path, part, damage):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    pack = prepare(folder, config_for(tmp_path))
    target = pack.folder / part
    if damage == "cut":
        target.write_bytes(target.read_bytes()[:-3])
    else:
        target.unlink()
    with pytest.raises(RunError, match=r"damaged .*delete that folder"):
        open_pack(pack.folder)


def test_changed_audio_in_the_cache_is_noticed_when_it_is_read(tmp_path):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    pack = prepare(folder, config_for(tmp_path))
    content = bytearray((pack.folder / "audio.i16").read_bytes())
    content[1000] ^= 1
    (pack.folder / "audio.i16").write_bytes(bytes(content))
    with pytest.raises(RunError, match=r"damaged \(the audio of clip a"):
        open_pack(pack.folder).wave(0)


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(tmp_path):
    folder = make_set(tmp_path / "set", "a|good morning\nb|good evening\n", a=voice(8), b=voice(8, 1))
    cache = tmp_path / "cache"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    result = subprocess.run(
        [sys.executable, "-m", "myxtts", "prepare", str(folder), "--cache-dir", str(cache)],
        capture_output=True, text=True, preexec_fn=limit,
    )  # fmt: skip
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 and "--cache-dir" in result.stderr
    assert [path.name for path in cache.iterdir() if not path.name.startswith("hashes-")] == []
    assert prepare(folder, config_for(tmp_path)).listed == 2


def test_a_recording_that_changes_meanwhile_ends_it(tmp_path):
    folder = make_set(tmp_path / "set", "a|good morning\nb|good evening\n", a=voice(2), b=voice(2, 1))

    def change(what: str, done: int, total: int) -> None:
        if what == "reading recordings" and done == total:
            soundfile.write(folder / "wavs" / "b.wav", voice(3, 2), RATE)

    with pytest.raises(RunError, match=r"b\.wav changed while it was being prepared"):
        prepare(folder, config_for(tmp_path), change)


# One clip


def test_show_tells_what_became_of_a_clip(tmp_path, run_myxtts):
    folder = make_set(tmp_path / "set", "a|Dr. No, 7\nb|three ☃\n", a=voice(2), b=voice(2, 1))
    picture = tmp_path / "a.png"
    result = run_myxtts("prepare", folder, "--show", "a", "--json", "--picture", picture)
    facts = json.loads(result.stdout)
    assert facts["normalised"] == "doctor No, seven" and facts["verdict"] == "accepted"
    assert len(facts["tokens"]) == len(facts["phonemes"]) + 2 and facts["seconds"] == 2.0
    assert picture.read_bytes().startswith(b"\x89PNG")
    result = run_myxtts("prepare", folder, "--show", "b", "--picture", picture)
    assert result.returncode == 0 and "unspeakable_text" in result.stdout and "U+2603" in result.stdout
    result = run_myxtts("prepare", folder, "--show", "c")
    assert result.returncode == 2 and "lists no clip 'c'" in result.stderr


def test_nothing_is_ever_written_into_the_dataset(tmp_path, run_myxtts):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    for words in (
        ("--cache-dir", folder / "wavs"),
        ("--show", "a", "--picture", folder / "wavs" / "a.wav"),
        ("--show", "a", "--picture", folder / "new.png"),
    ):
        result = run_myxtts("prepare", folder, *words)
        assert result.returncode == 2 and "never changed" in result.stderr
    assert soundfile.info(folder / "wavs" / "a.wav").duration == 2.0


@pytest.mark.parametrize("part", ["clips.bin", "units.u16", "words.utf8", "rejected.csv"])
def test_changed_bytes_in_any_part_are_noticed(tmp_path, part):
    folder = make_set(tmp_path / "set", "a|good morning\ngone|never\n", a=voice(2))
    pack = prepare(folder, config_for(tmp_path))
    content = bytearray((pack.folder / part).read_bytes())
    content[len(content) // 2] ^= 1
    (pack.folder / part).write_bytes(bytes(content))
    with pytest.raises(RunError, match=f"the content of {part}"):
        open_pack(pack.folder)


def test_one_impossible_id_costs_that_line_only(tmp_path):
    folder = make_set(tmp_path / "set", f"a|good morning\n{'x' * 400}|too long a name\n", a=voice(2))
    pack = prepare(folder, config_for(tmp_path))
    assert len(pack) == 1 and list(reasons(pack).values()) == ["missing"]


def test_names_are_found_however_they_were_typed(tmp_path):
    folder = make_set(tmp_path / "set", "caf\u00e9|good morning\nb|good evening\nc|good night\n")
    soundfile.write(folder / "wavs" / "cafe\u0301.wav", voice(2), RATE)
    soundfile.write(folder / "wavs" / "b.Wav", voice(2, 1), RATE, format="WAV")
    soundfile.write(tmp_path / "c.wav", voice(2, 2), RATE)
    (folder / "wavs" / "linked").symlink_to(tmp_path)
    (tmp_path / "back").symlink_to(folder / "wavs")
    assert [clip.id for clip in prepare(folder, config_for(tmp_path))] == ["caf\u00e9", "b", "c"]


@pytest.mark.parametrize("form", ["RF64", "AIFF"])
def test_other_containers_that_are_cut_are_called_truncated(tmp_path, form):
    folder = make_set(tmp_path / "set", "a|good morning\n")
    target = folder / "wavs" / "a.wav"
    soundfile.write(target, voice(3.0), RATE, format=form, subtype="PCM_16")
    assert len(prepare(folder, config_for(tmp_path))) == 1
    whole = target.read_bytes()
    target.write_bytes(whole[: int(len(whole) * 0.6)])
    assert reasons(prepare(folder, config_for(tmp_path))) == {"a": "truncated"}


@pytest.mark.parametrize("length", [0x7FFFF000, 0xFFFFFFFF])
def test_a_recording_written_into_a_pipe_is_whole(tmp_path, length):
    folder = make_set(tmp_path / "set", "a|good morning\n", a=voice(2))
    target = folder / "wavs" / "a.wav"
    content = bytearray(target.read_bytes())
    place = content.index(b"data") + 4
    content[place : place + 4] = length.to_bytes(4, "little")
    target.write_bytes(bytes(content))
    assert len(prepare(folder, config_for(tmp_path))) == 1


def test_utf16_without_a_mark_is_an_encoding_error(tmp_path):
    folder = make_set(tmp_path / "set", ("a|good morning, all of you who listen\n" * 3).encode("utf-16-le"))
    with pytest.raises(UsageError, match=r"UTF-16.*iconv"):
        prepare(folder, config_for(tmp_path))


def test_json_is_valid_on_a_terminal_that_is_not_utf8(tmp_path):
    folder = make_set(tmp_path / "set", "سلام|good morning\n")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(
        [sys.executable, "-m", "myxtts", "prepare", str(folder), "--cache-dir", str(tmp_path / "cache"), "--json"],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert json.loads(result.stdout)["rejected"][0]["id"] == "سلام"


@pytest.mark.parametrize("flag", ["--num-workers"])
def test_a_number_beyond_reason_is_one_line(tmp_path, run_myxtts, flag):
    result = run_myxtts("prepare", make_set(tmp_path / "set", "a|b\n"), flag, "9" * 20)
    assert result.returncode == 2 and "at most" in result.stderr and len(result.stderr.splitlines()) == 1
