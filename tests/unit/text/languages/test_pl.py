import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("-12, 4,2 mln zł, 3 maja", "minus dwanaście, cztery przecinek dwa milionów złotych, trzeciego maja"),
    ],
)
def test_polish_is_written_out(written, spoken):
    assert normalize(written, "pl") == spoken


def test_polish_has_a_voice():
    assert phonemize("cześć", "pl")
