"""Written text to speakable text: one spelling, numbers, money, dates, times, units and abbreviations as words.

In: text as the user wrote it.
Out: text without digits, in which only signs that `phonemes` knows or refuses are left.
"""

import re

from myxtts.errors import UsageError
from myxtts.text.abbreviations import expand_abbreviations
from myxtts.text.languages import SPEECH, Speech
from myxtts.text.letters import fold
from myxtts.text.numbers import MOST_DIGITS, cardinal, form_of, native_korean, ordinal, year

_NUMBER = r"\d+(?:\.\d+)?"  # after separators were unified
_JOINT = "\x01"  # between a number and its ending, until the number is in words
_JALALI = "فروردین اردیبهشت خرداد تیر مرداد شهریور مهر آبان آذر دی بهمن اسفند".split()
_SCALES = {
    "en": "million|billion|trillion|thousand", "fa": "هزار|میلیون|میلیارد|تریلیون", "es": "mil|mill[oó]n(?:es)?",
    "fr": "mille|millions?|milliards?", "de": "Tausend|Millionen?|Milliarden?|Mio\\.|Mrd\\.",
    "it": "mila|milion[ei]|miliard[io]", "pt": "mil|milh(?:ão|ões)|bilh(?:ão|ões)", "pl": "tys\\.|mln|mld",
    "tr": "bin|milyon|milyar", "ru": "тыс\\.|млн|млрд", "nl": "duizend|miljoen|miljard", "cs": "tis\\.|mil\\.|mld\\.",
    "ar": "ألف|مليون|مليار", "zh": "[百千]?[万亿]", "ja": "[百千]?[万億]", "hu": "ezer|millió|milliárd",
    "ko": "[백천]?[만억]", "hi": "हज़ार|लाख|करोड़",
}  # fmt: skip


def normalize(text: str, language: str) -> str:
    """Speakable text on one line.

    Raises:
        UsageError: a number is beyond words.
    """
    speech = SPEECH[language]
    text = fold(text, language)
    if long := re.search(rf"\d{{{MOST_DIGITS + 1},}}", text):
        raise UsageError(
            f"the number {long[0][:12]}… has {len(long[0])} digits and cannot be spoken; write it in words"
        )
    text = expand_abbreviations(text, language)
    if re.search(r"\d", text):
        for rule in (_separators, _dates, _times, _money, _percent, _units, _ordinals, _special, _plain_numbers):
            text = rule(text, language, speech)
    text = _roman(text, language)
    for sign, word in speech.signs.items():
        text = text.replace(sign, f" {word} ")
    text = re.sub(r"(?<=\w)/(?=\w)", " ", text)
    text = re.sub(rf"\s*{_JOINT}", "", text)
    text = re.sub(r"\s+", " ", text)
    if language in ("zh", "ja"):
        text = re.sub(r"(?<=[\u3040-\u9fff]) | (?=[\u3040-\u9fff])", "", text)
    return re.sub(r" ([,.;:!?،؛؟。，、])", r"\1", text).strip()


# Numbers and what stands around them. Each rule takes the text, its language and that language's table.


def _separators(text: str, language: str, speech: Speech) -> str:
    """Thousands without separators and a dot before the fraction, however the language writes them."""
    group = r"[\u0020]" if speech.groups == " " else re.escape(speech.groups)
    if language == "hi":
        text = re.sub(r"(?<=\d),(?=\d)", "", text)
    text = re.sub(rf"(?<![\d.,+])(?<!\d )\d{{1,3}}(?:{group}\d{{3}})+(?!\d|[ -]\d)", lambda m: _no_year(m[0]), text)
    text = re.sub(r"(\d+(?:[:.,]\d+)?%?)-(?=[$€£]?(\d+)([:.]?))", lambda m: _range(m, language), text)
    if speech.decimal == ",":
        before, after = _CLOCK_WORDS.get(language, ("", ""))
        clock = r"(?<![\d.])(\d{1,2})\.(\d\d)(?!\.?\d)"
        if before:
            text = re.sub(rf"(?<!\w)((?:{before})\s){clock}", lambda m: m[1] + _clock_or_same(m[2], m[3]), text)
        if after:
            text = re.sub(rf"{clock}(?=\s?(?:{after}))", lambda m: _clock_or_same(m[1], m[2]), text)
        text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    elif language == "fa":
        # A slash divides a decimal number (3/5 is three and five tenths), but these few are fractions.
        text = re.sub(r"(?<![\d/])(?!(?:1/[234]|2/3|3/4)(?!\d))(\d{1,3})/(\d{1,3})(?![\d/])", r"\1.\2", text)
    if language == "hu":
        text = re.sub(r"(?<=[\d%€$£])-(?=[^\W\d])", _JOINT, text)
    before = r"(?<![\da-zA-Z])" if language in ("zh", "ja") else r"(?<![^\s(\"'])"
    text = re.sub(rf"{before}-(?=\d)", f"{speech.minus} ", text)
    return re.sub(r"(?<=[^\W\d])-(?=\d)", " ", text)


