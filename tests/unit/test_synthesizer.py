import numpy as np
import pytest
import tensorflow as tf

from myxtts.errors import UsageError
from myxtts.inference.synthesizer import fade
from myxtts.inference.tensorflow_engine import Compiled
from myxtts.text.sentences import LONGEST_CHARACTERS, split_sentences


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


@pytest.mark.parametrize("samples", [0, 1, 50, 22050])
def test_a_sentence_begins_and_ends_in_silence_and_is_itself_in_between(samples):
    wave = np.ones(samples, np.float32)
    faded = fade(wave, 22050)
    joined = np.concatenate([np.zeros(10, np.float32), faded, np.zeros(10, np.float32)])
    assert np.abs(np.diff(joined)).max() <= (0.02 if samples > 1000 else 1.0)
    assert (faded[400:-400] == 1).all()
    assert (wave == 1).all()


def test_what_is_called_often_is_compiled_and_gives_the_same():
    eager = []

    def double(x: tf.Tensor) -> tf.Tensor:
        eager.append(tf.executing_eagerly())
        return 2 * x

    function = Compiled(double, [tf.TensorSpec([])], eager_calls=2)
    assert [float(function(tf.constant(float(number)))) for number in range(5)] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert eager == [True, True, False]  # called twice, traced once


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He lives at No. 5.", ["He lives at No. 5."]),
        ("He said no. Five came.", ["He said no.", "Five came."]),
        ("Fig. 3 shows it, as does vol. 2 of it.", ["Fig. 3 shows it, as does vol. 2 of it."]),
        ("The U.S. Army came.", ["The U.S. Army came."]),
        ("He left the U.S. The army came.", ["He left the U.S.", "The army came."]),
        ("A headline\n\nA paragraph that\ngoes on", ["A headline", "A paragraph that goes on"]),
        ("Mr.\n\nA paragraph.", ["Mr.", "A paragraph."]),
    ],
)
def test_dots_inside_a_sentence_do_not_end_it_and_blank_lines_do(text, sentences):
    assert split_sentences(text, "en") == sentences
