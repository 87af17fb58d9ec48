"""Training the speech model: text to mel.

In: batches of clips with their texts and references.
Out: a `Target`.
"""

import functools
import itertools
import threading
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from myxtts.batch import Batch, PackedBatch, Sizes, StepInput
from myxtts.checkpoint.packaged import find_vocoder, read_vocoder
from myxtts.config.config import TrainingConfig, XTTSConfig
from myxtts.data.dataset import HostDataset
from myxtts.devices import Place
from myxtts.inference.synthesizer import Script, Synthesizer
from myxtts.inference.tensorflow_engine import AcousticEngine, TensorFlowEngine, VocoderEngine
from myxtts.models.layers import unstack_frames
from myxtts.models.xtts import XTTS, XTTSOutput
from myxtts.pipeline.featurize import Featurizer
from myxtts.pipeline.stage_error import naming_stage
from myxtts.pipeline.transfer import join
from myxtts.training.flat_start import FlatStart
from myxtts.training.losses import count_batch, speech_losses, total_loss
from myxtts.training.metrics import Pictures
from myxtts.training.objective import LossTerm, Objective, ObjectiveResult, Phase
from myxtts.training.sampler import SampleGenerator
from myxtts.training.sets import sample_places
from myxtts.training.targets.target import Samples, loader_of, recordings_of


class SpeechObjective:
    """Mel, prior, durations and pitch."""

    def __init__(self, config: TrainingConfig):
        self._config = config

    def __call__(self, model: XTTS, batch: Batch, sizes: Sizes, phase: Phase) -> ObjectiveResult:
        output: XTTSOutput = model(batch, phase.guidance)
        losses = speech_losses(output, batch.weights, count_batch(sizes, model.frames_per_step))
        loss = total_loss(losses, self._config)
        return ObjectiveResult({"loss": loss, **losses}, [LossTerm(loss, model.trainable_variables)], output)


class SpeechTarget:
    """Text to mel."""

    too_large = "one clip is too much: lower `data.max_seconds`, or choose a smaller `model.size`"

    def __init__(self, config: XTTSConfig, symbols: int, card: bool):
        self._config, self._symbols, self._card = config, symbols, card
        self.objective: Objective = SpeechObjective(config.training)

    def adversarial(self, step: int) -> bool:
        return False

    def make_model(self) -> XTTS:
        config = self._config
        return XTTS(config.model, self._symbols, config.audio.n_mels, config.training.mixed_precision, self._card)

    def make_featurizer(self) -> Featurizer:
        return Featurizer(self._config)

    def begin(
        self, model: XTTS, feed: Iterator[StepInput], dataset: HostDataset, place: Place, stop: threading.Event
    ) -> Iterator[StepInput]:
        """Sweeps over the first batches to set up the alignment guide."""
        config = self._config.training
        if not config.flat_start_sweeps or not config.guide_steps:
            return feed
        wanted = max(1, min(config.flat_start_clips // self._config.step_clips, dataset.batches_per_epoch))
        first = list(itertools.islice(feed, wanted))
        flat_start = FlatStart(model)
        for sweep, (number, batch) in itertools.product(range(config.flat_start_sweeps), enumerate(first)):
            if stop.is_set():
                return iter(())
            names = functools.partial(dataset.names, number)
            with naming_stage("flat start", number, names), place.lock, tf.device(place.device):
                flat_start.add(join(batch, place.device), first=sweep == 0)
                if number == len(first) - 1:
                    flat_start.finish_sweep()
        return itertools.chain(first, feed)

    def draw(self, packed: PackedBatch, output: XTTSOutput) -> Pictures:
        batch = packed.unpack()
        step, frames, tokens = self._config.model.frames_per_step, int(batch.mel_lengths[0]), int(batch.text_lengths[0])
        spoken = unstack_frames(output.mel, step)[0, :frames].numpy()
        return Pictures(batch.mel[0, :frames].numpy(), spoken, output.path[0, :tokens, : frames // step].numpy())

    def make_generator(self, wanted: Samples) -> SampleGenerator:
        dataset, place = wanted.dataset, wanted.place
        places = sample_places(dataset, wanted.sentences)
        clips = [dataset.pack[int(dataset.clips[number])] for number in places]
        scripts = [
            Script(clip.text, clip.language, (dataset.tokens(number),), {})
            for clip, number in zip(clips, places, strict=True)
        ]
        # A speaker without a voice of its own borrows the first one.
        speakers = [clip.speaker if clip.speaker in wanted.voices else None for clip in clips]
        audio = self._config.audio
        with place.lock, tf.device(place.device):
            model = XTTS(self._config.model, self._symbols, audio.n_mels)
            model.create_variables()
            path, words = find_vocoder(None, audio)
            vocoder = read_vocoder(path, audio, place.device)
        acoustic = AcousticEngine(model, place)
        engine = TensorFlowEngine(acoustic, VocoderEngine(vocoder, audio, place))
        synthesizer = Synthesizer(engine, wanted.tokenizer, wanted.voices, self._config, words)
        put = loader_of(model, place)

        def load(average: dict[str, np.ndarray]) -> None:
            put(average)
            acoustic.forget_voice()

        def say(number: int) -> np.ndarray:
            return synthesizer.speak(scripts[number], synthesizer.voice(speaker=speakers[number]))

        return SampleGenerator(
            texts=[clip.text for clip in clips],
            languages=[clip.language for clip in clips],
            load=load,
            say=say,
            recordings=recordings_of(dataset, places),
            speakers=[clip.speaker for clip in clips],
        )
