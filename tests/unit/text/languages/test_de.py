import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("am 3. Mai um 14.30 Uhr, z. B.", "am dritten Mai um vierzehn Uhr dreißig, zum Beispiel."),
        ("Am 24.12. um 1 Uhr", "Am vierundzwanzigsten Dezember um ein Uhr"),
        ("Version 2.10, 1.50 €", "Version zwei Komma zehn, ein Euro fünfzig"),
        ("Der 2. Weltkrieg", "Der zweite Weltkrieg"),
    ],
)
def test_german_is_written_out(written, spoken):
    assert normalize(written, "de") == spoken


def test_german_has_a_voice():
    assert phonemize("guten Tag", "de")
