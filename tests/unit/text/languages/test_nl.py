import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("€ 37,50 om 9.30 uur", "zevenendertig euro vijftig om negen uur dertig"),
    ],
)
def test_dutch_is_written_out(written, spoken):
    assert normalize(written, "nl") == spoken


def test_dutch_has_a_voice():
    assert phonemize("dag", "nl")
