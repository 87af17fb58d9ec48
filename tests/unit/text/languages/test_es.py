import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        (
            "1.299,99 € el 14/03/2024",
            "mil doscientos noventa y nueve euros noventa y nueve el catorce de marzo de dos mil veinticuatro",
        ),
    ],
)
def test_spanish_is_written_out(written, spoken):
    assert normalize(written, "es") == spoken


def test_spanish_has_a_voice():
    assert phonemize("hola", "es")
