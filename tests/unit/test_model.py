import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.batch import Batch
from myxtts.config.config import MODEL_SIZES, ModelConfig
from myxtts.config.load import build
from myxtts.models.pitch import average_pitch
from myxtts.models.refiner import RESIDUAL, Refiner
from myxtts.models.speaker import SpeakerEncoder
from myxtts.models.xtts import XTTS
from myxtts.training.losses import count_batch, speech_losses, total_loss

CONFIG = ModelConfig(width=16, text_blocks=2, decoder_blocks=4, speaker_tokens=3, refiner_blocks=1, refiner_width=16)
SYMBOLS, N_MELS = 11, 8
PLAIN = (tf.constant(1.0), tf.constant(0.0), tf.constant(0))  # speed, octaves, steps


@pytest.fixture(scope="module")
def model() -> XTTS:
    keras.utils.set_random_seed(1)
    model = XTTS(CONFIG, SYMBOLS, N_MELS)
    model.create_variables()
    for variable in model.trainable_variables:  # blocks that start as the identity would hide a leak
        variable.assign_add(tf.random.normal(variable.shape, stddev=0.2))
    return model


def make_batch(seed: int, tokens: int, frames: int, reference: int) -> Batch:
    random = np.random.default_rng(seed)
    return Batch(
        tokens=tf.constant(random.integers(3, SYMBOLS, (1, tokens)), tf.int32),
        text_lengths=tf.constant([tokens]),
        mel=tf.constant(random.normal(size=(1, frames, N_MELS)), tf.float32),
        mel_lengths=tf.constant([frames]),
        pitch=tf.constant(random.choice([0, 88, 165], (1, frames)), tf.int32),
        noise=tf.constant(random.normal(size=(1, frames, N_MELS)), tf.float32),
        timesteps=tf.constant(random.random(1), tf.float32),
        reference=tf.constant(random.normal(size=(1, reference, N_MELS)), tf.float32),
        reference_lengths=tf.constant([reference]),
        weights=tf.ones([1]),
    )


def pad(batch: Batch, tokens: int, frames: int, reference: int) -> Batch:
    """The same clip with more padding, and rubbish in all of it."""

    def grow(x: tf.Tensor, size: int, filler: float) -> tf.Tensor:
        widths = [[0, 0], [0, size - x.shape[1]]] + [[0, 0]] * (len(x.shape) - 2)
        return tf.pad(x, widths, constant_values=tf.cast(filler, x.dtype))

    return batch._replace(
        tokens=grow(batch.tokens, tokens, 5),
        mel=grow(batch.mel, frames, 9.0),
        pitch=grow(batch.pitch, frames, 200),
        noise=grow(batch.noise, frames, 5.0),
        reference=grow(batch.reference, reference, -7.0),
    )


def losses_of(model: XTTS, batch: Batch, guidance: float = 0.0) -> dict[str, tf.Tensor]:
    counts = count_batch(batch, model.frames_per_step)
    return speech_losses(model(batch, tf.constant(guidance)), batch.weights, counts)


def test_padding_never_changes_a_result(model):
    """A clip alone gives what it gives in a padded batch beside a longer one."""
    short, long = make_batch(0, 5, 20, 12), make_batch(1, 9, 36, 24)
    padded = Batch(*[tf.concat(pair, 0) for pair in zip(pad(short, 9, 36, 24), long, strict=True)])
    for guidance in (0.0, 1.0):
        alone, together = model(short, tf.constant(guidance)), model(padded, tf.constant(guidance))
        steps = 20 // CONFIG.frames_per_step
        np.testing.assert_allclose(together.mel[0, :steps], alone.mel[0], atol=2e-4)
        np.testing.assert_allclose(together.prior[0, :steps], alone.prior[0], atol=2e-4)
        np.testing.assert_allclose(together.log_durations[0, :5], alone.log_durations[0], atol=2e-4)
        np.testing.assert_array_equal(together.path[0, :5, :steps], alone.path[0])
        np.testing.assert_allclose(together.log_f0[0, :5], alone.log_f0[0], atol=2e-4)
        np.testing.assert_allclose(together.token_pitch.log_f0[0, :5], alone.token_pitch.log_f0[0], atol=2e-4)
        np.testing.assert_allclose(together.velocity[0, :steps], alone.velocity[0], atol=2e-4)
        assert float(tf.reduce_sum(tf.abs(together.mel[0, steps:]))) == 0.0
        only_short = losses_of(model, padded._replace(weights=tf.constant([1.0, 0.0])), guidance)
        for name, loss in losses_of(model, short, guidance).items():
            assert float(only_short[name]) == pytest.approx(float(loss), rel=1e-3), name


def test_a_clip_of_weight_zero_changes_no_loss(model):
    batch = make_batch(2, 6, 24, 12)
    doubled = Batch(*[tf.concat([x, x], 0) for x in batch])._replace(weights=tf.constant([1.0, 0.0]))
    doubled = doubled._replace(mel=tf.concat([batch.mel, batch.mel * 3], 0))
    one = losses_of(model, batch)
    two = losses_of(model, doubled)
    for name in one:
        assert float(two[name]) == pytest.approx(float(one[name]), rel=1e-3), name


def test_speaking_is_the_same_alone_and_in_a_padded_batch(model):
    voice = model.voice(tf.random.normal([1, 12, N_MELS], seed=4), tf.constant([12]))
    tokens = tf.constant([[3, 4, 5, 6]])
    alone, lengths = model.speak(tokens, tf.constant([4]), voice, *PLAIN)
    both = tf.constant([[3, 4, 5, 6, 8, 8], [7, 8, 9, 10, 3, 4]])
    together, _ = model.speak(both, tf.constant([4, 6]), tf.concat([voice, voice], 0), *PLAIN)
    frames = int(lengths[0])
    np.testing.assert_allclose(together[0, :frames], alone[0], atol=2e-4)


