"""Fixtures of the tests that train."""

from dataclasses import replace
from pathlib import Path

import pytest

from myxtts.config.config import TrainingConfig
from myxtts.config.load import build, read_yaml
from myxtts.training.trainer import XTTSTrainer

USUAL = TrainingConfig()
BESIDE_THE_TRACE = (  # settings that gradients and losses do not depend on
    "checkpoint_dir", "max_steps", "log_every", "val_every", "save_every", "sample_every", "eval_every", "early_stop",
    "max_bad_steps", "init_from",
)  # fmt: skip


@pytest.fixture(scope="session")
def traced() -> dict:
    """What trainers of this process have traced, by all that decides it."""
    return {}


def share_traces(trainer: XTTSTrainer, traced: dict) -> None:
    """Has a trainer compute its features, gradients and losses with what an equal one has traced before.

    They are functions of tensors alone, so nothing of the other trainer's run comes with them, and tracing them takes
    much longer than the few steps of a test. What moves the weights belongs to each trainer and is traced with it.
    """
    config, step = trainer.config, trainer.run.step
    training = replace(config.training, **{name: getattr(USUAL, name) for name in BESIDE_THE_TRACE})
    key = (
        config.model, config.audio, config.data.reference_gain_db, training, step.schedule.guided, trainer.run.devices,
        len(trainer.run.tokenizer.symbols),
    )  # fmt: skip
    ours = (trainer.run.featurizer, step.gradient, trainer.run.evaluate.traced)
    trainer.run.featurizer, step.gradient, trainer.run.evaluate.traced = traced.setdefault(key, ours)


@pytest.fixture
def make_trainer(corpus, tiny_yaml, tmp_path, tmp_path_factory, traced):
    def make(run: str = "run", resume_checkpoint: Path | None = None, reset_optimizer: bool = False, **values):
        places = {
            "data.train_data": str(corpus),
            "data.cache_dir": str(tmp_path_factory.getbasetemp() / "shared-cache"),
            "training.checkpoint_dir": str(tmp_path / run),
            "data.val_clips": 0,  # less to compile
        }
        of_data = ("batch_size", "language", "stall_timeout", "train_data", "val_clips")
        named = {f"{'data' if name in of_data else 'training'}.{name}": value for name, value in values.items()}
        config = build({**read_yaml(tiny_yaml), **places, **named})
        trainer = XTTSTrainer(config, resume_checkpoint=resume_checkpoint, reset_optimizer=reset_optimizer)
        share_traces(trainer, traced)
        return trainer

    return make
