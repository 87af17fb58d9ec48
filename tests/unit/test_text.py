import numpy as np
import pytest

from myxtts.config.config import LANGUAGES
from myxtts.errors import UsageError
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import Tokenizer, spell, spell_phonemes


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Mr. Smith, Dr. Jones", "mister Smith, doctor Jones"),
        ("in 1984 and 2024", "in nineteen eighty-four and twenty twenty-four"),
        ("In 1984, he left with $5, then", "In nineteen eighty-four, he left with five dollars, then"),
        ("the 21st", "the twenty-first"),
        ("$3.50 and £1", "three dollars and fifty cents and one pound"),
        ("at 9:05 or 10:00", "at nine oh five or ten"),
        ("50% of 1,250", "fifty percent of one thousand, two hundred and fifty"),
        ("No. 7. He said no.", "number seven. He said no."),
        ("“quoted” – text…", '"quoted" - text...'),
    ],
)
def test_english_is_written_out(written, spoken):
    assert normalize(written, "en") == spoken


def test_every_language_speaks_numbers():
    for language in LANGUAGES:
        assert phonemize(normalize("7 21 1984", language), language), language


def test_a_number_beyond_words_is_refused():
    with pytest.raises(UsageError, match="cannot be spoken"):
        normalize("9" * 400, "en")


def test_canonically_equal_texts_normalise_equally():
    assert normalize("cafe\u0301", "fr") == normalize("café", "fr")


def test_stress_is_joined_to_its_vowel_and_pauses_are_kept():
    units = phonemize("hello there, judge.", "en")
    assert units == ["h", "ə", "l", "ˈoʊ", "ð", "ˈɛɹ", ",", "dʒ", "ˈʌ", "dʒ", "."]


def test_every_language_of_the_specification_has_a_voice():
    texts = {
        "en": "good day", "fa": "سلام", "es": "hola", "fr": "bonjour", "de": "guten Tag", "it": "ciao", "pt": "olá",
        "pl": "cześć", "tr": "merhaba", "ru": "привет", "nl": "dag", "cs": "ahoj", "ar": "مرحبا", "zh": "你好",
        "ja": "こんにちは", "hu": "szia", "ko": "안녕", "hi": "नमस्ते",
    }  # fmt: skip
    for language, text in texts.items():
        assert phonemize(text, language), language


def test_letters_of_another_script_are_named():
    with pytest.raises(UsageError, match="好"):
        phonemize("good 好", "en")


@pytest.mark.parametrize("text", ["", "  ", "...", '"!?"', "-"])
def test_text_without_words_is_refused(text):
    for front_end in ("phonemes", "characters"):
        with pytest.raises(UsageError, match="nothing to speak"):
            spell(text, "en", front_end)


def test_phonemes_column_joins_marks_and_accepts_separators():
    assert spell_phonemes("həlˈoː wɜːld.") == ["h", "ə", "l", "ˈoː", "w", "ɜː", "l", "d", "."]
    assert spell_phonemes("k_e_t_ˈɑ_b_e.") == ["k", "e", "t", "ˈɑ", "b", "e", "."]


@pytest.mark.parametrize("column", ["...", "\u0301", "<pad>_<end>"])
def test_a_phonemes_column_without_sounds_is_refused(column):
    with pytest.raises(UsageError):
        spell_phonemes(column)


def test_control_characters_do_not_cut_a_text():
    assert phonemize(normalize("hello\0 there", "en"), "en") == phonemize("hello there", "en")


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
