import pytest

from myxtts.errors import UsageError
from myxtts.inference.synthesizer import LONGEST_CHARACTERS, split_sentences


def test_sentences_are_split_where_they_end():
    assert split_sentences("One. Two!  Three?\nFour", "en") == ["One.", "Two!", "Three?", "Four"]


def test_an_abbreviation_ends_no_sentence():
    assert split_sentences("Mr. Smith met Dr. Jones. They left.", "en") == ["Mr. Smith met Dr. Jones.", "They left."]


@pytest.mark.parametrize("text", ["word " * 200, "clause one, " * 60, "x" * 1000])
def test_long_sentences_are_cut_and_nothing_is_lost(text):
    pieces = split_sentences(text, "en")
    assert all(0 < len(piece) <= LONGEST_CHARACTERS for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["", " \n ", "... !"])
def test_nothing_to_say_is_refused(text):
    with pytest.raises(UsageError, match="empty"):
        split_sentences(text, "en")
