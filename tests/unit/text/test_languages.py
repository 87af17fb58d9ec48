"""What holds for every language, and that one more is one more file."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import myxtts
from myxtts.config.config import DataConfig
from myxtts.config.languages import LANGUAGES
from myxtts.errors import UsageError
from myxtts.text.languages import get_language
from myxtts.text.languages.language import Language, signs
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.tokenizer import Tokenizer, spell
from tests.documents import ROOT

SENTENCES = sorted((ROOT / "tests" / "data" / "sentences").glob("*.txt"))

GREEK = """
from myxtts.text.languages.language import Language, months, signs, units

LANGUAGE = Language(
    code="el",
    point="κόμμα",
    minus="μείον",
    percent=("τοις εκατό",),
    signs=signs("συν", "ίσον", "και", "παπάκι", "μοίρες"),
    scripts=("GREEK",),
    pauses={";": "?", "·": ","},
    number=lambda number, language: ("μηδέν", "ένα", "δύο", "τρία")[number],
    abbreviations={"κ.": "κύριος"},
    money={"€": ("ευρώ",)},
)
"""

ASK = """
import json, sys, myxtts
from myxtts.cli.parser import make_parser
from myxtts.scoring.words import plain
from myxtts.text.normalize import normalize
from myxtts.text.phonemes import phonemize
from myxtts.text.sentences import split_sentences
from myxtts.text.tokenizer import Tokenizer, spell
texts = json.loads(sys.stdin.read())
answers = {"home": myxtts.__file__}
for code, text in texts.items():
    make_parser().parse_args(["prepare", "folder", "--language", code])
    units = phonemize(normalize(text, code), code)
    tokenizer = Tokenizer.learn([units], "phonemes", [code])
    answers[code] = {
        "normalised": normalize(text, code), "phonemes": units, "sentences": split_sentences(text, code),
        "characters": "".join(spell(text, code, "characters")), "plain": plain(text, code),
        "tokens": len(tokenizer.encode(text, code)[0]),
    }
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def with_two_more(tmp_path_factory) -> dict:
    """What a copy of the package says to two languages whose files were dropped into it."""
    home = tmp_path_factory.mktemp("copy") / "myxtts"
    shutil.copytree(Path(myxtts.__file__).parent, home, ignore=shutil.ignore_patterns("voice", "__pycache__"))
    guide = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    ukrainian = re.search(r"^## A language\n.*?```python\n(.*?)^ *```", guide, re.DOTALL | re.MULTILINE)
    assert ukrainian is not None
    for code, content in (("uk", textwrap.dedent(ukrainian[1])), ("el", GREEK)):
        (home / "text" / "languages" / f"{code}.py").write_text(content, encoding="utf-8")
    texts = {"uk": "Тут 21 км і 5 км, тобто 50 %. Так!", "el": "Έχει 2 €; Ναι· ο κ. Νίκος."}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=home.parent,
        env=os.environ | {"PYTHONPATH": str(home.parent), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert Path(answers["home"]).parent == home
    return answers


def test_the_file_of_the_guide_is_a_language(with_two_more):
    answer = with_two_more["uk"]
    assert answer["normalised"] == "Тут двадцять один кілометр і п'ять кілометрів, тобто п'ятдесят відсотків. Так!"
    assert answer["sentences"] == ["Тут 21 км і 5 км, тобто 50 %.", "Так!"]
    assert "ˈu" in answer["phonemes"][:3] and answer["phonemes"][-1] == "!"
    assert answer["tokens"] == len(answer["phonemes"]) + 2


def test_a_language_may_have_its_own_letters_numbers_and_pauses(with_two_more):
    answer = with_two_more["el"]
    assert answer["normalised"] == "Έχει δύο ευρώ; Ναι· ο κύριος Νίκος."
    assert answer["sentences"] == ["Έχει 2 €;", "Ναι· ο κ. Νίκος."]
    assert [unit for unit in answer["phonemes"] if unit in ",.!?"] == ["?", ",", "."]
    assert answer["characters"] == "έχει δύο ευρώ? ναι, ο κύριος νίκος."
    assert answer["plain"] == "έχει δύο ευρώ ναι ο κύριος νίκος"
    assert answer["tokens"] == len(answer["phonemes"]) + 2


def test_what_a_language_leaves_out_is_read_by_the_general_rules():
    plain = Language("xx", point=".", minus="-", percent=("%",), signs=signs("+", "=", "&", "@", "°"))
    assert not plain.months and plain.read is None and plain.number is None
    assert [plain.plural(digits) for digits in ("1", "0", "2", "1.5")] == [0, 1, 1, 1]


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_states_what_is_required_and_nothing_that_contradicts_itself(code):
    language = get_language(code)
    assert isinstance(language, Language) and language.code == code
    assert language.point and language.minus and {"+", "=", "&", "@", "°"} <= set(language.signs)
    assert len(language.months) in (0, 12)
    assert {"year", "month", "day"} == set(re.findall(r"{(\w+)}", language.date))
    assert {"hour", "minute"} == set(re.findall(r"{(\w+)}", language.time))
    assert {"above", "below"} <= set(re.findall(r"{(\w+)}", language.fraction))
    for forms in (language.percent, *language.money.values(), *language.units.values(), *language.cents.values()):
        assert 1 <= len(forms) <= 3 and all(forms)
    assert set(language.cents) <= set(language.money)
    assert bool(language.of) == bool(language.of_behind)
    for scale in (*language.of_behind, *language.short_scales.values()):
        assert re.fullmatch(language.scales, scale)
    known = language.abbreviations
    assert all(name == name.lower() for name in known)
    assert {*language.abbreviation_fits, *language.ending_abbreviations} <= set(known)
    assert set(language.pauses.values()) <= set(",.!?")
    assert len(language.scripts) > 0 or not language.vowel_marks


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_language_has_tests_of_its_own(code):
    wanted = Path(__file__).parent / "languages" / f"test_{code}.py"
    assert wanted.is_file(), f"write {wanted}"


@pytest.mark.parametrize("source", SENTENCES, ids=lambda source: source.stem)
def test_sixty_sentences_of_every_language_are_spoken(source):
    language = source.stem
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


def test_the_eighteen_languages_of_the_documents_are_there_with_sentences():
    documented = "en fa es fr de it pt pl tr ru nl cs ar zh ja hu ko hi".split()
    assert set(documented) <= set(LANGUAGES) and set(documented) <= {source.stem for source in SENTENCES}


def test_every_language_speaks_numbers():
    for language in LANGUAGES:
        assert phonemize(normalize("7 21 1984", language), language), language


def test_a_language_that_is_not_there_is_refused_with_those_that_are():
    for ask in (lambda: normalize("x", "xx"), lambda: get_language("shared"), lambda: DataConfig(language="xx")):
        with pytest.raises(UsageError, match="choose one of ar, cs, de, en") as refused:
            ask()
        assert "\n" not in str(refused.value)


def test_the_list_of_languages_is_had_without_reading_any():
    code = "import sys, myxtts.cli.parser; print([n for n in sys.modules if n.startswith('myxtts.text')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr
