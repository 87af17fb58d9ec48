"""docs/python.md: its blocks run one after the other, as a reader would type them."""

import re
from pathlib import Path

from tests.documents import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_blocks_prepare_train_speak_and_evaluate(corpus, tmp_path, monkeypatch, capsys):
    document = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (tmp_path / "my-voice").symlink_to(corpus)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCK.findall(document), 1):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
    assert names["summary"].steps == 4
    assert Path("runs/my-voice/latest/model.safetensors").is_file()
    assert Path("morning.wav").stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert "40 of 40 clips" in printed and "4 steps" in printed
