"""Korean: its own numbers before hours and things that are counted.

In: nothing.
Out: `LANGUAGE`.
"""

import re

from myxtts.text.languages.language import Language, signs, units
from myxtts.text.numbers import cardinal

_ONES = ["", *"한 두 세 네 다섯 여섯 일곱 여덟 아홉".split()]
_TENS = ["", *"열 스물 서른 마흔 쉰 예순 일흔 여든 아흔".split()]


def _say_native(number: int) -> str:
    """As before things that are counted, 1 to 99."""
    return "스무" if number == 20 else _TENS[number // 10] + _ONES[number % 10]


def _say_hour(hour: str, language: Language) -> str:
    return _say_native(int(hour)) if 1 <= int(hour) <= 12 else cardinal(hour, language)


_COUNTED = "개(?!월)|명|마리|병|살|시|번째|잔|권|대|그루|송이|켤레|사람|가지|채"


def _read_counted(text: str, language: Language) -> str:
    counted = rf"(?<![\d.제])(?!1[3-9]\s?시|2\d\s?시)([1-9]\d?)\s?(?={_COUNTED})"
    return re.sub(counted, lambda m: _say_native(int(m[1])) + " ", text)


def _shorten_months(text: str, language: Language) -> str:
    """June and October lose a sound."""
    return text.replace("십월", "시월").replace("육월", "유월")


LANGUAGE = Language(
    code="ko",
    point="점",
    minus="영하",
    percent=("퍼센트",),
    signs=signs("더하기", "은", "그리고", "골뱅이", "도"),
    scripts=("HANGUL",),
    number_blanks=False,
    decimal=".",
    groups=",",
    decimals="digits",
    fraction="{below}분의 {above}",
    to="에서 ",
    order="ymd",
    date="{year}년 {month}월 {day}일",
    time="{hour}시 {minute}분",
    full_hour="{hour}시",
    hour=_say_hour,
    money={"₩": ("원",), "$": ("달러",), "€": ("유로",), "£": ("파운드",), "¥": ("엔",)},
    money_as_decimal=True,
    scales="[백천]?[만억]",
    units={**units("킬로미터", "미터", "센티미터", "킬로그램", "그램", "리터", "도"), "℃": ("도",)},
    counted=_read_counted,
    after_numbers=_shorten_months,
)  # fmt: skip
