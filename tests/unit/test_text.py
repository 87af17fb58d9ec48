from pathlib import Path

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
        ("50% of 1,250", "fifty percent of one thousand two hundred and fifty"),
        ("No. 7. He said no.", "number seven. He said no."),
        ("“quoted” – text…", '"quoted" - text...'),
        ("$.50 or 1/2", "fifty cents or one half"),
        ("3/4 of version 2.10.3", "three quarters of version two point ten point three"),
        ("Louis XIV, the 1990s", "Louis the fourteenth, the nineteen nineties"),
        ("St. Mary on Main St.", "saint Mary on Main street."),
        ("call 0049", "call zero zero four nine"),
        ("2024-05-31", "May thirty-first, twenty twenty-four"),
        ("Ｆｕｌｌ width ５", "Full width five"),
        ("5 km at 20°C", "five kilometers at twenty degrees Celsius"),
        ("pages 10-12, A&B", "pages ten to twelve, A and B"),
        ("1½ cups, 2 1/2", "one and one half cups, two and one half"),
        ("7:30pm or 10am today", "seven thirty P.M or ten A.M today"),
        ("24/7, 50/50, 9/11", "twenty-four seven, fifty fifty, nine eleven"),
        ("10-15% or $10-$15", "ten to fifteen percent or ten dollars to fifteen dollars"),
        ("$1.2m at 10 km/h", "one point two million dollars at ten kilometers per hour"),
        ("July 4, 1776", "July fourth, seventeen seventy-six"),
        ("call 555-1234", "call five hundred and fifty-five twelve thirty-four"),
        ("Yes or no. 5 came.", "Yes or no. five came."),
        ("an IV drip, World War II", "an IV drip, World War two"),
        ("by J. R. R. Tolkien", "by J R R Tolkien"),
        ("vitamin D. Then", "vitamin D. Then"),
        ("12 Main St. He ran 6 ft.", "twelve Main street He ran six feet"),
    ],
)
def test_english_is_written_out(written, spoken):
    assert normalize(written, "en") == spoken


