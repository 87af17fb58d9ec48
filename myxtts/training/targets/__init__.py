"""What can be trained: for each kind of model its losses, its batches and what the loop has to know of it."""

from myxtts.config.config import XTTSConfig
from myxtts.training.targets.speech import SpeechTarget
from myxtts.training.targets.target import Target
from myxtts.training.targets.vocoder import VocoderTarget


def make_target(config: XTTSConfig, symbols: int, card: bool = False) -> Target:
    """What `training.target` names, in the form that a card or the CPU is quick at."""
    return SpeechTarget(config, symbols, card) if config.kind.speaks else VocoderTarget(config, card)
