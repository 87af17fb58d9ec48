import pytest

from myxtts.errors import UsageError
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import spell


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


def test_nine_is_not_no_in_persian():
    assert spell("۹", "fa", "phonemes") == ["n", "ˈo", "h"]


def test_a_mark_that_persian_does_not_have_is_named():
    with pytest.raises(UsageError, match="U\\+0656"):
        spell("عل\u0656ی", "fa", "phonemes")


def test_persian_has_a_voice():
    assert phonemize("سلام", "fa")
