import dataclasses
from pathlib import Path

import pytest

from myxtts.cli.flags import flag_words
from myxtts.cli.parser import make_parser
from myxtts.cli.settings import configure, describe
from myxtts.config.config import DataConfig, ModelConfig, TrainingConfig, XTTSConfig
from myxtts.config.load import build, differences, load, resolve, save
from myxtts.errors import UsageError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_win_over_yaml_and_yaml_over_defaults(tmp_path):
    source = write(tmp_path / "a.yaml", "training: {lr: 0.5, seed: 3}\n")
    config, origin = resolve(source, {"training.seed": 9})
    assert (config.training.lr, config.training.seed) == (0.5, 9)
    assert config.training.log_every == TrainingConfig().log_every
    assert dict(origin) == {"training.lr": str(source), "training.seed": "flag"}


def test_unknown_key_is_refused_with_the_nearest_name(tmp_path):
    with pytest.raises(UsageError, match=r"training\.warmup_step.*did you mean .warmup_steps"):
        resolve(write(tmp_path / "a.yaml", "training: {warmup_step: 1}\n"), {})
    with pytest.raises(UsageError, match="'batch_size'"):
        resolve(write(tmp_path / "b.yaml", "data: {batchsize: 1}\n"), {})
    with pytest.raises(UsageError, match="unknown section 'modle'; did you mean 'model'"):
        resolve(write(tmp_path / "c.yaml", "modle: {width: 1}\n"), {})


def test_names_of_before_are_accepted_and_a_line_names_those_of_today(tmp_path, capsys):
    old = write(tmp_path / "old.yaml", "training: {critics_after: 7, fooling_loss: 0.5}\nvocoder: {critic_width: 3}\n")
    config, _ = configure(make_parser().parse_args(["train", "--config", str(old)]))
    found = (config.vocoder.discriminators_after, config.vocoder.adversarial_loss, config.vocoder.discriminator_width)
    assert found == (7, 0.5, 3)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"{old}: training.critics_after is called vocoder.discriminators_after today" and len(told) == 3
    options = make_parser().parse_args(["train", "--critics-after", "9", "--config", str(old)])
    assert configure(options)[0].vocoder.discriminators_after == 9
    assert "--critics-after is called --discriminators-after today" in capsys.readouterr().err
    assert make_parser().parse_args(["say", "--steps", "3"]).ode_steps == 3
    both = write(tmp_path / "both.yaml", "vocoder: {discriminators_after: 5}\ntraining: {critics_after: 7}\n")
    with pytest.raises(UsageError, match=r"discriminators_after and training\.critics_after are the same setting"):
        resolve(both, {})
    with pytest.raises(UsageError, match=r"training\.critics_after is 'abc'"):
        resolve(write(tmp_path / "wrong.yaml", "training: {critics_after: abc}\n"), {})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"data.bogus": 1}, "unknown key 'data.bogus'; did you mean"),
        ({"bogus.lr": 1}, "unknown key 'bogus.lr'; known: audio, data, model"),
        ({"batch_size": 1}, "unknown key 'batch_size'"),
        ({"training.batch_size": 1}, r"did you mean 'data\.batch_size'\?"),
        ({"data.batch_size": "4"}, r"`data\.batch_size` is '4', a str; it must be a int"),
        ({"data.batch_size": 2.5}, r"`data\.batch_size` is 2\.5, a float"),
        ({"data.batch_size": None}, r"`data\.batch_size` is None"),
        ({"training.lr": "fast"}, r"`training\.lr` is 'fast'"),
        ({"model.size": 3}, r"`model\.size` is 3"),
    ],
)
def test_python_users_are_told_what_is_wrong_with_their_settings(values, words):
    with pytest.raises(UsageError, match=words):
        build(values)


def test_settings_from_python_may_have_names_of_before_and_paths(tmp_path, caplog):
    config = build(
        {"vocoder.critic_width": 8, "data.train_data": tmp_path, "data.data_gpu": "none", "training.lr": "1e-3"}
    )
    assert (config.vocoder.discriminator_width, config.data.train_data) == (8, str(tmp_path))
    assert config.data.data_gpu is None and config.training.lr == 1e-3
    assert build({"data.model_gpu": [1]}).data.model_gpu == 1 and build({"data.model_gpu": "1,2"}).data.gpus == (1, 2)


def test_another_size_than_a_checkpoint_s_has_shapes_of_its_own(tmp_path):
    save(build({"model.width": 96}), tmp_path / "saved.yaml")
    same, _ = resolve(None, {"model.size": "tiny"}, tmp_path / "saved.yaml")
    small, _ = resolve(None, {"model.size": "small"}, tmp_path / "saved.yaml")
    assert same.model.width == 96 and small.model == build({"model.size": "small"}).model


@pytest.mark.parametrize(
    "text", ["training: {lr: fast}", "data: {batch_size: 1.5}", "data: {static_shapes: 1}", "- a", "a: b: c"]
)
def test_wrong_types_and_broken_yaml_are_one_line(tmp_path, text):
    with pytest.raises(UsageError) as error:
        resolve(write(tmp_path / "a.yaml", text), {})
    assert "\n" not in str(error.value)


def test_exponents_without_a_dot_are_numbers(tmp_path):
    config, _ = resolve(write(tmp_path / "a.yaml", "training: {lr: 1e-4}\n"), {})
    assert config.training.lr == 1e-4