def _no_year(grouped: str) -> str:
    """Digits without separators, in another script's signs so that no later rule takes 1,950 for a year."""
    return "".join(chr(0x0660 + int(c)) for c in grouped if c.isdigit())


# Words before and behind a time that is written with a dot, as 14.30.
_CLOCK_WORDS = {
    "de": ("", "Uhr"), "nl": ("", "uur"), "it": ("[aA]lle|[dD]alle|ore", ""), "tr": ("[sS]aat", ""),
    "pl": ("o|godzinie|od godziny|do godziny", ""), "cs": ("v|ve|od|do", ""), "hu": ("", f"{_JOINT}?kor|-kor|óra"),
    "es": ("a las", ""), "pt": ("às", ""), "ru": ("в", ""),
}  # fmt: skip


def _clock_or_same(hour: str, minute: str) -> str:
    return f"{hour}:{minute}" if int(hour) < 25 and int(minute) < 60 else f"{hour}.{minute}"


_TO = {
    "en": " to ", "fa": " تا ", "de": " bis ", "fr": " à ", "es": " a ", "it": " a ", "pt": " a ", "nl": " tot ",
    "pl": " do ", "ru": " до ", "cs": " až ", "tr": " ila ", "ar": " إلى ", "hi": " से ",
    "zh": "到", "ja": "から", "ko": "에서 ",
}  # fmt: skip


def _range(match: re.Match[str], language: str) -> str:
    """10-20 and 9:30-10:30 are from one to the other; 3-2, 555-1234 and 2024-05-31 are not."""
    low, high = re.sub(r"\D.*", "", match[1]), match[2]
    times = ":" in match[1] and match[3] == ":"
    dates = re.match(r"\d*-\d", match.string[match.end() :]) or re.search(r"\d-$", match.string[: match.start()])
    alike = len(low) == len(high) <= 4 or len(high) - len(low) == 1 < 4 - len(low)
    rising = alike and int(low) < int(high)
    return match[1] + _TO.get(language, " ") if (times or rising) and not dates else match[0]


