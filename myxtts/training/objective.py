"""What a model is trained for: its losses, and which weights each of them moves.

In: a model and a batch of its kind.
Out: `ObjectiveResult`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import tensorflow as tf

from myxtts.batch import Batch, Sizes, WaveBatch
from myxtts.config.config import TrainingConfig
from myxtts.models.discriminators import VocoderGAN
from myxtts.models.xtts import XTTS, XTTSOutput
from myxtts.training.losses import count_batch, speech_losses, total_loss
from myxtts.training.wave_losses import adversarial_losses, inner, reconstruction_losses

Phase: TypeAlias = tf.Tensor | bool  # guidance of the alignment, or True where discriminators take part


class LossTerm(NamedTuple):
    """A loss and the weights that are to lower it."""

    loss: tf.Tensor
    weights: Sequence[tf.Variable]


class ObjectiveResult(NamedTuple):
    """What an objective says of a batch."""

    losses: dict[str, tf.Tensor]  # by name; `loss` is what validation goes by
    terms: list[LossTerm]
    output: Any


class Objective(Protocol):
    """Losses of one kind of model. `sizes` are those of the whole batch, of which `batch` may be a part.

    `phase` is what the run changes as it goes on: a number on the device, or a switch that is traced anew.
    """

    def __call__(self, model: Any, batch: Any, sizes: Sizes, phase: Phase) -> ObjectiveResult: ...


class SpeechObjective:
    """Mel, prior and durations. `phase` is how much the guide decides the alignment."""

    def __init__(self, config: TrainingConfig):
        self._config = config

    def __call__(self, model: XTTS, batch: Batch, sizes: Sizes, phase: Phase) -> ObjectiveResult:
        output: XTTSOutput = model(batch, phase)
        losses = speech_losses(output, batch.weights, count_batch(sizes, model.frames_per_step))
        loss = total_loss(losses, self._config)
        return ObjectiveResult({"loss": loss, **losses}, [LossTerm(loss, model.trainable_variables)], output)


class VocoderObjective:
    """Spectra first, discriminators after: they take part where `phase` is True."""

    def __init__(self, config: TrainingConfig):
        self._config = config

    def __call__(self, model: VocoderGAN, batch: WaveBatch, sizes: Sizes, phase: Phase) -> ObjectiveResult:
        share = batch.weights / tf.maximum(tf.reduce_sum(sizes.weights), 1.0)
        waves, scores = model.vocoder(batch.mel, batch.noise)
        losses = reconstruction_losses(batch, waves, scores, share, model.audio)
        loss = losses["spectrum"] + losses["mel"] + self._config.pitch_loss * losses["pitch"]
        if phase is not True:
            return ObjectiveResult({"loss": loss, **losses}, [LossTerm(loss, model.vocoder.trainable_variables)], waves)
        made, recorded = (model.discriminators(inner(both, model.audio)) for both in (waves, batch.waves))
        found, weights = adversarial_losses(made, recorded, share), model.config
        losses |= found
        generator = loss + weights.adversarial_loss * found["adversarial"]
        generator += weights.feature_matching_loss * found["feature_matching"]
        terms = [
            LossTerm(generator, model.vocoder.trainable_variables),
            LossTerm(found["discriminator"], model.discriminators.trainable_variables),
        ]
        return ObjectiveResult({"loss": loss, **losses}, terms, waves)


def objective_for(model: Any, config: TrainingConfig) -> Objective:
    """The objective of a model, by its kind."""
    return VocoderObjective(config) if isinstance(model, VocoderGAN) else SpeechObjective(config)
