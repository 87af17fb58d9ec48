import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("₹3,75,00,000 और ७वीं", "तीन करोड़ पचहत्तर लाख रुपये और सातवीं"),
    ],
)
def test_hindi_is_written_out(written, spoken):
    assert normalize(written, "hi") == spoken


def test_hindi_has_a_voice():
    assert phonemize("नमस्ते", "hi")
