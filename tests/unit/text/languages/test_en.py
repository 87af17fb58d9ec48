import pytest

from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize


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


def test_english_has_a_voice():
    assert phonemize("good day", "en")
