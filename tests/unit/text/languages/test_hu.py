import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("2024. május 31-én 65%-a", "kétezer-huszonnégy május harmincegyén hatvanöt százaléka"),
    ],
)
def test_hungarian_is_written_out(written, spoken):
    assert normalize(written, "hu") == spoken


def test_hungarian_has_a_voice():
    assert phonemize("szia", "hu")
