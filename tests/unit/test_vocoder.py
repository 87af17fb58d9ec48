"""Pitch, pulses, the vocoder and its discriminators by themselves."""

from dataclasses import dataclass

import keras
import numpy as np
import pytest
import soundfile
import tensorflow as tf

from myxtts.audio.mel import LOG_DEVIATION, LOG_MEAN, correct_magnitudes, log_mel, mel_matrix
from myxtts.audio.pitch import BYTE_PITCHES, HIGHEST, LOWEST, encode_pitch, track_pitch
from myxtts.batch import PackedBatch, WaveBatch
from myxtts.checkpoint.weights import load_average
from myxtts.config.load import build, flatten
from myxtts.data.cache import learn_tokenizer, prepare
from myxtts.data.dataset import HostDataset
from myxtts.models.discriminators import VocoderGAN
from myxtts.models.vocoder import log_envelope, pulses
from myxtts.pipeline.featurize import WaveFeaturizer
from myxtts.training.step import TrainStep
from myxtts.training.targets import make_target
from myxtts.training.targets.vocoder import VocoderObjective
from tests.helpers import flat

CONFIG = build(
    {"vocoder.width": 16, "vocoder.blocks": 1, "vocoder.pitch_width": 16, "vocoder.pitch_blocks": 1,
     "vocoder.discriminator_width": 4, "vocoder.slice_frames": 32, "training.target": "vocoder", "data.batch_size": 4,
     "data.val_clips": 0}
)  # fmt: skip
AUDIO = CONFIG.audio
RATE, HOP = AUDIO.sample_rate, AUDIO.hop_samples


