"""Which languages there are: those that have a file, none of which is read for that.

In: the names of the files in `text/languages`.
Out: codes of languages in alphabetical order.
"""

import re
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "text" / "languages"


def language_codes() -> tuple[str, ...]:
    """A file whose name has two or three letters is a language's; the others there are shared."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.py") if re.fullmatch("[a-z]{2,3}", path.stem)))


LANGUAGES = language_codes()