def _dates(text: str, language: str, speech: Speech) -> str:
    def say(year_: str, month: str, day: str, written: str) -> str:
        if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
            return written
        if language == "fa" and 1200 <= int(year_) < 1500:
            name = _JALALI[int(month) - 1]
        else:
            name = speech.months[int(month) - 1] if speech.months else cardinal(month, language)
        return speech.date.format(year=year(year_, language), month=name, day=_day(day, language))

    if language == "fa":  # a year of two digits
        text = re.sub(
            r"(?<![\d/])([0-9]{2})/(\d{1,2})/(\d{1,2})(?![\d/])", lambda m: say(f"13{m[1]}", m[2], m[3], m[0]), text
        )
    if language in ("de", "pl", "cs", "ru"):  # 24.12.
        text = re.sub(
            r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.(?!\s?\d)",
            lambda m: f"{_day(m[1], language)} {speech.months[int(m[2]) - 1]}" if 1 <= int(m[2]) <= 12 else m[0],
            text,
        )
    sep = r"\s?[-/.]\s?"
    text = re.sub(
        rf"(?<![\d.])(\d{{4}}){sep}(\d{{1,2}}){sep}(\d{{1,2}})(?!\d)\.?(?=\s|[^\w.]|[^\x00-\x7f]|$)",
        lambda m: say(m[1], m[2], m[3], m[0]),
        text,
    )
    day, month = (2, 1) if speech.order == "mdy" else (1, 2)
    text = re.sub(
        rf"(?<![\d.])(\d{{1,2}}){sep}(\d{{1,2}}){sep}(\d{{4}})(?!\d)",
        lambda m: say(m[3], m[month], m[day], m[0]),
        text,
    )
    if language in ("de", "ru", "pl", "cs"):
        text = re.sub(
            rf"(?<![\d.,])(\d{{1,2}})\.?\s(?=(?:{'|'.join(speech.months)})\b)",
            lambda m: _day(m[1], language) + " ",
            text,
        )
    if language == "ru":
        cases = {"год": "й", "года": "го", "году": "м"}
        text = re.sub(
            r"(?<!\d)(\d{3,4})(?= (года?|году)\b)", lambda m: _russian_ending(ordinal(m[1], "ru"), cases[m[2]]), text
        )
    return text


def _day(day: str, language: str) -> str:
    """A day of the month as it stands before the month's name."""
    if language == "en" or (language == "fr" and int(day) == 1):
        return ordinal(day, language)
    if language == "de":
        return ordinal(day, language) + "n"
    if language == "ru":
        return " ".join(_russian_ending(word, "го") for word in ordinal(day, language).split())
    if language == "pl":
        return re.sub(r"i\b", "iego", re.sub(r"y\b", "ego", ordinal(day, language)))
    if language == "cs":
        return re.sub(r"í\b", "ího", re.sub(r"ý\b", "ého", ordinal(day, language)))
    return cardinal(day, language)


def _times(text: str, language: str, speech: Speech) -> str:
    def say(match: re.Match[str]) -> str:
        hour, minute = match[1], match[2]
        if int(hour) > 24 or int(minute) > 59:
            return f"{hour} {minute}"
        words = native_korean(int(hour)) if language == "ko" and 1 <= int(hour) <= 12 else cardinal(hour, language)
        if int(minute) == 0:
            return speech.full_hour.format(hour=words)
        oh = "oh " if language == "en" and int(minute) < 10 else ""
        return speech.time.format(hour=words, minute=oh + cardinal(minute, language))

    behind = rf"(?:\s*{speech.hour_word}\b)?" if speech.hour_word else ""
    if language == "ar":
        text = re.sub(r"(\d:\d\d) ص(?!\w)", r"\1 صباحًا", text)
        text = re.sub(r"(\d:\d\d) م(?!\w)", r"\1 مساءً", text)
        text = re.sub(r"(?<!\d)(\d{4}) م(?!\w)", r"\1 ميلادية", text)
    text = re.sub(rf"(?<![\d.:])(\d{{1,2}}):(\d\d)(?![\d:]){behind}", say, text)
    if language in ("fr", "pt"):
        text = re.sub(r"(?<!\d)(\d{1,2})\s?h\s?(\d\d)(?!\w)", say, text)
    return text


_SHORT_SCALES = {"m": "million", "M": "million", "bn": "billion", "k": "thousand", "K": "thousand"}


