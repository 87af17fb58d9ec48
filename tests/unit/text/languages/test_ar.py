import pytest

from myxtts.errors import UsageError
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import spell


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("٣١/٥/٢٠٢٤", "واحد و ثلاثون مايو ألفان و أربعة و عشرون"),
    ],
)
def test_arabic_is_written_out(written, spoken):
    assert normalize(written, "ar") == spoken


def test_a_letter_that_arabic_does_not_have_is_named():
    with pytest.raises(UsageError, match="چ"):
        spell("بچه", "ar", "phonemes")


def test_arabic_has_a_voice():
    assert phonemize("مرحبا", "ar")
