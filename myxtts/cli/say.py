"""`myxtts say`."""

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from myxtts.cli.synthesize import check_target, load_synthesizer, read_texts, require_recordings
from myxtts.errors import RunError, UsageError
from myxtts.voice import VOICE

PLAYERS = {"pw-play": [], "paplay": [], "aplay": ["-q"], "afplay": [], "ffplay": ["-nodisp", "-autoexit", "-v", "0"]}


def run(options: argparse.Namespace) -> int:
    """Speaks with the voice in the package, into a file or through the machine's own player."""
    options.text_file = None
    (text,) = read_texts(options)
    references = require_recordings(options.reference)
    player = None if options.output else next((name for name in PLAYERS if shutil.which(name)), None)
    target = Path(options.output or "say.wav")
    if player is None:
        check_target(target)
    if not VOICE.is_dir():
        raise UsageError(f"this package has no voice in {VOICE}; install it whole, or use `myxtts synthesize`")
    options.checkpoint = str(VOICE)
    synthesizer, manner = load_synthesizer(options)
    from myxtts.audio.wav import write_wave

    wave = synthesizer.speak(text, synthesizer.voice(references, options.speaker), options.language, manner)
    if player is None:
        write_wave(target, wave, synthesizer.sample_rate)
        print(target if options.output else f"{target} (no player was found: {', '.join(PLAYERS)})")
        return 0
    with tempfile.TemporaryDirectory() as home:
        target = Path(home, "say.wav")
        write_wave(target, wave, synthesizer.sample_rate)
        if subprocess.run([player, *PLAYERS[player], str(target)], capture_output=True).returncode:
            raise RunError(f"{player} could not play; write a file with -o FILE.wav")
    return 0
