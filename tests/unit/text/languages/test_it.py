import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("il sig. Rossi, 2ª volta", "il signor Rossi, seconda volta"),
    ],
)
def test_italian_is_written_out(written, spoken):
    assert normalize(written, "it") == spoken


def test_italian_has_a_voice():
    assert phonemize("ciao", "it")