def _money(text: str, language: str, speech: Speech) -> str:
    signs = "|".join(re.escape(sign) for sign in sorted(speech.money, key=len, reverse=True))
    short = r"|[mM]|bn|[kK]" if language == "en" else ""
    scale = rf"(?:\s?({_SCALES[language]}{short})(?!\w))?"

    def say(sign: str, number: str, large: str | None) -> str:
        forms = speech.money[sign]
        if large:
            if language == "en":
                large = _SHORT_SCALES.get(large, large)
            elif large in speech.units:
                large = form_of(number, speech.units[large])
            of = {"es": "de ", "pt": "de ", "fr": "de ", "it": "di "}.get(language, "") if "mil" in large[:3] else ""
            of = "" if large in ("mil", "mille", "mila") else of
            return f"{cardinal(number, language)} {large} {of}{forms[-1]}"
        whole, _, cents = number.partition(".")
        cents = (cents + "0")[:2] if cents else ""
        if language == "en" and cents and int(cents):
            small = {"$": ("cent", "cents"), "€": ("cent", "cents"), "£": ("penny", "pence")}.get(sign)
            if small:
                pounds = f"{cardinal(whole, 'en')} {form_of(whole, forms)} and " if int(whole) else ""
                return f"{pounds}{cardinal(str(int(cents)), 'en')} {form_of(cents, small)}"
        if not cents or not int(cents):
            return f"{cardinal(whole, language)} {form_of(whole, forms)}"
        if language in ("zh", "ja", "ko", "fa", "ar", "hi"):
            return f"{cardinal(number, language)} {forms[-1]}"
        return f"{cardinal(whole, language)} {form_of(whole, forms)} {cardinal(str(int(cents)), language)}"

    after = "" if language in ("zh", "ja", "ko") else " "
    text = re.sub(r"([$£€])\.(\d)", r"\g<1>0.\2", text)
    text = re.sub(rf"({signs})\s?({_NUMBER}){scale}", lambda m: say(m[1], m[2], m[3]) + after, text)
    return re.sub(rf"({_NUMBER}){scale}\s?({signs})(?!\w)", lambda m: say(m[3], m[1], m[2]), text)


def _percent(text: str, language: str, speech: Speech) -> str:
    def say(match: re.Match[str]) -> str:
        number, word = match["number"], form_of(match["number"], speech.percent)
        spoken = cardinal(number, language)
        return f" {word}{'' if language == 'zh' else ' '}{spoken}" if speech.percent_first else f"{spoken} {word}"

    if language in ("fa", "ar"):  # the sign is written on either side
        text = re.sub(rf"%\s?({_NUMBER})", r"\1%", text)
    written = rf"%\s?(?P<number>{_NUMBER})" if language == "tr" else rf"(?P<number>{_NUMBER})\s?%"
    return re.sub(written, say, text)


def _units(text: str, language: str, speech: Speech) -> str:
    signs = "|".join(re.escape(sign) for sign in sorted(speech.units, key=len, reverse=True))
    scale = rf"((?:\s?(?:{_SCALES[language]}))?)"

    def say(match: re.Match[str]) -> str:
        number, large, unit = match[1], match[2], match[3]
        return f"{cardinal(number, language)}{large} {form_of(number, speech.units[unit])}"

    ends = "[a-zA-Z°]" if language in ("zh", "ja", "ko") else r"[\w°]|\.\w"  # no blank stands behind a word there
    return re.sub(rf"(?<![\d.])({_NUMBER}){scale}\s?({signs})(?!{ends})", say, text)


_RUSSIAN_ENDINGS = {"й": "ый", "м": "ом", "е": "ое", "я": "ая", "го": "ого", "му": "ому", "х": "ых", "ю": "ую"}


def _russian_ending(words: str, ending: str) -> str:
    if words.endswith("третий"):
        return words[:-2] + {"й": "ий", "м": "ьем", "е": "ье", "я": "ья", "го": "ьего", "му": "ьему"}.get(ending, "ий")
    if ending == "й":
        return words
    return re.sub("(ый|ой|ий)$", _RUSSIAN_ENDINGS[ending], words)


def _feminine(words: str) -> str:
    return re.sub(r"o\b", "a", words)


