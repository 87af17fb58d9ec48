import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import spell


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("14:30に¥2,980", "十四時三十分に二千九百八十円"),
    ],
)
def test_japanese_is_written_out(written, spoken):
    assert normalize(written, "ja") == spoken


def test_japanese_is_read_from_any_of_its_scripts():
    assert spell("東京へ", "ja", "phonemes") == ["t", "oː", "kʲ", "oː", "e"]
    assert spell("とうきょう", "ja", "phonemes")[:2] == ["t", "o"]
    assert spell("ファイルとティー", "ja", "phonemes") == ["ɸ", "a", "i", "ɾ", "ɯ", "t", "o", "t", "iː"]


def test_japanese_numbers_change_their_sounds():
    assert spell("300", "ja", "phonemes") == ["s", "a", "ɴ", "bʲ", "a", "k", "ɯ"]
    assert spell("2人と4時", "ja", "phonemes") == ["ɸ", "ɯ", "t", "a", "ɾ", "i", "t", "o", "j", "o", "dʑ", "i"]


def test_japanese_has_a_voice():
    assert phonemize("こんにちは", "ja")
