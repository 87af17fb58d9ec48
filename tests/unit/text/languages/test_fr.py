import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        (
            "le 1er mai à 7 h 45, 37,5 %",
            "le premier mai à sept heures quarante-cinq, trente-sept virgule cinq pour cent",
        ),
    ],
)
def test_french_is_written_out(written, spoken):
    assert normalize(written, "fr") == spoken


def test_canonically_equal_texts_normalise_equally():
    assert normalize("cafe\u0301", "fr") == normalize("café", "fr")


def test_french_has_a_voice():
    assert phonemize("bonjour", "fr")
