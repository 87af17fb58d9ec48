"""Checkpoints of format 2, whose weights were one vector without names."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from myxtts.checkpoint.earlier import named, speech_places, vocoder_places
from myxtts.checkpoint.folder import read_checkpoint
from myxtts.checkpoint.weights import PARAMETERS, part_of
from myxtts.config.load import build
from tests.synthetic import make_hums

OLD = Path(__file__).parent.parent / "data" / "run-of-format-2" / "step-00000002"
EXPECTED = json.loads((OLD.parent / "expected.json").read_text())  # written by the last program that made format 2
SYMBOLS = 7


def expected(model: str) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes in the order of the vector, by the names of today."""
    return [(name, tuple(shape)) for name, shape in EXPECTED[model].items()]


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("small", {"model.size": "small", "model.width": 16, "model.heads": 2, "model.refiner_width": 8}),
        ("tiny", {"model.decoder_blocks": 1, "model.decoder_attention_every": 2, "model.speaker_blocks": 3}),
    ],
)
def test_the_vector_of_a_speech_model_is_cut_where_its_parameters_lay(model, values):
    assert list(speech_places(build(values), SYMBOLS)) == expected(model)


def test_the_vector_of_a_vocoder_is_cut_where_its_parameters_lay():
    values = {"training.target": "vocoder", "vocoder.discriminator_width": 2, "vocoder.blocks": 1}
    assert list(vocoder_places(build(values))) == expected("vocoder")


def test_every_array_of_such_a_run_holds_what_it_held():
    arrays, content = read_checkpoint(OLD).arrays, EXPECTED["content"]
    assert {name for name in arrays if "/" in name} == content.keys() | {"guide/means", "guide/precisions"}
    for name, digest in content.items():
        assert hashlib.sha256(arrays[name].astype("<f4").tobytes()).hexdigest().startswith(digest), name


def test_moments_with_the_names_of_keras_optimizer_are_read():
    saved = read_checkpoint(OLD)
    config, symbols = saved.config, len(saved.tokenizer.symbols)
    with np.load(OLD / "arrays.npz") as arrays:
        vectors = dict(arrays)
    plain = named(vectors, config, symbols)
    keras = {"optimizer/2": vectors["momentum"], "optimizer/3": vectors["velocity"], "weights": vectors["weights"]}
    for name, array in named(keras, config, symbols).items():
        np.testing.assert_array_equal(array, plain[name], err_msg=name)
    assert len(part_of(plain, PARAMETERS)) > 100
    with pytest.raises(ValueError, match="weights holds 3 numbers, the configuration needs"):
        named({"weights": np.zeros(3)}, config, symbols)


def test_such_a_run_is_resumed_speaks_and_begins_another(run_here, tmp_path):
    hums = make_hums(tmp_path / "hums", 8, longest=1.5)
    data = ("--train-data", hums, "--cache-dir", tmp_path / "cache")
    result = run_here("train", "--resume", OLD, "--checkpoint-dir", tmp_path / "run", *data)
    assert result.returncode == 0, result.stderr
    assert read_checkpoint(tmp_path / "run" / "latest").state.step == 4
    begun = ("--init-from", OLD, "--checkpoint-dir", tmp_path / "begun", "--max-steps", 1, "--front-end", "characters")
    result = run_here("train", *begun, *data, "--sample-every", 0)
    assert result.returncode == 0 and "begins anew" not in result.stdout, result.stderr
    result = run_here("synthesize", "--checkpoint", OLD, "--text", "Good", "-o", tmp_path / "out.wav")
    assert result.returncode == 0, result.stderr
    assert soundfile.info(tmp_path / "out.wav").frames > 0
