import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("3시에 12개, 10월", "세 시에 열두 개, 시월"),
        ("3개월 14시", "삼개월 십사시"),
    ],
)
def test_korean_is_written_out(written, spoken):
    assert normalize(written, "ko") == spoken


def test_korean_has_a_voice():
    assert phonemize("안녕", "ko")
