"""One file for each language, named by its code and read when the language is first spoken.

In: a language's code.
Out: its `Language`.
"""

import functools
import importlib

from myxtts.config.languages import language_codes
from myxtts.errors import UsageError
from myxtts.text.languages.language import Language


@functools.cache
def get_language(code: str) -> Language:
    """What is known of a language.

    Raises:
        UsageError: there is no file for it.
    """
    codes = language_codes()
    if code not in codes:
        raise UsageError(f"there is no language {code!r}; choose one of {', '.join(codes)}")
    return importlib.import_module(f"{__name__}.{code}").LANGUAGE
