"""Numbers to words in every language: num2words where it is good, a few lines of our own where it is not.

In: digits.
Out: words.
"""

import re
import threading
from collections.abc import Callable

import num2words as _library

from myxtts.errors import UsageError
from myxtts.text.languages import SPEECH, Forms

MOST_DIGITS = 30

_LIBRARY_NAMES = {"pt": "pt_BR"}
_lock = threading.Lock()  # num2words keeps state in shared objects


def _ask(number: str | int, language: str, to: str = "cardinal") -> str:
    """The library's words, safe to call from several threads."""
    try:
        with _lock:
            return _library.num2words(number, lang=_LIBRARY_NAMES.get(language, language), to=to)
    except Exception as error:  # the library raises half a dozen kinds for numbers beyond its reach
        raise UsageError(f"the number {number} cannot be spoken ({error}); write it in words") from None


def cardinal(digits: str, language: str) -> str:
    """Words of "12" or "3.14": digits with at most one dot, no sign."""
    if len(digits) > MOST_DIGITS:
        raise UsageError(f"the number {digits[:12]}… has {len(digits)} digits and cannot be spoken; write it in words")
    whole, _, fraction = digits.partition(".")
    if not fraction:
        return _whole(whole, language)
    if language in ("ru", "hu"):  # "thirty-seven whole, five tenths"
        return _ask(digits, language)
    as_one = language not in ("en", "zh", "ja", "ko", "hi") and len(fraction) <= 2 and fraction[0] != "0"
    spoken = _whole(fraction, language) if as_one else " ".join(_whole(digit, language) for digit in fraction)
    if language in ("zh", "ja"):
        return _whole(whole, language) + SPEECH[language].point + spoken.replace(" ", "")
    return f"{_whole(whole, language)} {SPEECH[language].point} {spoken}"


def _whole(digits: str, language: str) -> str:
    writer = _OWN_WRITERS.get(language)
    if language == "fa":  # nine, not "no"
        return re.sub(r"(?<!\S)نه(?!\S)", "نُه", " ".join(_ask(int(digits), "fa").split()))
    return writer(int(digits)) if writer else " ".join(_ask(int(digits), language).replace(",", "").split())


def year(digits: str, language: str) -> str:
    """A year as it is said: hundreds in English, German and Dutch."""
    if language in ("en", "de", "nl") and 1100 <= int(digits) < (2100 if language == "en" else 2000):
        if language == "en" and 2000 <= int(digits) < 2010:
            return cardinal(digits, language)
        return _ask(int(digits), language, "year")
    if language in ("zh",) and len(digits) == 4:
        return "".join(_CHINESE_DIGITS[int(digit)] for digit in digits)
    return cardinal(digits, language)


_HINDI_FIRST = ("पहला", "दूसरा", "तीसरा", "चौथा", "पाँचवाँ", "छठा")
_CZECH_ORDINALS = (
    "nultý první druhý třetí čtvrtý pátý šestý sedmý osmý devátý desátý jedenáctý dvanáctý třináctý čtrnáctý patnáctý "
    "šestnáctý sedmnáctý osmnáctý devatenáctý"
).split()
_CZECH_TENS = "dvacátý třicátý čtyřicátý padesátý šedesátý sedmdesátý osmdesátý devadesátý".split()


def ordinal(digits: str, language: str) -> str:
    """First, second, third; masculine where a language has genders."""
    number = int(digits)
    if language == "cs":
        if number >= 100:
            return cardinal(digits, language)
        tens, ones = divmod(number, 10)
        last = _CZECH_ORDINALS[ones] if ones else ""
        return _CZECH_ORDINALS[number] if number < 20 else f"{_CZECH_TENS[tens - 2]} {last}".strip()
    if language == "hi":
        return _HINDI_FIRST[number - 1] if 1 <= number <= 6 else cardinal(digits, language) + "वाँ"
    if language == "tr":
        return _turkish_ordinal(number)
    if language == "zh":
        return "第" + cardinal(digits, language)
    if language == "fa" and number % 100 == 30:
        return cardinal(digits, language) + "\u200cاُم"
    if language == "fr" and number == 1:
        return "premier"
    return " ".join(_ask(number, language, "ordinal").split())


def form_of(digits: str, forms: Forms) -> str:
    """The form of a word that goes with a number: (one, other) or (one, few, many)."""
    if len(forms) == 1:
        return forms[0]
    if "." in digits:
        return forms[2] if len(forms) == 3 and _one_only(forms) else forms[1]
    number = int(digits)
    if len(forms) == 2:
        return forms[number != 1]
    if number % 10 == 1 and number % 100 != 11:
        return forms[0] if number == 1 or not _one_only(forms) else forms[2]
    return forms[1] if 2 <= number % 10 <= 4 and not 12 <= number % 100 <= 14 else forms[2]


