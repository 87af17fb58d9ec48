"""Every documented command is one that the command line takes (`make test-slow` also runs them)."""

import pytest

from myxtts.cli.parser import make_parser
from tests.documents import DOCUMENTS, Command, commands

COMMANDS = [command for document in DOCUMENTS for command in commands(document)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.document}:{command.line}")
def test_a_documented_command_can_be_typed(command):
    assert "…" not in command.text, "a reader cannot type an ellipsis"
    if command.myxtts is not None:
        assert make_parser().parse_args(command.myxtts).command == command.myxtts[0]


def test_commands_are_found_joined_and_told_apart():
    assert {command.document for command in COMMANDS} >= {"README.md", "docs/dual-gpu.md", "docs/training.md"}
    assert any(" --lr 4e-4 " in command.text and command.myxtts[0] == "train" for command in COMMANDS if command.myxtts)


def test_cards_are_replaced_and_long_trainings_are_known():
    split = Command("x.md", 1, "python train_main.py --data-gpu 0 --model-gpu 1 --train-data d > a.log 2>&1")
    assert split.cards == [0, 1] and split.endless
    assert split.on_this_machine().startswith("python train_main.py --virtual-devices 2 --data-gpu 0")
    assert split.myxtts == ["train", "--data-gpu", "0", "--model-gpu", "1", "--train-data", "d"]
    many = Command("x.md", 1, "myxtts train --data-gpu 0 --model-gpu 1,3 --max-steps 4")
    assert many.on_this_machine().startswith("myxtts train --virtual-devices 4 ")
    none = Command("x.md", 1, "myxtts train --data-gpu none --model-gpu none --max-steps 30 --train-data d")
    assert not none.cards and not none.endless and none.on_this_machine() == none.text
