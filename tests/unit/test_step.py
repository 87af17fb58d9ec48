"""The step by itself: parts of a batch, steps that are not finite, half precision, frozen weights, growing symbols."""

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from myxtts.batch import PackedBatch, ShardedBatch, SpeechLayout, pack_speech, voiceless_batch
from myxtts.checkpoint.weights import by_part
from myxtts.config.load import build
from myxtts.errors import RunError, UsageError
from myxtts.models.xtts import XTTS
from myxtts.training import step as step_module
from myxtts.training.bad_steps import BadSteps
from myxtts.training.memory import make_room
from myxtts.training.step import TrainStep
from myxtts.training.targets.speech import SpeechObjective, SpeechTarget
from tests.helpers import flat

SMALL = {
    "model.width": 16, "model.text_blocks": 1, "model.decoder_blocks": 2, "model.decoder_attention_every": 2,
    "model.speaker_tokens": 2, "model.duration_blocks": 1,
}  # fmt: skip
USUAL = {"lr": 1e-3, "warmup_steps": 0, "guide_steps": 0}


def make_step(
    symbols: int = 12,
    card: bool = False,
    decoder_blocks: int = 2,
    change: Callable[[XTTS], None] = lambda _: None,
    **training,
) -> TrainStep:
    keras.utils.set_random_seed(0)
    values = {f"training.{name}": value for name, value in (USUAL | training).items()}
    config = build({**SMALL, **values, "model.decoder_blocks": decoder_blocks})
    model = XTTS(config.model, symbols, config.audio.n_mels, config.training.mixed_precision, card)
    model.create_variables()
    change(model)
    return TrainStep(model, SpeechObjective(config.training), config.training, compiled=card)


def make_batch(rows: int = 8, poison: bool = False) -> PackedBatch:
    random = np.random.default_rng(0)
    mel = random.normal(size=(rows, 32, 80))
    mel[0] *= np.nan if poison else 1.0
    batch = voiceless_batch(
        tf.constant(random.integers(3, 12, (rows, 8)), tf.int32),
        tf.constant(random.integers(3, 9, rows), tf.int32),
        tf.constant(mel, tf.float32),
        tf.constant(random.integers(9, 17, rows) * 2, tf.int32),
        tf.constant(random.normal(size=(rows, 16, 80)), tf.float32),
        tf.fill([rows], 16),
        tf.constant(np.arange(rows) < rows - 1, tf.float32),  # the last row only fills up
    )
    return pack_speech(batch)


@pytest.fixture(scope="module")
def traced() -> tuple[TrainStep, dict[str, np.ndarray]]:
    """A step in float32, traced once for all tests, and its state before the first call."""
    step = make_step()
    return step, step.arrays()


@pytest.fixture
def step(traced) -> TrainStep:
    """The traced step as if it were new."""
    found, fresh = traced
    found.restore(fresh)
    return found


def test_parts_of_a_batch_give_what_the_whole_gives(step):
    whole, parts = step, make_step(grad_accum=4)
    batch = make_batch()
    for _ in range(6):  # after more, rounding may choose another of two alignments that are equally good
        one, other = whole(batch), parts(batch)
    for name in one:
        assert float(other[name]) == pytest.approx(float(one[name]), rel=1e-5), name
    np.testing.assert_allclose(flat(parts.arrays()), flat(whole.arrays()), atol=1e-5)
    assert parts.traces == 1


def test_what_a_card_is_given_computes_the_same(step):
    """The forms for a card, compiled whole by XLA, against those for the CPU."""
    cpu, card = step, make_step(card=True)
    for _ in range(3):
        one, other = cpu(make_batch()), card(make_batch())
        for name in one:
            assert float(other[name]) == pytest.approx(float(one[name]), rel=1e-4, abs=1e-6), name
    np.testing.assert_allclose(flat(card.arrays()), flat(cpu.arrays()), atol=2e-5)


def test_what_was_saved_is_restored_by_name_whatever_its_order(step):
    step(make_batch())
    arrays = step.arrays()
    step(make_batch())
    wanted = step.arrays()
    step(make_batch())  # what is not restored is not as it was
    step.restore(dict(reversed(arrays.items())), taken=1)
    step(make_batch())
    for name, array in step.arrays().items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)


