"""`myxtts say`."""

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.synthesize import (
    check_target,
    keep_recordings,
    load_synthesizer,
    read_scripts,
    read_texts,
    require_recordings,
)
from myxtts.errors import UsageError
from myxtts.voice import VOICE

if TYPE_CHECKING:
    import numpy as np

PLAYERS = {"pw-play": [], "paplay": [], "aplay": ["-q"], "afplay": [], "ffplay": ["-nodisp", "-autoexit", "-v", "0"]}


def run(options: argparse.Namespace) -> int:
    """Speaks with the voice in the package, into a file or through the machine's own player."""
    options.text_file = None
    references = require_recordings(options.reference)  # first: a text after --reference was taken for a recording
    texts = read_texts(options)
    silent = options.output is not None
    players = [] if silent else [name for name in PLAYERS if shutil.which(name)]
    target = Path(options.output if silent else "say.wav")
    if not players:
        check_target(target)
        keep_recordings([target], references)
    if not VOICE.is_dir():
        raise UsageError(f"this package has no voice in {VOICE}; install it whole, or use `myxtts synthesize`")
    options.checkpoint = str(VOICE)
    synthesizer, how = load_synthesizer(options)
    (script,) = read_scripts(synthesizer, texts, options.language)
    from myxtts.audio.wav import write_wave

    wave = synthesizer.speak(script, synthesizer.voice(references, options.speaker), how)
    if any(_play(player, wave, synthesizer.sample_rate) for player in players):
        return 0
    write_wave(target, wave, synthesizer.sample_rate)
    told = f"{', '.join(players)} could not play it" if players else f"no player was found: {', '.join(PLAYERS)}"
    print(target if silent else f"{target} ({told})")
    return 0


def _play(player: str, wave: "np.ndarray", rate: int) -> bool:
    """Whether it could be played."""
    from myxtts.audio.wav import write_wave

    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "say.wav")
        write_wave(file, wave, rate)
        return subprocess.run([player, *PLAYERS[player], str(file)], capture_output=True).returncode == 0
