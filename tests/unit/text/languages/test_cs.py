import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("31. 5. 2024, 2 Kč, 5 Kč", "třicátého prvního května dva tisíce dvacet čtyři, dva koruny, pět korun"),
    ],
)
def test_czech_is_written_out(written, spoken):
    assert normalize(written, "cs") == spoken


def test_czech_has_a_voice():
    assert phonemize("ahoj", "cs")