def test_what_is_missing_or_of_another_shape_is_named(step):
    arrays = step.arrays()
    gone = {name: array for name, array in arrays.items() if name != "momentum/text/norm/gamma"}
    with pytest.raises(UsageError, match=r"does not fit this model: momentum missing: text/norm/gamma$"):
        step.restore(gone)
    with pytest.raises(UsageError, match=r"parameters of another shape: prior/bias \[3\], needed \[160\]"):
        step.restore({**arrays, "parameters/prior/bias": np.zeros(3, np.float32)})
    with pytest.raises(UsageError, match="average unexpected: text/more/gamma"):
        step.restore({**arrays, "average/text/more/gamma": np.zeros(3, np.float32)})


def test_a_model_has_no_weights_of_its_own_while_it_is_trained_and_gets_them_back(step):
    step(make_batch())
    table = step.model.symbol_table
    assert step.parameters.released
    step.give_back()
    assert not step.parameters.released
    np.testing.assert_array_equal(table.numpy(), step.named_weights()["text/embed/embeddings"])
    step.parameters.release()  # as the other tests know it


def test_a_step_that_is_not_finite_changes_nothing(step):
    step(make_batch())
    before = step.arrays()
    result = step(make_batch(poison=True))
    assert float(result["skipped"]) == float(result["bad"]) == 1.0
    for name, array in step.arrays().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    assert float(step(make_batch())["skipped"]) == 0.0


def test_float16_scales_its_loss_down_after_an_overflow_and_up_after_a_while(monkeypatch):
    monkeypatch.setattr(step_module, "GROW_AFTER", 3)
    step = make_step(mixed_precision="float16")
    first = float(step.scale)
    result = step(make_batch(poison=True))
    assert float(result["skipped"]) == 1.0 and float(result["bad"]) == 0.0  # a smaller scale might have helped
    assert float(step.scale) == first / 2
    for _ in range(3):
        assert float(step(make_batch())["skipped"]) == 0.0
    assert float(step.scale) == first
    step.scale.assign(1.0)
    assert float(step(make_batch(poison=True))["bad"]) == 1.0


def test_half_precision_learns_as_full_precision_does(step):
    halves, batch = [make_step(mixed_precision=precision) for precision in ("float16", "bfloat16")], make_batch()
    for _ in range(30):
        wanted, *found = (float(one(batch)["loss"]) for one in (step, *halves))
    assert found == pytest.approx([wanted, wanted], rel=0.1)
    assert all(flat(half.arrays()).dtype == np.float32 for half in halves)


def test_frozen_weights_stay_and_all_others_move():
    step = make_step(freeze="text, decoder/convs/*")
    before = step.named_weights()
    for _ in range(6):  # blocks that start as the identity pass their gradient on only later
        step(make_batch())
    same = {name for name, weight in step.named_weights().items() if np.array_equal(before[name], weight)}
    assert same == {name for name in before if name.startswith(("text/", "decoder/convs/"))}
    with pytest.raises(UsageError, match=r"`training.freeze=ears`: .* text, prior, duration, pitch, pitch_embedding"):
        make_step(freeze="ears")
    before = make_step(freeze="melody, speaker/col*")  # as runs of format 2 may have been told
    frozen = {name for name, weight in before.model.named_weights().items() if not before.learns(weight)}
    assert frozen == {n for n in before.parameters.names if n.startswith(("pitch_embedding/", "speaker/stats/"))}
    with pytest.raises(UsageError, match="nothing is left to learn"):
        make_step(freeze="*")


def test_a_model_with_more_symbols_begins_with_what_the_smaller_one_knew(step):
    small = step  # of 12 symbols
    for _ in range(3):
        small(make_batch())
    large = make_step(15)
    table = "text/embed/embeddings"
    fresh = large.named_weights()[table][12:]
    assert large.begin_from(small.arrays()).complete
    for name, weight in small.named_weights(averaged=True).items():
        np.testing.assert_array_equal(large.named_weights()[name][: weight.shape[0]], weight, err_msg=name)
    np.testing.assert_array_equal(large.named_weights()[table][12:], fresh)
    assert float(large(make_batch())["skipped"]) == 0.0