def _ordinals(text: str, language: str, speech: Speech) -> str:
    def plain(match: re.Match[str]) -> str:
        return ordinal(match[1], language)

    if language == "en":
        text = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", plain, text)
        text = re.sub(
            rf"\b({'|'.join(speech.months)}) (\d{{1,2}})(?![\d:.]\d|\d|%)",
            lambda m: f"{m[1]} {ordinal(m[2], 'en')}",
            text,
        )
        decades = r"(?<!\d)((?:1[1-9]|20)\d0|[1-9]0)'?s\b"
        text = re.sub(decades, lambda m: re.sub("y$", "ie", year(m[1], "en")) + "s", text)
    elif language == "nl":
        text = re.sub(r"\b(\d+)(?:e|ste|de)\b", plain, text)
    elif language == "fr":
        text = re.sub(r"\b1re\b", "première", text)
        text = re.sub(r"\b(\d+)(?:er|ère|e|ème|ième)\b", plain, text)
    elif language in ("es", "it", "pt"):
        text = re.sub(r"\b(\d+)\.?er\b", lambda m: ordinal(m[1], language).removesuffix("o"), text)
        text = re.sub(r"\b(\d+)\.?[º°](?!C)", plain, text)
        text = re.sub(r"\b(\d+)\.?ª", lambda m: _feminine(ordinal(m[1], language)), text)
    elif language == "ru":
        endings = "|".join(sorted(_RUSSIAN_ENDINGS, key=len, reverse=True))
        text = re.sub(rf"\b(\d+)-({endings})\b", lambda m: _russian_ending(ordinal(m[1], language), m[2]), text)
    elif language == "fa":
        text = re.sub(r"(\d+)\s?\u200c?(?:اُ?مین|مین)(?!\w)", lambda m: plain(m) + "ین", text)
        text = re.sub(r"(\d+)\s?\u200c?(?:اُ?م|م)(?!\w)", plain, text)
    elif language == "hi":
        text = re.sub(r"(\d+)(?:वाँ|वां)", plain, text)
        text = re.sub(r"(\d+)वीं", lambda m: re.sub("वाँ$", "वीं", re.sub("ा$", "ी", plain(m))), text)
        text = re.sub(r"(\d+)वें", lambda m: re.sub("वाँ$", "वें", re.sub("ा$", "े", plain(m))), text)
    elif language == "de":
        text = re.sub(r"(?<![\d.,])1 (?=(?:Sekunde|Minute|Stunde|Woche|Million|Milliarde)\b)", "eine ", text)
        text = re.sub(r"(?<![\d.,])1 (?=[A-ZÄÖÜ])", "ein ", text)
        inflected = r"am|im|vom|zum|zur|dem|den|des|(?:sein|ihr|mein|dein|unser|jed)e[nmr]"
        text = re.sub(
            rf"\b((?i:{inflected})) (\d{{1,3}})\.(?= [A-ZÄÖÜ])", lambda m: f"{m[1]} {ordinal(m[2], 'de')}n", text
        )
        text = re.sub(r"\b((?i:der|die|das)) (\d{1,3})\.(?= [A-ZÄÖÜ])", lambda m: f"{m[1]} {ordinal(m[2], 'de')}", text)
    elif language in ("pl", "cs", "hu", "tr"):
        text = re.sub(r"\b(\d{1,3})\.(?= [a-zà-ž])", plain, text)
        text = re.sub(r"\b(\d{1,3})'?(?:[iuüı]nc[iuüı])\b", plain, text) if language == "tr" else text
        text = re.sub(r"\b(\d{4})\.(?= [a-zà-ž])", lambda m: cardinal(m[1], language), text)
    return text


_KOREAN_COUNTED = "개(?!월)|명|마리|병|살|시|번째|잔|권|대|그루|송이|켤레|사람|가지|채"


