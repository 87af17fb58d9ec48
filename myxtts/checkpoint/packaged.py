"""Vocoders to speak with, and how a run becomes small enough to ship.

In: a checkpoint.
Out: its vocoder, or a checkpoint with the averaged weights alone, in half precision.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import GriffinLim
from myxtts.checkpoint.folder import Checkpoint, find_checkpoint, read_checkpoint
from myxtts.checkpoint.state import RunState
from myxtts.checkpoint.weights import AVERAGE, load_average, only_resumes
from myxtts.config.config import AudioConfig, TrainingConfig, VocoderConfig
from myxtts.config.load import lines_of_difference, load
from myxtts.errors import UsageError
from myxtts.models.vocoder import Vocoder
from myxtts.voice import GRIFFIN_LIM, SHIPPED, VOCODER


def find_vocoder(name: str | None, audio: AudioConfig) -> tuple[Path | None, str]:
    """The checkpoint of a vocoder and a word for it; no checkpoint means Griffin-Lim.

    Args:
        name: a run folder, `griffin-lim`, or None for the one in the package where it reads these mels.
        audio: the mel definition.
    """
    if name == GRIFFIN_LIM:
        return None, GRIFFIN_LIM
    if name is not None:
        if not Path(name).exists() and name not in SHIPPED:
            raise UsageError(f"no such vocoder: {name}; name the run folder of a vocoder, or {GRIFFIN_LIM}")
        return find_checkpoint(Path(name)), name
    if not VOCODER.is_dir():
        return None, f"{GRIFFIN_LIM} (no vocoder is in this package)"
    if lines := lines_of_difference(audio, load(VOCODER / "config.yaml").audio, "audio"):
        return None, f"{GRIFFIN_LIM} (the vocoder in the package reads other mels: {'; '.join(lines)})"
    return VOCODER, "the one in the package"


def read_vocoder(path: Path | None, audio: AudioConfig, device: str) -> Vocoder | GriffinLim:
    """The vocoder of a checkpoint, for mels of that definition; Griffin-Lim where none is named.

    Raises:
        UsageError: it is no vocoder, or of another mel definition.
    """
    if path is None:
        return GriffinLim()
    saved = read_checkpoint(path, to_resume=False)
    if saved.config.kind.speaks:
        raise UsageError(f"{path} is a speech model; `vocoder` needs the run folder of a vocoder")
    if lines := lines_of_difference(audio, saved.config.audio, "audio"):
        raise UsageError(f"the vocoder {path} reads other mels: {'; '.join(lines)}")
    with tf.device(device):
        model = Vocoder(saved.config.vocoder, audio)
        model.create_variables()
        load_average(model, saved.arrays, besides=["discriminators"], source=path)
    return model


def shrink(checkpoint: Checkpoint) -> Checkpoint:
    """What speaking and fine-tuning need of a checkpoint: no optimizer, nothing of the machine."""
    arrays = {
        name: array.astype(np.float16) if name.startswith(f"{AVERAGE}/") else array
        for name, array in checkpoint.arrays.items()
        if not only_resumes(name)
    }
    data = replace(checkpoint.config.data, train_data="", val_data="", cache_dir="")
    training = TrainingConfig(target=checkpoint.config.training.target)
    usual = VocoderConfig()
    vocoder = replace(
        checkpoint.config.vocoder,
        discriminators_after=usual.discriminators_after,
        adversarial_loss=usual.adversarial_loss,
        feature_matching_loss=usual.feature_matching_loss,
    )
    config = replace(checkpoint.config, data=data, training=training, vocoder=vocoder)
    speaks = checkpoint.config.kind.speaks
    voices = {name: mel.astype(np.float16) for name, mel in checkpoint.voices.items() if speaks}
    return Checkpoint(config, checkpoint.tokenizer, arrays, voices, RunState())
