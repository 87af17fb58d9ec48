import hashlib
import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from myxtts.batch import HEAD
from myxtts.config.load import build
from myxtts.data.buckets import Plan, fit_buckets, make_buckets, padding_share, plan_epoch, sample_plan
from myxtts.data.cache import learn_tokenizer, prepare, require_clips
from myxtts.data.dataset import HostDataset
from myxtts.data.pack import open_pack
from myxtts.data.references import References
from myxtts.errors import RunError, UsageError
from myxtts.text.tokenizer import Tokenizer

RATE = 16000


def speechlike(seconds: float, level: float = 0.3) -> np.ndarray:
    time = np.arange(int(seconds * RATE)) / RATE
    return (level * np.sin(2 * np.pi * 180 * time) * (0.6 + 0.4 * np.sin(9 * time))).astype(np.float32)


@pytest.fixture
def defects(tmp_path):
    """One clip of each defect, three good ones, and what must be said of each."""
    wavs = tmp_path / "set" / "wavs"
    wavs.mkdir(parents=True)
    for name in ("good1", "good2", "nested/good3", "no_text", "foreign", "twice"):
        (wavs / name).parent.mkdir(exist_ok=True)
        soundfile.write(wavs / f"{name}.wav", speechlike(2.0), RATE)
    soundfile.write(wavs / "silent.wav", np.zeros(RATE * 2, np.float32), RATE)
    soundfile.write(wavs / "clipped.wav", np.clip(speechlike(2.0) * 20, -1, 1), RATE)
    soundfile.write(wavs / "short.wav", speechlike(0.1), RATE)
    soundfile.write(wavs / "long.wav", speechlike(20.0), RATE)
    soundfile.write(wavs / "hasty.wav", speechlike(0.6), RATE)
    (wavs / "empty.wav").write_bytes(b"")
    soundfile.write(wavs / "hollow.wav", np.zeros(0, np.float32), RATE)
    (wavs / "noise.wav").write_bytes(b"this is no sound at all")
    whole = (wavs / "good1.wav").read_bytes()
    (wavs / "cut.wav").write_bytes(whole[: len(whole) // 2])
    soundfile.write(tmp_path / "set" / "secret.wav", speechlike(2.0), RATE)
    lines = {
        "good1|a good day": None,
        "good2|another day|the third column": None,
        "nested/good3|a folder": None,
        "twice|first": None,
        "twice|second": ("twice", "duplicate_id"),
        "silent|quiet": ("silent", "silent"),
        "clipped|loud": ("clipped", "clipped"),
        "short|hm": ("short", "too_short"),
        "hasty|far too many words for such a very short recording as this one is": ("hasty", "too_short"),
        "long|on and on": ("long", "too_long"),
        "empty|zero bytes": ("empty", "empty"),
        "hollow|no samples": ("hollow", "empty"),
        "noise|text file": ("noise", "unreadable"),
        "cut|half": ("cut", "truncated"),
        "gone|never there": ("gone", "missing"),
        "no_text|": ("no_text", "no_text"),
        "foreign|你好": ("foreign", "unspeakable_text"),
        "../secret|outside": ("../secret", "outside_folder"),
        "lonely": ("lonely", "bad_row"),
    }
    (tmp_path / "set" / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "set", [verdict for verdict in lines.values() if verdict]


def config_for(tmp_path, **values):
    return build({"data.cache_dir": str(tmp_path / "cache"), **values})


def digest(folder) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_each_defect_has_its_reason_and_nothing_is_changed(defects, tmp_path):
    folder, expected = defects
    before = digest(folder)
    pack = prepare(folder, config_for(tmp_path))
    assert sorted((r.id, r.reason) for r in pack.rejections) == sorted(expected)
    assert [clip.id for clip in pack] == ["good1", "good2", "nested/good3", "twice"]
    assert pack[1].text == "the third column"
    assert pack[2].speaker == "nested"
    assert digest(folder) == before


def test_a_changed_clip_or_setting_is_not_served_from_the_old_cache(defects, tmp_path):
    folder, _ = defects
    first = prepare(folder, config_for(tmp_path))
    assert prepare(folder, config_for(tmp_path)).folder == first.folder
    assert prepare(folder, config_for(tmp_path, **{"data.trim_silence": False})).folder != first.folder
    soundfile.write(folder / "wavs" / "good1.wav", speechlike(1.0), RATE)
    changed = prepare(folder, config_for(tmp_path))
    assert changed.folder != first.folder and changed[0].samples < first[0].samples


def test_a_damaged_cache_is_refused(defects, tmp_path):
    folder, _ = defects
    pack = prepare(folder, config_for(tmp_path))
    audio = pack.folder / "audio.i16"
    audio.write_bytes(audio.read_bytes()[:-10])
    with pytest.raises(RunError, match="damaged"):
        open_pack(pack.folder)


def test_too_few_good_clips_is_an_error_that_says_so(defects, tmp_path):
    config = config_for(tmp_path, **{"data.min_clips": 9})
    with pytest.raises(RunError, match="4 of 19 clips can be used, at least 9"):
        require_clips(prepare(defects[0], config), config)


def test_header_columns_in_any_order(defects, tmp_path):
    folder, _ = defects
    text = "\ufefflanguage|text|id|speaker|phonemes\r\nen|one|good1|anna|\r\nfa||good2|babak|s_a_l_ˈɑ_m\r\n"
    (folder / "metadata.csv").write_text(text, encoding="utf-8")
    clips = list(prepare(folder, config_for(tmp_path)))
    assert [(c.speaker, c.language) for c in clips] == [("anna", "en"), ("babak", "fa")]
    assert clips[1].units == ["s", "a", "l", "ˈɑ", "m"]


@pytest.mark.parametrize(
    ("content", "words"), [(b"a|\xff\xfe", "not UTF-8"), (b"id|text|colour\n", "unknown column 'colour'")]
)
def test_unreadable_metadata_is_one_clear_error(defects, tmp_path, content, words):
    folder, _ = defects
    (folder / "metadata.csv").write_bytes(content)
    with pytest.raises(UsageError, match=words):
        prepare(folder, config_for(tmp_path))


@pytest.mark.parametrize(("batch_size", "buckets"), [(1, 1), (4, 2), (7, 3), (16, 5), (64, 4)])
def test_an_epoch_yields_every_clip_once(corpus, tmp_path, batch_size, buckets):
    config = config_for(tmp_path, **{"data.batch_size": batch_size, "data.buckets": buckets})
    pack = prepare(corpus, config)
    dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
    seen = Counter()
    shapes = set()
    for raw in dataset.batches(epochs=1):
        shapes.add((raw.audio.shape[1], raw.labels.shape[1]))
        speech = raw.audio.shape[1] - config.model.reference_frames * config.audio.hop_samples
        for row in range(batch_size):
            if int(raw.labels[row, 3]):
                seen[bytes(raw.audio[row, :speech].numpy()).rstrip(b"\0")] += 1
    assert len(seen) == len(pack) and set(seen.values()) == {1}
    assert len(shapes) == len(dataset.buckets) <= buckets


def order_of(dataset, epoch: int) -> list[list[int]]:
    return dataset.epoch_plan(epoch).clips.tolist()


def test_order_depends_on_seed_and_epoch_only(corpus, tmp_path):
    config = config_for(tmp_path, **{"data.batch_size": 4})
    pack = prepare(corpus, config)
    tokenizer = learn_tokenizer([pack], config)
    one, two = HostDataset(pack, tokenizer, config), HostDataset(pack, tokenizer, config)
    assert order_of(one, 0) == order_of(two, 0)
    assert order_of(one, 1) != order_of(one, 2)
    other = HostDataset(pack, tokenizer, config_for(tmp_path, **{"data.batch_size": 4, "training.seed": 5}))
    assert order_of(other, 1) != order_of(one, 1)


def test_the_largest_bucket_comes_first_in_the_first_epoch(corpus, tmp_path):
    config = config_for(tmp_path, **{"data.batch_size": 4, "data.buckets": 3})
    pack = prepare(corpus, config)
    dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
    plan = dataset.epoch_plan(0)
    assert plan.buckets[0] == len(dataset.buckets) - 1
    assert sorted(plan.clips[plan.clips >= 0]) == list(range(len(pack)))


def test_starting_in_the_middle_continues_the_same_order(corpus, tmp_path):
    config = config_for(tmp_path, **{"data.batch_size": 4})
    pack = prepare(corpus, config)
    dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
    whole = [raw.labels.numpy().tolist() for raw in dataset.batches(epochs=2)]
    rest = [raw.labels.numpy().tolist() for raw in dataset.batches(start=7, epochs=2)]
    assert whole[7:] == rest


def test_a_model_that_lacks_a_sound_gets_its_stand_ins(corpus, tmp_path):
    config = config_for(tmp_path, **{"data.batch_size": 8})
    pack = prepare(corpus, config)
    known = [symbol for symbol in pack.symbols if symbol != "dʒ"] + ["d", "ʒ"]
    tokenizer = Tokenizer.learn([known], "phonemes", ["en"])
    dataset = HostDataset(pack, tokenizer, config)
    seen = {
        tuple(raw.labels[row, HEAD : HEAD + int(raw.labels[row, 0])].numpy().tolist())
        for raw in dataset.batches(epochs=1)
        for row in range(8)
    }
    assert any("dʒ" in clip.units for clip in pack)
    assert seen == {tuple(tokenizer.encode_units(clip.units, "en").tolist()) for clip in pack}


@pytest.mark.parametrize("flag", [{"data.num_workers": 3}, {"data.pipeline_buffer_size": 1}])
def test_workers_and_buffer_change_no_batch(corpus, tmp_path, flag):
    def tokens(values: dict) -> list:
        config = config_for(tmp_path, **{"data.batch_size": 4, **values})
        pack = prepare(corpus, config)
        dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
        return [raw.labels.numpy().tolist() for raw in dataset.batches(epochs=2)]

    assert tokens(flag) == tokens({})


def test_padding_to_the_longest_clip_uses_less_room(corpus, tmp_path):
    sizes = []
    for static in (True, False):
        config = config_for(tmp_path, **{"data.batch_size": 4, "data.static_shapes": static, "data.buckets": 1})
        pack = prepare(corpus, config)
        dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
        sizes.append(sum(int(np.prod(raw.audio.shape)) for raw in dataset.batches(epochs=1)))
    assert sizes[1] < sizes[0]


def test_buckets_hold_what_they_promise():
    frames, tokens = np.array([10, 20, 30, 40, 50, 60]), np.array([3, 9, 4, 12, 7, 6])
    for bucket in make_buckets(frames, tokens, 3, 2):
        assert frames[bucket.clips].max() <= bucket.shape.mel_frames
        assert tokens[bucket.clips].max() <= bucket.shape.text_tokens


def test_edges_are_the_best_there_are():
    rng = np.random.default_rng(3)
    frames = rng.choice([16, 32, 48, 64, 96, 128, 160], 200, p=[0.3, 0.05, 0.2, 0.05, 0.2, 0.15, 0.05])
    chosen = [bucket.shape.mel_frames for bucket in make_buckets(frames, frames // 8, 3, 1)]

    def padded(edges: tuple[int, ...]) -> int:
        return int(np.array(edges)[np.searchsorted(edges, frames)].sum())

    best = min(padded((*pair, 160)) for pair in itertools.combinations([16, 32, 48, 64, 96, 128], 2))
    assert len(chosen) == 3 and padded(tuple(chosen)) == best


@pytest.mark.parametrize("batch_size", [1, 3, 16, 50])
def test_every_epoch_of_any_layout_holds_each_clip_once_in_a_shape_that_fits(batch_size):
    rng = np.random.default_rng(batch_size)
    frames, tokens = rng.integers(5, 900, 333), rng.integers(3, 200, 333)
    for count in (1, 2, 6):
        buckets = make_buckets(frames, tokens, count, batch_size)
        for epoch in range(3):
            plan = plan_epoch(buckets, np.random.default_rng(epoch), epoch == 0)
            assert sorted(plan.clips[plan.clips >= 0]) == list(range(333))
            for number, clips in zip(plan.buckets, plan.clips, strict=True):
                shape, real = buckets[number].shape, clips[clips >= 0]
                assert len(real) and frames[real].max() <= shape.mel_frames and tokens[real].max() <= shape.text_tokens
        assert set(plan.buckets) == set(range(len(buckets)))


def test_the_last_clips_of_a_bucket_join_the_next_where_that_pads_less():
    frames = np.array([96] * 17 + [112] * 31)
    buckets = make_buckets(frames, np.full(48, 9), 2, 16)
    plan = plan_epoch(buckets, None, False)
    assert plan.buckets.tolist() == [0, 1, 1] and (plan.clips >= 0).all()
    assert padding_share(buckets, frames) == pytest.approx(16 / (16 * 96 + 32 * 112))


def test_a_sample_of_a_plan_has_its_buckets_by_their_share_and_one_of_each_first():
    buckets = np.array([0] * 60 + [1] * 30 + [2] * 10, np.int32)
    plan = Plan(np.random.default_rng(3).permutation(buckets), np.arange(400, dtype=np.int32).reshape(100, 4))
    found = sample_plan(plan, 20, np.random.default_rng(0))
    assert np.bincount(found.buckets).tolist() == [12, 6, 2] and set(found.buckets[:3].tolist()) == {0, 1, 2}
    assert len({tuple(row) for row in found.clips.tolist()}) == 20
    assert len(sample_plan(plan, 150, np.random.default_rng(0)).buckets) == 150  # some twice


def test_a_sampled_dataset_gives_the_same_batches_again_and_again(corpus, tmp_path):
    config = config_for(tmp_path, **{"data.batch_size": 2})
    pack = prepare(corpus, config)
    few = HostDataset(pack, learn_tokenizer([pack], config), config).sample(3)
    batches = [batch.labels[:, HEAD:].numpy().tolist() for batch in few.batches().take(6)]
    assert few.batches_per_epoch == 3 and batches[:3] == batches[3:] and few.names(1) == few.names(4)


def test_validation_clips_use_the_shapes_of_training_where_they_fit():
    shapes = [bucket.shape for bucket in make_buckets(np.array([10, 20, 30, 40]), np.array([3, 9, 4, 12]), 2, 2)]
    within = fit_buckets(np.array([5, 33, 18]), np.array([2, 9, 16]), shapes)
    assert {bucket.shape for bucket in within} <= set(shapes)
    beyond = fit_buckets(np.array([5, 99]), np.array([2, 50]), shapes)
    assert sorted(i for bucket in beyond for i in bucket.clips) == [0, 1]
    assert beyond[-1].shape.mel_frames >= 99 and beyond[-1].shape.text_tokens >= 50


def test_prepare_json_has_the_promised_keys(defects, run_myxtts):
    result = run_myxtts("prepare", defects[0], "--json")
    document = json.loads(result.stdout)
    assert {"accepted", "hours", "speakers", "languages", "rejected", "warnings", "cache"} <= set(document)
    assert document["accepted"] == 4 and len(document["rejected"]) == len(defects[1])


def find_slices(slices, lengths, pack) -> list[tuple[set[int], int]]:
    """For each slice the clips that hold it, and its length."""
    waves = [pack.wave(clip).tobytes() for clip in range(len(pack))]
    found = []
    for piece, length in zip(slices, lengths, strict=True):
        content = piece[:length].tobytes()
        found.append(({clip for clip, wave in enumerate(waves) if content in wave}, int(length)))
    return found


def test_references_are_slices_of_other_clips_of_the_speaker(corpus, tmp_path):
    config = config_for(tmp_path, **{"model.reference_frames": 128})
    pack = prepare(corpus, config)
    records = pack.records.copy()
    records["speaker"] = np.arange(len(pack)) % 3
    records["speaker"][5] = 7  # has no other clip
    pack = replace(pack, records=records)
    references = References(pack, np.arange(len(pack)), config)
    clips = np.array([0, 1, 2, 5] * 8)
    slices, lengths = references.draw(clips, np.random.default_rng(0))
    held = find_slices(slices, lengths, pack)
    for clip, (holders, length) in zip(clips.tolist(), held, strict=True):
        assert clip not in holders or clip == 5
        assert {int(pack.records["speaker"][one]) for one in holders} == {int(pack.records["speaker"][clip])}
        assert min(22050, len(pack.wave(max(holders)))) <= length <= 128 * 256
    assert len(set(lengths.tolist())) > 8
    again, _ = references.draw(clips, np.random.default_rng(0))
    np.testing.assert_array_equal(again, slices)
    vocoder = References(pack, np.arange(len(pack)), config_for(tmp_path, **{"training.target": "vocoder"}))
    assert vocoder.draw(clips, np.random.default_rng(0))[0].shape == (32, 0)