def glide(low: float, high: float, seconds: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """A buzz whose pitch rises, and that pitch at every sample."""
    pitch = np.geomspace(low, high, int(seconds * RATE))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    wave = sum(np.cos(harmonic * phase) / harmonic for harmonic in range(1, 12))
    return (0.1 * wave).astype(np.float32), pitch


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> HostDataset:
    """Glides of four lengths, the first shorter than a slice."""
    home = tmp_path_factory.mktemp("glides")
    (home / "set" / "wavs").mkdir(parents=True)
    for number, frames in enumerate((24, 40, 56, 64)):
        soundfile.write(home / "set" / "wavs" / f"{number}.wav", glide(110, 220, frames * HOP / RATE)[0], RATE)
    (home / "set" / "metadata.csv").write_text("".join(f"{number}|a\n" for number in range(4)))
    values = {"data.cache_dir": str(home / "cache"), "data.trim_silence": False, "data.min_seconds": 0.1}
    config = build({**{key: value for key, value in flatten(CONFIG).items() if key != "model.size"}, **values})
    pack = prepare(home / "set", config)
    assert len(pack) == 4, pack.rejections
    return HostDataset(pack, learn_tokenizer([pack], config), config)


FEATURES = WaveFeaturizer(CONFIG)


def make_slices(dataset: HostDataset, number: int) -> PackedBatch:
    raw = dataset.assemble(0, np.array([0, 1, 2, 3]), number)
    floats = FEATURES(tf.constant(raw.audio), tf.constant(raw.spans))
    return PackedBatch(floats, tf.constant(raw.labels), FEATURES.layout)


@pytest.fixture(scope="module")
def packed(dataset) -> PackedBatch:
    return make_slices(dataset, 3)


@pytest.fixture(scope="module")
def batch(packed) -> WaveBatch:
    return packed.unpack()


def make_step(**training) -> TrainStep:
    keras.utils.set_random_seed(0)
    config = build({f"training.{name}": value for name, value in {"target": "vocoder", **training}.items()})
    model = VocoderGAN(CONFIG.vocoder, AUDIO)
    model.create_variables()
    return TrainStep(model, VocoderObjective(config.training), config.training)


@pytest.mark.parametrize(("low", "high"), [(80, 120), (150, 300), (300, 480)])
def test_pitch_follows_a_glide_within_one_percent(low, high):
    wave, pitch = glide(low, high)
    found = track_pitch([wave], AUDIO)[0][4:-4]
    wanted = pitch[::HOP][4 : 4 + len(found)]
    assert (found > 0).all()
    assert np.abs(found[: len(wanted)] / wanted - 1).max() < 0.01


def test_noise_and_silence_have_no_pitch():
    noise = np.random.default_rng(0).normal(0, 0.1, RATE).astype(np.float32)
    assert (np.stack(track_pitch([noise, np.zeros_like(noise)], AUDIO)) > 0).mean() < 0.05


def test_waves_are_tracked_side_by_side_as_they_are_alone():
    waves = [glide(90, 300, seconds)[0] for seconds in (0.3, 1.0, 0.6)]
    waves.append(np.random.default_rng(1).normal(0, 0.1, RATE // 2).astype(np.float32))
    for wave, found in zip(waves, track_pitch(waves, AUDIO), strict=True):
        np.testing.assert_array_equal(track_pitch([wave], AUDIO)[0], found)
    assert track_pitch([], AUDIO) == []


def test_a_byte_keeps_a_pitch_within_half_a_percent():
    pitch = np.concatenate([[0.0], np.geomspace(LOWEST, HIGHEST, 999)]).astype(np.float32)
    kept = BYTE_PITCHES[encode_pitch(pitch)]
    assert kept[0] == 0.0 and np.abs(kept[1:] / pitch[1:] - 1).max() < 0.005
    assert encode_pitch(np.array([20.0, 900.0])).tolist() == [1, 255]  # beyond the ends, the ends


def test_pulses_have_the_pitch_they_were_asked_for_and_unit_power():
    wanted = np.geomspace(100, 300, 80).astype(np.float32)
    wave = pulses(tf.constant(wanted[None]), AUDIO)
    assert wave.shape == (1, 79 * HOP)
    soft = np.convolve(wave[0], np.hanning(32), "same").astype(np.float32)  # as voices are, unlike bare pulses
    found = track_pitch([soft], AUDIO)[0]
    np.testing.assert_allclose(found[4:-4], wanted[4:-4], rtol=0.01)
    assert float(tf.reduce_mean(wave**2)) == pytest.approx(1.0, rel=0.05)


def test_a_long_tone_keeps_its_pitch():
    wave = pulses(tf.fill([1, 6000], 217.0), AUDIO)[:, -2 * RATE :]  # the last two of seventy seconds
    np.testing.assert_allclose(track_pitch([wave[0].numpy()], AUDIO)[0][8:-8], 217.0, rtol=2e-3)


def test_noise_through_the_envelope_of_a_mel_has_that_mel():
    wave, _ = glide(120, 200)
    noise = tf.random.stateless_normal([1, RATE], [1, 1]) * 0.05
    half = AUDIO.n_fft // 2
    flat = tf.signal.stft(
        tf.pad(tf.random.stateless_normal([1, RATE], [2, 2]), [[0, 0], [half, half]]), AUDIO.n_fft, HOP
    )
    shaped = tf.abs(flat) * tf.exp(log_envelope(log_mel(noise, AUDIO), AUDIO))
    ratio = tf.reduce_mean(shaped) / tf.reduce_mean(tf.abs(tf.signal.stft(noise, AUDIO.n_fft, HOP)))
    assert 0.7 < float(ratio) < 1.4
    assert log_envelope(log_mel(tf.constant(wave[None]), AUDIO), AUDIO).shape[-1] == AUDIO.n_fft // 2 + 1


def test_a_slice_is_the_clip_itself_with_its_mel_and_pitch(dataset, packed, batch):
    assert packed.mel_shape == (4, 32, 80)
    assert batch.waves.shape == batch.noise.shape == (4, 31 * HOP)
    assert batch.mel_lengths.numpy().tolist() == [25, 32, 32, 32]  # the first clip is shorter than a slice
    whole = log_mel(tf.constant(dataset.pack.wave(3)[None].astype(np.float32) / 32768.0), AUDIO)[0].numpy()
    ours, pitch = batch.mel[3].numpy(), dataset.pack.pitch(3)
    distance = [np.abs(whole[first : first + 32] - ours).max() for first in range(len(whole) - 31)]
    first = int(np.argmin(distance))
    assert distance[first] < 1e-3
    np.testing.assert_array_equal(batch.pitch[3].numpy(), pitch[first : first + 32])
    voiced = BYTE_PITCHES[batch.pitch[3].numpy()]
    assert ((voiced > 105) & (voiced < 225)).mean() > 0.8


def test_the_number_of_a_batch_decides_its_slices(dataset, packed):
    np.testing.assert_array_equal(make_slices(dataset, 3).floats, packed.floats)
    other, batch = make_slices(dataset, 4).unpack(), packed.unpack()
    assert np.abs(other.mel.numpy() - batch.mel.numpy()).max() > 0.1
    assert np.abs(other.noise.numpy() - batch.noise.numpy()).max() > 0.1


@dataclass(frozen=True)
class History:
    """A short training: twenty steps by spectra, forty with discriminators."""

    step: TrainStep
    losses: list[dict[str, tf.Tensor]]
    weights: dict[int, np.ndarray]  # after so many steps
    traces: int


@pytest.fixture(scope="module")
def history(packed) -> History:
    step = make_step(lr=2e-3, warmup_steps=0)
    losses, weights = [], {0: flat(step.arrays())}
    for number in range(1, 61):
        losses.append(step(packed, number > 20))
        weights[number] = flat(step.arrays())
    return History(step, losses, weights, step.traces)


def test_discriminators_take_part_from_the_step_on_that_was_asked_for():
    vocoder = build({"training.target": "vocoder", "vocoder.discriminators_after": 7})
    assert [make_target(vocoder, 9).adversarial(step) for step in (6, 7)] == [False, True]
    assert not make_target(build({}), 9).adversarial(10**6)


def test_discriminators_learn_and_take_part_only_when_they_are_asked(history):
    size = sum(int(np.prod(v.shape)) for v in history.step.model.vocoder.trainable_variables)
    before, first, alone, opposed = (history.weights[number] for number in (0, 1, 20, 21))
    assert "discriminator" not in history.losses[19]
    assert np.abs(first[:size] - before[:size]).max() > 1e-4
    assert np.abs(first[size:] - before[size:]).max() < 1e-5  # decay only
    assert float(history.losses[20]["discriminator"]) > 0
    assert float(history.losses[20]["adversarial"]) > 0
    assert np.abs(opposed[size:] - alone[size:]).max() > 2e-4
    assert history.traces == 2


def test_training_lowers_the_loss_and_the_discriminators_tell_the_two_apart(history):
    losses = history.losses
    assert float(losses[19]["loss"]) < 0.8 * float(losses[0]["loss"])
    assert float(losses[-1]["discriminator"]) < 0.9 * float(losses[20]["discriminator"])


def test_parts_of_a_batch_give_what_the_whole_gives(packed, history, monkeypatch):
    gradient, one = history.step.find_gradient(packed, True)
    monkeypatch.setattr(history.step, "parts", 2)
    parts, other = history.step.find_gradient(packed, True)
    assert history.step.traces == history.traces + 1  # for all parts
    assert float(tf.norm(parts - gradient)) < 1e-3 * float(tf.norm(gradient))
    for name in ("loss", "spectrum", "mel", "pitch", "adversarial", "discriminator"):
        assert float(other[name]) == pytest.approx(float(one[name]), rel=1e-4), name


def test_a_vocoder_is_read_out_of_what_was_trained_with_discriminators(batch, history):
    step, fresh = history.step, VocoderGAN(CONFIG.vocoder, AUDIO)
    fresh.create_variables()
    load_average(fresh.vocoder, step.arrays(), besides=["discriminators"])
    with step.parameters.scope(step.parameters.slices(step.average)):
        ours = step.model.vocoder(batch.mel, batch.noise)[0]
    np.testing.assert_allclose(fresh.vocoder(batch.mel, batch.noise)[0], ours, atol=1e-5)


def test_corrected_magnitudes_have_the_mel_they_should_have_and_keep_what_no_band_holds():
    wave, _ = glide(120, 200)
    mel = log_mel(tf.constant(wave[None]), AUDIO)
    flat = tf.ones([1, mel.shape[1], AUDIO.n_fft // 2 + 1])
    forward = tf.constant(mel_matrix(AUDIO))

    def distance(magnitudes: tf.Tensor) -> float:
        found = (tf.math.log(tf.maximum(magnitudes @ forward, AUDIO.floor)) - LOG_MEAN) / LOG_DEVIATION
        return float(tf.reduce_mean(tf.abs(found - mel)))

    corrected = correct_magnitudes(flat, mel, AUDIO, 8)
    assert distance(corrected) < 0.1 * distance(flat)
    outside = mel_matrix(AUDIO).sum(1) < 1e-6
    assert outside.sum() > 50
    np.testing.assert_array_equal(corrected.numpy()[..., outside], 1.0)


def test_polishing_brings_an_untrained_vocoder_nearer_to_the_mel():
    wave, _ = glide(120, 200)
    mel = log_mel(tf.constant(wave[None]), AUDIO)
    noise = tf.random.stateless_normal([1, (mel.shape[1] - 1) * HOP], [0, 1])
    vocoder = VocoderGAN(CONFIG.vocoder, AUDIO).vocoder
    distances = [
        float(tf.reduce_mean(tf.abs(log_mel(vocoder.speak(mel, noise, rounds), AUDIO) - mel))) for rounds in (0, 6)
    ]
    assert distances[1] < 0.9 * distances[0] < 0.5
