import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import spell


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("2024年有2,154,300人、8.6%、2个", "二零二四年有二百一十五万四千三百人、百分之八点六、两个"),
        ("10-20人", "十到二十人"),
    ],
)
def test_chinese_is_written_out(written, spoken):
    assert normalize(written, "zh") == spoken


def test_chinese_tones_and_readings_depend_on_the_word():
    assert spell("银行", "zh", "phonemes") == ["y", "in2", "h", "ang2"]
    assert spell("他快", "zh", "phonemes") == ["t", "a1", "k", "uai4"]


def test_chinese_has_a_voice():
    assert phonemize("你好", "zh")
