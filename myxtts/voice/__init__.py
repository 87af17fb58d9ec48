"""Where the voice and the vocoder lie that ship in the package."""

from pathlib import Path

VOICE = Path(__file__).parent / "english"
VOCODER = Path(__file__).parent / "vocoder"
SHIPPED = {"english": VOICE, "vocoder": VOCODER}  # what they are called where a run folder is asked for
GRIFFIN_LIM = "griffin-lim"  # the vocoder that needs no training