def _special(text: str, language: str, speech: Speech) -> str:
    """Fractions, versions and addresses, ranges, counted things."""

    def fraction(match: re.Match[str]) -> str:
        above, below = cardinal(match[1], language), cardinal(match[2], language)
        if language == "en" and match[2] in ("2", "4"):
            part = {"2": ("half", "halves"), "4": ("quarter", "quarters")}[match[2]]
            return f"{above} {form_of(match[1], part)}"
        if language == "en" and (int(match[1]) >= int(match[2]) or int(match[2]) not in (3, *range(5, 11), 12, 16, 20)):
            return f"{above} {below}"  # 24/7, 9/11
        if language == "en":
            return f"{above} {ordinal(match[2], 'en')}{'' if match[1] == '1' else 's'}"
        if language == "fa":
            return f"{above} {ordinal(match[2], language)}"
        return speech.fraction.format(above=above, below=below, over=speech.over)

    both = "and" if language == "en" else speech.signs["&"]
    text = re.sub(r"(?<![\d/.])(\d+) (?=[1-9]/\d(?![\d/]))", lambda m: f"{cardinal(m[1], language)} {both} ", text)
    text = re.sub(r"(?<![\d/.])(\d{1,3})/(\d{1,3})(?![\d/])", fraction, text)
    text = re.sub(
        r"(?<![\d.])\d+(?:\.\d+){2,}(?!\d)",
        lambda m: f" {speech.point} ".join(cardinal(part, language) for part in m[0].split(".")),
        text,
    )
    text = re.sub(r"(?<=\d)-(?=\d)", "、" if language in ("zh", "ja") else " ", text)
    if language == "ko":
        counted = rf"(?<![\d.제])(?!1[3-9]\s?시|2\d\s?시)([1-9]\d?)\s?(?={_KOREAN_COUNTED})"
        text = re.sub(counted, lambda m: native_korean(int(m[1])) + " ", text)
    return text


def _plain_numbers(text: str, language: str, speech: Speech) -> str:
    if language in ("en", "de", "nl"):
        text = re.sub(r"(?<![\d,.])(1[1-9]\d\d|20[1-9]\d)(?!\d|[,.]\d)", lambda m: year(m[1], language), text)
    elif language == "zh":
        text = re.sub(r"(?<!\d)(\d{4})(?=\s?年)", lambda m: year(m[1], language), text)
        text = re.sub(r"(?<![\d.第])2(?=[个位名只本张件条天周岁斤次小千万亿])", "两", text)
    blank = "" if language in ("zh", "ja", "ko") else " "

    def say(match: re.Match[str]) -> str:
        # Leading zeros, or ten digits and more without separators: a code or a telephone number, digit by digit.
        digits = match[0]
        if re.match(r"0\d", digits) or (digits.isascii() and len(digits) >= 10 and "." not in digits):
            words = " ".join(cardinal(digit, language) for digit in digits if digit != ".")
        else:
            words = cardinal(digits, language)
        return f"{blank}{words}{blank}"

    text = re.sub(_NUMBER, say, text)
    if language == "de":
        text = re.sub(r"\beins\s+(?=[A-ZÄÖÜ])", "ein ", text)
    if language == "tr":  # an ending joins its number: "1937'de"
        text = re.sub(r"(?<=\w) (?='\w)", "", text)
    return text.replace("십월", "시월").replace("육월", "유월") if language == "ko" else text


_ROMAN = re.compile(r"(?<![\w.])(?=[IVX]{2,})(X{0,3})(IX|IV|V?I{0,3})(e|ème)?(\.(?=\s\w))?(?!\w)")
_NUMBERED = ("War", "Part", "Chapter", "Act", "Volume", "Type", "Phase", "Section", "Book", "Class", "Level", "Bowl")
_ORDINAL_KINGS = ("de", "pl", "cs", "hu", "tr", "ru")


def _roman(text: str, language: str) -> str:
    """Kings and centuries: Louis XIV, XIX. yüzyıl."""
    if language in ("zh", "ja", "ko", "fa", "ar", "hi"):
        return text
    ones = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]

    def say(match: re.Match[str]) -> str:
        number = str(10 * len(match[1]) + ones.index(match[2]))
        word = text[: match.start()].split()[-1] if text[: match.start()].split() else ""
        name = word[:1].isupper() and word.isalpha() and len(word) > 1
        if match[3] or match[4]:
            return ordinal(number, language)
        if language == "en":
            if word in _NUMBERED or (re.match(r"\s*(?:century|and|$)", text[match.end() :]) and not name):
                return cardinal(number, "en")
            return f"the {ordinal(number, 'en')}" if name else match[0]
        if name and language in ("de", "nl"):
            return f"{'der' if language == 'de' else 'de'} {ordinal(number, language)}"
        if language in _ORDINAL_KINGS or language == "it" or (language in ("es", "pt") and name and int(number) <= 10):
            return ordinal(number, language)
        return cardinal(number, language)

    return _ROMAN.sub(say, text)