def test_slower_speech_is_longer(model):
    voice = model.voice(tf.random.normal([1, 12, N_MELS], seed=4), tf.constant([12]))
    tokens = tf.constant([[3, 4, 5, 6, 7, 8, 9]])
    count, speeds = tf.constant([7]), (0.1, 1.0)
    lengths = [int(model.speak(tokens, count, voice, tf.constant(speed), *PLAIN[1:])[1][0]) for speed in speeds]
    assert lengths[0] > lengths[1]


def test_the_reference_changes_the_voice(model):
    batch = make_batch(3, 6, 24, 12)
    other = batch._replace(reference=batch.reference[:, ::-1] * 2)
    one, two = model(batch, tf.constant(1.0)), model(other, tf.constant(1.0))
    assert float(tf.reduce_mean(tf.abs(one.mel - two.mel))) > 1e-3


def test_voices_stay_apart_when_the_encoder_s_weights_have_grown():
    shares, voices, frames = [], 6, 40
    for seed in range(8):
        keras.utils.set_random_seed(seed)
        spectra = tf.random.normal([voices, 1, 2 * N_MELS])
        once, again = (spectra + tf.random.normal([voices, frames, 2 * N_MELS]) for _ in range(2))
        encoder, lengths = SpeakerEncoder(CONFIG), tf.fill([voices], frames)
        encoder(once, lengths)
        for variable in encoder.trainable_variables:
            if len(variable.shape) > 1:
                variable.assign(2 * (variable + tf.random.normal(variable.shape, stddev=0.2)))
        first, second = (encoder(some, lengths).numpy().reshape(voices, -1) for some in (once, again))
        nearest = np.linalg.norm(first[:, None] - second[None], axis=-1).argmin(axis=1)
        shares.append(np.mean(nearest == np.arange(voices)))
    assert np.mean(shares) > 0.75  # 0.79; 0.44 without norms and stats, 0.67 to 0.69 with one of them


def test_every_trainable_weight_has_a_gradient(model):
    batch = make_batch(5, 6, 24, 12)
    training = build({}).training
    with tf.GradientTape() as tape:
        loss = total_loss(losses_of(model, batch, 0.5), training)
    gradients = tape.gradient(loss, model.trainable_variables)
    idle = [v.path for v, g in zip(model.trainable_variables, gradients, strict=True) if g is None]
    assert idle == []


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_comes_close_and_keeps_float32_weights_and_results(model, precision):
    half = XTTS(CONFIG, SYMBOLS, N_MELS, precision)
    half.create_variables()
    for ours, theirs in zip(half.variables, model.variables, strict=True):
        assert ours.dtype == "float32"
        ours.assign(theirs)
    batch = make_batch(6, 6, 24, 12)
    full, rounded = model(batch, tf.constant(1.0)), half(batch, tf.constant(1.0))
    assert {part.dtype for part in tf.nest.flatten(rounded)} == {tf.float32}
    error = float(tf.reduce_mean(tf.abs(rounded.mel - full.mel)) / tf.reduce_mean(tf.abs(full.mel)))
    assert 1e-6 < error < 0.05


def test_sizes_grow():
    counts = []
    for size in MODEL_SIZES:
        model = XTTS(build({"model.size": size}).model, 100, 80)
        model.create_variables()
        counts.append(model.count_params())
    assert counts == sorted(counts) and counts[0] < 4e6 < counts[1]


def test_the_pitch_of_tokens_is_the_mean_pitch_of_their_voiced_frames():
    path = tf.constant([[[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    pitch = tf.constant([[180.0, 180.0, 720.0, 0.0, 0.0, 0.0, 90.0, 90.0]])
    token_pitch = average_pitch(pitch, path, 2)
    np.testing.assert_allclose(token_pitch.log_f0[0], [2 / 3, 0.0, -1.0], atol=1e-5)
    np.testing.assert_allclose(token_pitch.voicing[0], [0.75, 0.0, 1.0], atol=1e-5)


def test_a_higher_pitch_and_more_steps_change_the_mel_and_not_its_length(model):
    voice = model.voice(tf.random.normal([1, 12, N_MELS], seed=4), tf.constant([12]))
    tokens = tf.constant([[3, 4, 5, 6]])
    model.refiner.out.kernel.assign(tf.random.normal(model.refiner.out.kernel.shape, seed=1))  # zeros at first
    speed, octaves, steps = PLAIN
    plain, lengths = model.speak(tokens, tf.constant([4]), voice, speed, octaves, steps)
    for changed in ((speed, octaves + 0.5, steps), (speed, octaves, steps + 2)):
        mel, same = model.speak(tokens, tf.constant([4]), voice, *changed)
        assert int(same[0]) == int(lengths[0])
        assert float(tf.reduce_max(tf.abs(mel - plain))) > 1e-3


def test_a_refiner_that_knows_the_way_draws_what_is_missing():
    """The velocity from noise to a fixed residual is constant, so any number of steps arrives there."""
    refiner = Refiner(CONFIG, N_MELS)
    noise, residual = tf.random.normal([1, 5, 16], seed=1), tf.random.normal([1, 5, 16], seed=2)
    mask, states = tf.ones([1, 5, 1]), tf.zeros([1, 5, 16])
    refiner(noise, tf.zeros([1]), residual, states, mask)
    refiner.call = lambda *_: residual - noise
    for steps in (1, 3, 8):
        drawn = refiner.sample(noise, residual, states, mask, tf.constant(steps))
        np.testing.assert_allclose(drawn, RESIDUAL * residual, atol=1e-5)
