import pytest

from myxtts.errors import UsageError
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import spell


@pytest.mark.parametrize(
    "text", ["hello *world*", "hello / world", "hello ~ world", "hello_ \\world", "[hello] <world>"]
)
def test_silent_signs_are_not_spoken(text):
    assert spell(text, "en", "phonemes") == spell("hello world", "en", "phonemes")


@pytest.mark.parametrize(("text", "named"), [("a 😀 b", "U\\+1F600"), ("a → b", "→"), ("x ☃", "U\\+2603")])
def test_signs_that_nobody_speaks_are_named(text, named):
    for front_end in ("phonemes", "characters"):
        with pytest.raises(UsageError, match=named):
            spell(text, "en", front_end)


def test_stress_is_joined_to_its_vowel_and_pauses_are_kept():
    units = phonemize("hello there, judge.", "en")
    assert units == ["h", "ə", "l", "ˈoʊ", "ð", "ˈɛɹ", ",", "dʒ", "ˈʌ", "dʒ", "."]


def test_letters_of_another_script_are_named():
    with pytest.raises(UsageError, match="好"):
        phonemize("good 好", "en")


@pytest.mark.parametrize("text", ["", "  ", "...", '"!?"', "-"])
def test_text_without_words_is_refused(text):
    for front_end in ("phonemes", "characters"):
        with pytest.raises(UsageError, match="nothing to speak"):
            spell(text, "en", front_end)
