import numpy as np
import pytest

from myxtts.errors import UsageError
from myxtts.text.tokenizer import Tokenizer, spell, spell_phonemes


def test_phonemes_column_joins_marks_and_accepts_separators():
    assert spell_phonemes("həlˈoː wɜːld.") == ["h", "ə", "l", "ˈoː", "w", "ɜː", "l", "d", "."]
    assert spell_phonemes("k_e_t_ˈɑ_b_e.") == ["k", "e", "t", "ˈɑ", "b", "e", "."]
    assert spell_phonemes("tʃˈoʊk dʒ t͡ʃ") == ["tʃ", "ˈoʊ", "k", "dʒ", "tʃ"]


@pytest.mark.parametrize("column", ["...", "\u0301", "<pad>_<end>", "/həlˈoʊ/", "h3"])
def test_a_phonemes_column_without_sounds_is_refused(column):
    with pytest.raises(UsageError):
        spell_phonemes(column)


def make_tokenizer() -> Tokenizer:
    return Tokenizer.learn([["h", "ˈoʊ", "ɹ", "ɛ", ","]], "phonemes", ["en"])


def test_ids_start_with_the_language_and_end_with_the_end_mark():
    tokenizer = make_tokenizer()
    ids = tokenizer.encode_units(["h", "ˈoʊ"], "en")
    assert ids.dtype == np.int32
    assert [tokenizer.symbols[i] for i in ids] == ["<en>", "h", "ˈoʊ", "<end>"]


def test_a_sound_with_unknown_stress_takes_the_known_one():
    tokenizer = make_tokenizer()
    assert list(tokenizer.encode_units(["oʊ"], "en")) == list(tokenizer.encode_units(["ˈoʊ"], "en"))
    assert list(tokenizer.encode_units(["ˌoʊɹ"], "en")) == list(tokenizer.encode_units(["ˈoʊ", "ɹ"], "en"))
    assert list(tokenizer.encode_units(["ˌɛɹ"], "en")) == list(tokenizer.encode_units(["ɛ", "ɹ"], "en"))


def test_an_unknown_sound_or_language_is_named():
    with pytest.raises(UsageError, match="ʒ"):
        make_tokenizer().encode_units(["h", "ʒ"], "en")
    with pytest.raises(UsageError, match="speaks en, not 'fa'"):
        make_tokenizer().encode_units(["h"], "fa")


def test_character_mode_keeps_letters_and_pauses():
    assert spell("Hi, you 2", "en", "characters") == list("hi, you two")


def test_a_sound_that_was_never_heard_is_spoken_as_the_nearest_and_told():
    tokenizer = Tokenizer.learn([["b", "ˈɑː", "k", "oʊ", "uː"]], "phonemes", ["en"])
    ids = {symbol: number for number, symbol in enumerate(tokenizer.symbols)}
    tokens, replaced = tokenizer.encode("Bach", "en")
    assert tokens.tolist() == [ids[s] for s in ("<en>", "b", "ˈɑː", "k", "<end>")] and replaced == {"x": "k"}
    assert tokenizer.nearest(["ˈɑ̃", "o", "b", "ˈu"]) == {"ˈɑ̃": "ɑ", "o": "oʊ"}
    with pytest.raises(UsageError, match="never heard x"):
        tokenizer.encode_units(["x"], "en")  # what is trained on is never replaced