@pytest.mark.parametrize(
    ("language", "written", "spoken"),
    [
        ("es", "1.299,99 € el 14/03/2024", "mil doscientos noventa y nueve euros noventa y nueve el catorce de marzo "
         "de dos mil veinticuatro"),
        ("fr", "le 1er mai à 7 h 45, 37,5 %", "le premier mai à sept heures quarante-cinq, trente-sept virgule cinq "
         "pour cent"),
        ("de", "am 3. Mai um 14.30 Uhr, z. B.", "am dritten Mai um vierzehn Uhr dreißig, zum Beispiel."),
        ("it", "il sig. Rossi, 2ª volta", "il signor Rossi, seconda volta"),
        ("pt", "R$ 4,2 milhões no 1º ano", "quatro vírgula dois milhões de reais no primeiro ano"),
        ("pl", "-12, 4,2 mln zł, 3 maja", "minus dwanaście, cztery przecinek dwa milionów złotych, trzeciego maja"),
        ("tr", "%25, 1937'de, 3. oldu", "yüzde yirmi beş, bin dokuz yüz otuz yedi'de, üçüncü oldu"),
        ("ru", "2 млрд руб., 21 км, 5-м", "два миллиарда рублей, двадцать один километр, пятом"),
        ("ru", "9 мая 1945 года", "девятого мая тысяча девятьсот сорок пятого года"),
        ("nl", "€ 37,50 om 9.30 uur", "zevenendertig euro vijftig om negen uur dertig"),
        ("cs", "31. 5. 2024, 2 Kč, 5 Kč", "třicátého prvního května dva tisíce dvacet čtyři, dva koruny, pět korun"),
        ("ar", "٣١/٥/٢٠٢٤", "واحد و ثلاثون مايو ألفان و أربعة و عشرون"),
        ("zh", "2024年有2,154,300人、8.6%、2个", "二零二四年有二百一十五万四千三百人、百分之八点六、两个"),
        ("ja", "14:30に¥2,980", "十四時三十分に二千九百八十円"),
        ("hu", "2024. május 31-én 65%-a", "kétezer-huszonnégy május harmincegyén hatvanöt százaléka"),
        ("ko", "3시에 12개, 10월", "세 시에 열두 개, 시월"),
        ("de", "Am 24.12. um 1 Uhr", "Am vierundzwanzigsten Dezember um ein Uhr"),
        ("de", "Version 2.10, 1.50 €", "Version zwei Komma zehn, ein Euro fünfzig"),
        ("de", "Der 2. Weltkrieg", "Der zweite Weltkrieg"),
        ("ru", "№ 5 и т. д.", "номер пять и так далее."),
        ("ru", "8 800 555 35 35", "восемь восемьсот пятьсот пятьдесят пять тридцать пять тридцать пять"),
        ("zh", "10-20人", "十到二十人"),
        ("ko", "3개월 14시", "삼개월 십사시"),
        ("hi", "₹3,75,00,000 और ७वीं", "तीन करोड़ पचहत्तर लाख रुपये और सातवीं"),
    ],
)  # fmt: skip
def test_every_language_writes_out_its_own_forms(language, written, spoken):
    assert normalize(written, language) == spoken


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("كتابي كه ديروز", "کتابی که دیروز"),
        ("خانۀ ما، خانه‌ی ما، خانهٔ ما", "خانهٔ ما، خانهٔ ما، خانهٔ ما"),
        ("می روم، نمی دانم", "می‌روم، نمی‌دانم"),
        ("کتاب ها و کتاب های من", "کتاب‌ها و کتاب‌های من"),
        ("\u200cسلام\u200c\u200c دنیا\u200c", "سلام دنیا"),
        ("کتـــاب", "کتاب"),
        ("۱۴۰۳/۰۳/۱۱", "یازدهِ خرداد هزار و چهارصد و سه"),
        ("٢٤٥ و ۱٬۲۸۴ و ۳٫۵", "دویست و چهل و پنج و هزار و دویست و هشتاد و چهار و سه ممیز پنج"),
        ("۳/۵٪ و ۱/۲", "سه ممیز پنج درصد و یک دوم"),
        ("ﻛﺘﺎﺏ", "کتاب"),
        ("۵ام", "پنجم"),
        ("۹ نفر و ۲۹", "نُه نفر و بیست و نُه"),
        ("۱۲/۷۵ درصد", "دوازده ممیز هفتاد و پنج درصد"),
        ("۹۸/۵/۱۲", "دوازدهِ مرداد هزار و سیصد و نود و هشت"),
        ("٪۲۵ و %۲۵", "بیست و پنج درصد و بیست و پنج درصد"),
        ("۳۰ام، ۲۰م، ۱۲مین", "سی\u200cاُم، بیستم، دوازدهمین"),
        ("خانه ی دوستم", "خانهٔ دوستم"),
        ("۱،۲۳۴،۵۶۷", "یک میلیون و دویست و سی و چهار هزار و پانصد و شصت و هفت"),
        ("۱۳۵۷-۱۳۶۰", "هزار و سیصد و پنجاه و هفت تا هزار و سیصد و شصت"),
        ("تأثیر أمین", "تأثیر امین"),
    ],
)
def test_persian_has_one_spelling_for_each_word(written, spoken):
    assert normalize(written, "fa") == spoken


def test_persian_diacritics_and_ezafe_are_spoken():
    assert phonemize("گُل", "fa") != phonemize("گِل", "fa")
    assert phonemize(normalize("کتابِ من", "fa"), "fa")[5] == "e"
    assert phonemize(normalize("خانۀ ما", "fa"), "fa")[4:6] == ["j", "ˌe"]
    assert phonemize(normalize("مُحَمَّد", "fa"), "fa") == ["m", "o", "h", "ˈa", "m", "a", "d"]


def test_a_half_space_parts_letters_and_is_kept_in_character_mode():
    assert "\u200c" in spell("می‌روم", "fa", "characters")
    assert "\u200c" not in spell("سلام\u200c دنیا", "fa", "characters")


def test_chinese_tones_and_readings_depend_on_the_word():
    assert spell("银行", "zh", "phonemes") == ["y", "in2", "h", "ang2"]
    assert spell("他快", "zh", "phonemes") == ["t", "a1", "k", "uai4"]


