import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import spell


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("%25, 1937'de, 3. oldu", "yüzde yirmi beş, bin dokuz yüz otuz yedi'de, üçüncü oldu"),
    ],
)
def test_turkish_is_written_out(written, spoken):
    assert normalize(written, "tr") == spoken


def test_turkish_letters_are_lowered_the_turkish_way():
    assert spell("İSTANBUL ISPARTA", "tr", "characters") == list("istanbul ısparta")


def test_turkish_has_a_voice():
    assert phonemize("merhaba", "tr")