def test_size_presets_differ_and_single_values_override_them():
    sizes = [build({"model.size": name}).model.width for name in ("tiny", "small", "normal", "big")]
    assert sizes == sorted(set(sizes))
    assert build({"model.size": "big", "model.width": 64}).model.width == 64


def test_saved_configuration_loads_equal(tmp_path):
    config = build({"model.size": "small", "data.language": "fa", "training.lr": 0.001})
    save(config, tmp_path / "config.yaml")
    assert load(tmp_path / "config.yaml") == config


def test_no_gpu_is_given_by_default():
    assert DataConfig().data_gpu is None and DataConfig().model_gpu is None and DataConfig().gpus == ()
    assert DataConfig(data_gpu=1, model_gpu=0).gpus == (1, 0)
    assert DataConfig(data_gpu=1).gpus == ()


@pytest.mark.parametrize("word", ["null", "none", "None", "~", "", "-1"])
def test_yaml_has_several_words_for_a_gpu_that_is_not_given(tmp_path, word):
    config, _ = resolve(write(tmp_path / "a.yaml", f"data:\n  data_gpu: {word}\n  model_gpu: {word}\n"), {})
    assert (config.data.data_gpu, config.data.model_gpu) == (None, None)


@pytest.mark.parametrize(("word", "answer"), [("two", "a int or none"), ("1.5", "a int or none"), ("-2", "or none")])
def test_what_is_no_gpu_id_is_refused(tmp_path, word, answer):
    with pytest.raises(UsageError, match=f"data.model_gpu`? is .*{answer}"):
        resolve(write(tmp_path / "a.yaml", f"data: {{model_gpu: {word}}}\n"), {})


def test_only_fields_that_may_be_none_take_it(tmp_path):
    with pytest.raises(UsageError, match=r"data\.prefetch is None"):
        resolve(write(tmp_path / "a.yaml", "data: {prefetch: null}\n"), {})


@pytest.mark.parametrize("gpus", [{}, {"data.data_gpu": 1, "data.model_gpu": 0}])
def test_gpus_are_saved_and_read_back(tmp_path, gpus):
    save(build(gpus), tmp_path / "config.yaml")
    assert load(tmp_path / "config.yaml") == build(gpus)


def test_a_saved_run_without_gpus_goes_on_without_them_and_takes_new_ones(tmp_path):
    saved = write(tmp_path / "config.yaml", "data: {data_gpu: -1, model_gpu: -1, language: fa}\n")
    assert load(saved) == build({"data.language": "fa"})
    config, origin = resolve(None, {}, saved)
    assert not config.data.gpus and dict(origin) == {"data.language": "checkpoint"}
    config, origin = resolve(None, {"data.data_gpu": 0, "data.model_gpu": 1}, saved)
    assert config.data.gpus == (0, 1) and origin["data.data_gpu"] == "flag"


def test_a_flag_takes_back_the_gpus_of_a_file_and_the_configuration_shows_it(tmp_path):
    source = write(tmp_path / "a.yaml", "data: {data_gpu: 0, model_gpu: 1}\n")
    words = ["train", "--config", str(source), "--data-gpu", "none", "--model-gpu", "none"]
    config, origin = configure(make_parser().parse_args(words))
    assert not config.data.gpus
    assert describe(config, origin) == ["data.data_gpu = none (flag)", "data.model_gpu = none (flag)"]
    assert describe(*resolve(source, {})) == [f"data.data_gpu = 0 ({source})", f"data.model_gpu = 1 ({source})"]


def test_the_command_line_can_be_written_anew_for_a_gpu_that_is_not_given():
    assert flag_words("train", "data.data_gpu", None) == ["--data-gpu", "none"]
    assert flag_words("train", "data.model_gpu", 0) == ["--model-gpu", "0"]


@pytest.mark.parametrize("word", ["-1", "one", "1.5"])
def test_a_flag_that_is_no_gpu_id_is_one_line_and_exit_2(capsys, word):
    with pytest.raises(SystemExit) as stop:
        make_parser().parse_args(["train", "--data-gpu", word])
    [line] = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and f"{word} is no GPU id; give a number as in nvidia-smi, or none" in line


def test_differences_name_both_values():
    lines = differences(build({"model.size": "tiny"}), build({"model.size": "small"}), "model")
    assert any("model.width: 160 here, 256 there" in line for line in lines)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        (ModelConfig, {"size": "huge"}),
        (ModelConfig, {"width": 30, "heads": 4}),
        (DataConfig, {"language": "xx"}),
        (DataConfig, {"batch_size": 0}),
        (DataConfig, {"min_seconds": 9.0, "max_seconds": 3.0}),
        (TrainingConfig, {"lr": 0.0}),
        (TrainingConfig, {"ema_decay": 1.0}),
    ],
)
def test_impossible_values_are_refused(section, values):
    with pytest.raises(UsageError):
        section(**values)


def test_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        XTTSConfig().data.batch_size = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"training.target": "vocoder", "training.mixed_precision": "bfloat16"}, "trained in float32"),
        (
            {"training.target": "vocoder", "training.early_stop": 3},
            "does not tell how good a vocoder is",
        ),
        ({"vocoder.slice_frames": 12}, "must be 13 or more"),
        ({"vocoder.slice_frames": 16, "audio.hop_samples": 128}, "must be 25 or more"),
    ],
)
def test_what_a_vocoder_cannot_do_is_refused(values, message):
    with pytest.raises(UsageError, match=message):
        build(values)