def test_japanese_is_read_from_any_of_its_scripts():
    assert spell("東京へ", "ja", "phonemes") == ["t", "oː", "kʲ", "oː", "e"]
    assert spell("とうきょう", "ja", "phonemes")[:2] == ["t", "o"]
    assert spell("ファイルとティー", "ja", "phonemes") == ["ɸ", "a", "i", "ɾ", "ɯ", "t", "o", "t", "iː"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_sixty_sentences_of_every_language_are_spoken(language):
    source = Path(__file__).parent.parent / "data" / "sentences" / f"{language}.txt"
    sentences = source.read_text(encoding="utf-8").splitlines()
    assert len(sentences) == len(set(sentences)) == 60
    for front_end in ("phonemes", "characters"):
        units = [spell(sentence, language, front_end) for sentence in sentences]
        tokenizer = Tokenizer.learn(units, front_end, [language])
        for sentence in sentences:
            tokens, replaced = tokenizer.encode(sentence, language)
            assert len(tokens) > 5 and not replaced
        assert not any(c.isdigit() for c in "".join(tokenizer.symbols) if front_end == "characters")
        assert len(tokenizer.symbols) < 250 or (language in ("zh", "ja", "ko") and front_end == "characters")


@pytest.mark.parametrize(
    "text", ["hello *world*", "hello / world", "hello ~ world", "hello_ \\world", "[hello] <world>"]
)
def test_silent_signs_are_not_spoken(text):
    assert spell(text, "en", "phonemes") == spell("hello world", "en", "phonemes")


def test_nine_is_not_no_in_persian():
    assert spell("۹", "fa", "phonemes") == ["n", "ˈo", "h"]


def test_turkish_letters_are_lowered_the_turkish_way():
    assert spell("İSTANBUL ISPARTA", "tr", "characters") == list("istanbul ısparta")


def test_japanese_numbers_change_their_sounds():
    assert spell("300", "ja", "phonemes") == ["s", "a", "ɴ", "bʲ", "a", "k", "ɯ"]
    assert spell("2人と4時", "ja", "phonemes") == ["ɸ", "ɯ", "t", "a", "ɾ", "i", "t", "o", "j", "o", "dʑ", "i"]


@pytest.mark.parametrize(("text", "named"), [("a 😀 b", "U\\+1F600"), ("a → b", "→"), ("x ☃", "U\\+2603")])
def test_signs_that_nobody_speaks_are_named(text, named):
    for front_end in ("phonemes", "characters"):
        with pytest.raises(UsageError, match=named):
            spell(text, "en", front_end)


def test_letters_that_a_language_does_not_have_are_named():
    with pytest.raises(UsageError, match="چ"):
        spell("بچه", "ar", "phonemes")
    with pytest.raises(UsageError, match="U\\+0656"):
        spell("عل\u0656ی", "fa", "phonemes")


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
    assert spell_phonemes("tʃˈoʊk dʒ t͡ʃ") == ["tʃ", "ˈoʊ", "k", "dʒ", "tʃ"]


@pytest.mark.parametrize("column", ["...", "\u0301", "<pad>_<end>", "/həlˈoʊ/", "h3"])
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


def test_a_sound_that_was_never_heard_is_spoken_as_the_nearest_and_told():
    tokenizer = Tokenizer.learn([["b", "ˈɑː", "k", "oʊ", "uː"]], "phonemes", ["en"])
    ids = {symbol: number for number, symbol in enumerate(tokenizer.symbols)}
    tokens, replaced = tokenizer.encode("Bach", "en")
    assert tokens.tolist() == [ids[s] for s in ("<en>", "b", "ˈɑː", "k", "<end>")] and replaced == {"x": "k"}
    assert tokenizer.nearest(["ˈɑ̃", "o", "b", "ˈu"]) == {"ˈɑ̃": "ɑ", "o": "oʊ"}
    with pytest.raises(UsageError, match="never heard x"):
        tokenizer.encode_units(["x"], "en")  # what is trained on is never replaced
