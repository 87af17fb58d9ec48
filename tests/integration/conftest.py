"""Fixtures of the tests that train."""

from pathlib import Path

import pytest

from myxtts.config.load import build, read_yaml
from myxtts.training.trainer import XTTSTrainer


@pytest.fixture
def make_trainer(corpus, tiny_yaml, tmp_path, tmp_path_factory):
    def make(run: str = "run", resume_checkpoint: Path | None = None, reset_optimizer: bool = False, **values):
        places = {
            "data.train_data": str(corpus),
            "data.cache_dir": str(tmp_path_factory.getbasetemp() / "shared-cache"),
            "training.checkpoint_dir": str(tmp_path / run),
            "data.val_clips": 0,  # less to compile
        }
        named = {
            f"data.{k}" if k in ("batch_size", "language", "train_data", "val_clips") else f"training.{k}": v
            for k, v in values.items()
        }
        config = build({**read_yaml(tiny_yaml), **places, **named})
        return XTTSTrainer(config, resume_checkpoint=resume_checkpoint, reset_optimizer=reset_optimizer)

    return make
