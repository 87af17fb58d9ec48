from myxtts.demo.corpus import make_multispeaker_corpus


def test_a_corpus_of_many_speakers_is_kept_until_its_texts_change(tmp_path):
    voices = {"espeak": ["Good day.", "Good night."], "espeak:en-us+f3": ["Good day."]}
    make_multispeaker_corpus(tmp_path / "many", voices, seed=1)
    first = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "many" / "wavs").iterdir()}
    assert sorted(first) == ["espeak-0001.wav", "espeak-0002.wav", "espeak-en-us-f3-0001.wav"]
    (tmp_path / "many" / "wavs" / "espeak-0002.wav").unlink()
    make_multispeaker_corpus(tmp_path / "many", voices, seed=1)
    again = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "many" / "wavs").iterdir()}
    assert sorted(name for name in first if first[name] != again[name]) == ["espeak-0002.wav"]
    make_multispeaker_corpus(tmp_path / "many", {"espeak": ["A much longer sentence than before."]}, seed=1)
    assert [path.name for path in (tmp_path / "many" / "wavs").iterdir()] == ["espeak-0001.wav"]
    assert "A much longer" in (tmp_path / "many" / "metadata.csv").read_text()
