import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("R$ 4,2 milhões no 1º ano", "quatro vírgula dois milhões de reais no primeiro ano"),
    ],
)
def test_portuguese_is_written_out(written, spoken):
    assert normalize(written, "pt") == spoken


def test_portuguese_has_a_voice():
    assert phonemize("olá", "pt")
