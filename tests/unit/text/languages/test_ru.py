import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("2 млрд руб., 21 км, 5-м", "два миллиарда рублей, двадцать один километр, пятом"),
        ("9 мая 1945 года", "девятого мая тысяча девятьсот сорок пятого года"),
        ("№ 5 и т. д.", "номер пять и так далее."),
        ("8 800 555 35 35", "восемь восемьсот пятьсот пятьдесят пять тридцать пять тридцать пять"),
    ],
)
def test_russian_is_written_out(written, spoken):
    assert normalize(written, "ru") == spoken


def test_russian_has_a_voice():
    assert phonemize("привет", "ru")