def test_a_model_begins_with_what_fits_and_says_what_does_not(step):
    for _ in range(3):
        step(make_batch())
    other = make_step(decoder_blocks=3)
    fresh = other.named_weights()
    found = other.begin_from(step.arrays())
    assert by_part(found.anew) == "decoder (8)" and not found.unexpected and not found.differing
    assert found.describe().startswith("missing: decoder/convs/2/depthwise/kernel, ")
    known = step.named_weights(averaged=True)
    for name, weight in other.named_weights().items():
        np.testing.assert_array_equal(weight, known.get(name, fresh[name]), err_msg=name)
    with pytest.raises(UsageError, match=r"`training.freeze=decoder/convs` keeps decoder/convs/2/.*; leave decoder"):
        make_step(decoder_blocks=3, freeze="decoder/convs").begin_from(step.arrays())
    few = {name: array for name, array in step.arrays().items() if name.startswith("average/text/")}
    with pytest.raises(UsageError, match=r"holds only \d+% of this model \(missing: speaker.*leave `training.init_"):
        other.begin_from(few)


def test_layers_of_equal_size_that_change_places_keep_their_weights(step):
    """A vector without names would hand the weights of one to the other."""
    for _ in range(6):
        step(make_batch())

    def swap(model: XTTS) -> None:
        model.decoder.convs = model.decoder.convs[::-1]

    swapped = make_step(change=swap)
    assert list(swapped.named_weights()) != list(step.named_weights())
    swapped.restore(step.arrays())
    for name, weight in swapped.named_weights().items():
        np.testing.assert_array_equal(weight, step.named_weights()[name], err_msg=name)


def test_restoring_without_the_optimizer_keeps_only_weights(step):
    other = make_step()
    for _ in range(3):
        step(make_batch())
    other.restore(step.arrays(), optimizer=False)
    np.testing.assert_array_equal(flat(other.arrays()), flat(step.arrays()))
    assert int(other.count) == 0 and not (other.momentum.numpy().any() or other.velocity.numpy().any())


def test_bad_steps_in_a_row_are_too_many_and_others_are_not(tmp_path):
    bad = BadSteps(3)
    bad.add(0, [True] * 4, [True, True, False, True])
    assert not bad.too_many and bad.skipped == 4
    bad.add(4, [True] * 2, [True, True])  # the row goes on over the end of a window
    assert bad.too_many and bad.row == [3, 4, 5]
    error = bad.dump(tmp_path, lambda number: [f"clip-{number}"])
    assert "batches 3 to 5" in str(error) and "clip-5" in (tmp_path / "bad_batches.json").read_text()


@pytest.mark.parametrize(("rows", "parallel", "expected"), [(8, False, 2), (3, False, 3), (8, True, 2), (6, True, 3)])
def test_room_is_made_by_parts_of_equal_size_on_each_device(rows, parallel, expected):
    layout, held_rows = SpeechLayout(80, 16, False), rows // 2 if parallel else rows
    held = PackedBatch(tf.zeros([held_rows, 106 * 80 + 1]), tf.zeros([held_rows, 4 + 7 + 90], tf.int64), layout)
    batch = ShardedBatch((held, held), (held.labels, held.labels)) if parallel else held
    config = build({"data.batch_size": rows, "training.auto_batch": True})
    times, notice = make_room(batch, config, 1, "")
    assert times == expected
    assert f"continues with `data.batch_size={rows // expected}` `training.grad_accum={expected}`" in notice
    with pytest.raises(RunError, match=r"one clip is too much: lower `data.max_seconds`"):
        make_room(batch, config, held.rows, SpeechTarget.too_large)
    with pytest.raises(RunError, match=f"set `data.batch_size={rows // expected}` `training.grad_accum={expected}` "):
        make_room(batch, build({"data.batch_size": rows}), 1, "")
