"""Training the vocoder: mel to waves.

In: batches of slices of clips.
Out: a `Target`.
"""

import threading
from collections.abc import Iterator

import tensorflow as tf

from myxtts.audio.mel import log_mel, reference_mel
from myxtts.batch import PackedBatch, Sizes, StepInput, WaveBatch
from myxtts.config.config import TrainingConfig, XTTSConfig
from myxtts.data.dataset import HostDataset
from myxtts.devices import Place
from myxtts.inference.tensorflow_engine import VocoderEngine
from myxtts.models.discriminators import VocoderGAN
from myxtts.models.vocoder import Vocoder
from myxtts.pipeline.featurize import Featurizer, WaveFeaturizer
from myxtts.training.metrics import Pictures
from myxtts.training.objective import LossTerm, Objective, ObjectiveResult, Phase
from myxtts.training.sampler import SampleGenerator
from myxtts.training.sets import sample_places
from myxtts.training.targets.target import Samples, loader_of, recordings_of
from myxtts.training.wave_losses import adversarial_losses, inner, reconstruction_losses


class VocoderObjective:
    """Spectra first, discriminators after."""

    def __init__(self, config: TrainingConfig):
        self._config = config

    def __call__(self, model: VocoderGAN, batch: WaveBatch, sizes: Sizes, phase: Phase) -> ObjectiveResult:
        share = batch.weights / tf.maximum(tf.reduce_sum(sizes.weights), 1.0)
        waves, scores = model.vocoder(batch.mel, batch.noise)
        losses = reconstruction_losses(batch, waves, scores, share, model.audio)
        loss = losses["spectrum"] + losses["mel"] + self._config.pitch_loss * losses["pitch"]
        if not phase.adversarial:
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


class VocoderTarget:
    """Mel to waves."""

    too_large = "one slice is too much: lower `vocoder.slice_frames` or `vocoder.width` in a YAML file"

    def __init__(self, config: XTTSConfig, card: bool):
        self._config, self._card = config, card
        self.objective: Objective = VocoderObjective(config.training)

    def adversarial(self, step: int) -> bool:
        return step >= self._config.vocoder.discriminators_after

    def make_model(self) -> VocoderGAN:
        return VocoderGAN(self._config.vocoder, self._config.audio, self._card)

    def make_featurizer(self) -> Featurizer:
        return WaveFeaturizer(self._config)

    def begin(
        self, model: VocoderGAN, feed: Iterator[StepInput], dataset: HostDataset, place: Place, stop: threading.Event
    ) -> Iterator[StepInput]:
        return feed

    def draw(self, packed: PackedBatch, output: tf.Tensor) -> Pictures:
        return Pictures(packed.unpack().mel[0].numpy(), log_mel(output[:1], self._config.audio)[0].numpy(), None)

    def make_generator(self, wanted: Samples) -> SampleGenerator:
        dataset, place, audio = wanted.dataset, wanted.place, self._config.audio
        places = sample_places(dataset, wanted.sentences)
        recordings = recordings_of(dataset, places)
        mels = [reference_mel(wave, audio, 1) for wave in recordings]
        with place.lock, tf.device(place.device):
            model = Vocoder(self._config.vocoder, audio)
            model.create_variables()
        engine = VocoderEngine(model, audio, place)
        clips = [dataset.pack[int(dataset.clips[number])] for number in places]
        return SampleGenerator(
            texts=[clip.text for clip in clips],
            languages=[clip.language for clip in clips],
            load=loader_of(model, place, besides=("discriminators",)),
            say=lambda number: engine.wave(mels[number]),
            recordings=recordings,
            speakers=[clip.speaker for clip in clips],
            copies=True,
        )