def _one_only(forms: Forms) -> bool:
    """Polish and Czech say the first form with 1 only, Russian with 21 and 31 too."""
    return not re.search("[а-я]", forms[0])


# Chinese, Hindi, Turkish: not in num2words, or not usable there.

_CHINESE_DIGITS = "零一二三四五六七八九"


def _chinese(number: int) -> str:
    if number == 0:
        return "零"
    groups: list[str] = []
    rest, scale = number, 0
    gap = False  # the group to the left ends where a zero has to be said
    while rest:
        rest, group = divmod(rest, 10_000)
        if group:
            words = _chinese_group(group) + ["", "万", "亿", "万亿", "兆", "京", "垓", "秭"][scale]
            groups.insert(0, words + ("零" if gap and groups else ""))
        gap = group < 1000 and bool(rest)
        scale += 1
    words = "".join(groups)
    return words[1:] if words.startswith("一十") else words


def _chinese_group(number: int) -> str:
    words, zero = "", False
    for power, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // power % 10
        if digit:
            words += ("零" if zero and words else "") + _CHINESE_DIGITS[digit] + name
        zero = digit == 0
    return words


_HINDI = (
    "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस बीस इक्कीस बाईस तेईस चौबीस "
    "पच्चीस छब्बीस सत्ताईस अट्ठाईस उनतीस तीस इकतीस बत्तीस तैंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस उनतालीस चालीस इकतालीस "
    "बयालीस तैंतालीस चौवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास पचास इक्यावन बावन तिरपन चौवन पचपन छप्पन सत्तावन अट्ठावन "
    "उनसठ साठ इकसठ बासठ तिरसठ चौंसठ पैंसठ छियासठ सड़सठ अड़सठ उनहत्तर सत्तर इकहत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर छिहत्तर "
    "सतहत्तर अठहत्तर उनासी अस्सी इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी नवासी नब्बे इक्यानवे बानवे तिरानवे "
    "चौरानवे पचानवे छियानवे सत्तानवे अट्ठानवे निन्यानवे"
).split()


def _hindi(number: int) -> str:
    if number < 100:
        return _HINDI[number]
    for power, name in ((10**9, "अरब"), (10**7, "करोड़"), (10**5, "लाख"), (10**3, "हज़ार"), (100, "सौ")):
        if number >= power:
            above, rest = divmod(number, power)
            return f"{_hindi(above)} {name}" + (f" {_hindi(rest)}" if rest else "")
    raise AssertionError


_TURKISH_ONES = ["", *"bir iki üç dört beş altı yedi sekiz dokuz".split()]
_TURKISH_TENS = ["", *"on yirmi otuz kırk elli altmış yetmiş seksen doksan".split()]
_TURKISH_SCALES = ["", *"bin milyon milyar trilyon katrilyon kentilyon sekstilyon septilyon oktilyon".split()]


def _turkish(number: int) -> str:
    if number == 0:
        return "sıfır"
    words: list[str] = []
    scale = 0
    while number:
        number, group = divmod(number, 1000)
        hundreds, rest = divmod(group, 100)
        said = [_TURKISH_ONES[hundreds] if hundreds > 1 else "", "yüz" if hundreds else "",
                _TURKISH_TENS[rest // 10], _TURKISH_ONES[rest % 10]]  # fmt: skip
        if scale == 1 and group == 1:
            said = []  # a thousand is "bin", not "bir bin"
        if group:
            words = [*said, _TURKISH_SCALES[scale], *words]
        scale += 1
    return " ".join(filter(None, words))


def _turkish_ordinal(number: int) -> str:
    words = _turkish(number)
    if words.endswith("dört"):
        return words[:-1] + "düncü"
    last = [c for c in words if c in "aıeioöuü"][-1]
    vowel = {"a": "ı", "ı": "ı", "e": "i", "i": "i", "o": "u", "u": "u", "ö": "ü", "ü": "ü"}[last]
    return words + (f"nc{vowel}" if words[-1] in "aıeioöuü" else f"{vowel}nc{vowel}")


def _arabic(number: int) -> str:
    return "صفر" if number == 0 else " ".join(_ask(number, "ar").split())


_OWN_WRITERS: dict[str, Callable[[int], str]] = {
    "zh": _chinese, "hi": _hindi, "tr": _turkish, "ar": _arabic,
}  # fmt: skip

_KOREAN_ONES = ["", *"한 두 세 네 다섯 여섯 일곱 여덟 아홉".split()]
_KOREAN_TENS = ["", *"열 스물 서른 마흔 쉰 예순 일흔 여든 아흔".split()]


def native_korean(number: int) -> str:
    """Korean numbers as they stand before things that are counted, 1 to 99."""
    return "스무" if number == 20 else _KOREAN_TENS[number // 10] + _KOREAN_ONES[number % 10]
