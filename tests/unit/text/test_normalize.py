import pytest

from myxtts.errors import UsageError
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


def test_a_number_beyond_words_is_refused():
    with pytest.raises(UsageError, match="cannot be spoken"):
        normalize("9" * 400, "en")


def test_control_characters_do_not_cut_a_text():
    assert phonemize(normalize("hello\0 there", "en"), "en") == phonemize("hello there", "en")
