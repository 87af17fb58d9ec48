"""The prepared clips of a run.

In: the dataset folders that the settings name.
Out: their packs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from myxtts.config.config import XTTSConfig
from myxtts.data.cache import learn_tokenizer, prepare, require_clips
from myxtts.data.pack import Pack
from myxtts.errors import RunError, UsageError
from myxtts.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Packs:
    """What is trained on and what is held out; the same pack twice where clips are held out of it."""

    train: Pack
    held_out: Pack

    def learn_tokenizer(self, config: XTTSConfig) -> Tokenizer:
        """The symbols and languages of both."""
        return learn_tokenizer([self.train, self.held_out], config)


def prepare_packs(config: XTTSConfig, prepare: Callable[[Path, XTTSConfig], Pack] = prepare) -> Packs:
    """The clips that the settings name, prepared where they have not been.

    Args:
        config: all settings.
        prepare: opens the pack of a folder.

    Raises:
        UsageError: a folder cannot be read.
        RunError: too few of its clips can be used, or the cache cannot be written.
    """
    if not config.data.train_data:
        raise UsageError("no training data; set `data.train_data`")
    train = prepare(Path(config.data.train_data), config)
    require_clips(train, config)
    if not config.data.val_data:
        return Packs(train, train)
    held_out = prepare(Path(config.data.val_data), config)
    if not len(held_out):
        raise RunError(f"{config.data.val_data}: no clip can be used for validation")
    return Packs(train, held_out)
