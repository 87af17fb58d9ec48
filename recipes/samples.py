"""One page to listen to: what ships in the package beside Griffin-Lim and the recordings.

    make samples
    make samples SAMPLES_FLAGS='--real recordings --run runs/fine-tuned'

Recordings are made by the voices that the recipe of the package uses, as far as they are installed here.
"""

import argparse
import html
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from english import UNHEARD

from myxtts.audio.mel import log_mel, reference_mel
from myxtts.audio.wav import read_wave, trim_silence, write_wave
from myxtts.config.config import AudioConfig
from myxtts.demo.page import Sound, document, figure, side_by_side
from myxtts.demo.sentences import evaluation_sentences
from myxtts.demo.voices import Reader, choose_voice
from myxtts.devices import Place, plan_devices
from myxtts.errors import UsageError
from myxtts.inference.engine import SynthesisOptions
from myxtts.inference.evaluation import YARDSTICKS
from myxtts.inference.synthesizer import Synthesizer
from myxtts.inference.tensorflow_engine import VocoderEngine, open_checkpoint
from myxtts.voice import VOICE

SENTENCES = evaluation_sentences()[-9:]
OWN = (
    "Good morning. This voice was made on two small cores, from nothing but patience.",
    "The quick brown fox jumps over the lazy dog, and nobody minds.",
    "How far is it from here to the sea? Twelve miles, or a little more!",
)
HEARD = ("hibari", "hibari@0.84", "flite:slt", "flite:rms", "flite:awb", "flite:kal16")
COPIES = 3


class Samples:
    """What speaks, and the page's parts."""

    def __init__(self) -> None:
        self.synthesizer = open_checkpoint(VOICE)
        self.audio, self.vocoder = self.synthesizer.config.audio, self.synthesizer.engine
        place = Place(plan_devices().model_device)
        self.yardsticks = {name: VocoderEngine(way, self.audio, place) for name, way in YARDSTICKS.items()}

    def copies(self, recordings: list[Path]) -> str:
        """Recordings beside what the vocoder and Griffin-Lim make of their mels."""
        parts = []
        for path in recordings[:COPIES]:
            wave = read_wave(path, self.audio.sample_rate)
            mel = reference_mel(wave, self.audio, 1)
            parts.append(
                side_by_side(
                    path.name,
                    [
                        self._figure(wave, "recording"),
                        *(self._figure(engine.wave(mel), name) for name, engine in self.yardsticks.items()),
                        self._figure(self.vocoder.wave(mel), "vocoder in the package", ours=True),
                    ],
                )
            )
        return "".join(parts)

    def sentences(self, synthesizer: Synthesizer) -> str:
        """What nobody read to it."""
        voice = synthesizer.voice()
        return "".join(
            side_by_side(text, [self._figure(synthesizer.speak(synthesizer.read(text), voice), "spoken", ours=True)])
            for text in (*OWN, *SENTENCES[:3])
        )

    def ways(self) -> str:
        """One sentence in several ways."""
        script, voice = self.synthesizer.read(OWN[1]), self.synthesizer.voice()
        ways = {
            "as it is": SynthesisOptions(), "--speed 1.3": SynthesisOptions(speed=1.3),
            "--speed 0.8": SynthesisOptions(speed=0.8), "--pitch 1.25": SynthesisOptions(pitch=1.25),
            "--pitch 0.8": SynthesisOptions(pitch=0.8),
        }  # fmt: skip
        figures = [
            self._figure(self.synthesizer.speak(script, voice, how), name, ours=True) for name, how in ways.items()
        ]
        return side_by_side(OWN[1], figures)

    def clones(self, voices: tuple[str, ...], real: list[Path]) -> str:
        """References beside what was spoken in their voices."""
        parts = []
        with tempfile.TemporaryDirectory() as home:
            files = {path.name: path for path in real[:1]}
            for voice in voices:
                try:
                    choose_voice(voice.partition("@")[0].partition(":")[0])
                except UsageError:
                    continue
                wave, rate = Reader(voice).read(SENTENCES[-1], 5)
                files[voice] = Path(home, f"{len(files)}.wav")
                write_wave(files[voice], wave, rate)
            for name, path in files.items():
                spoken = self.synthesizer.speak(self.synthesizer.read(OWN[1]), self.synthesizer.voice([path]))
                reference = trim_silence(read_wave(path, self.audio.sample_rate), self.audio.sample_rate)
                parts.append(
                    side_by_side(
                        name, [self._figure(reference, "reference"), self._figure(spoken, "in its voice", ours=True)]
                    )
                )
        return "".join(parts)

    def _figure(self, wave: np.ndarray, caption: str, ours: bool = False) -> str:
        mel = log_mel(tf.constant(wave[None].astype(np.float32)), AudioConfig())[0].numpy()
        return figure(Sound(wave, self.audio.sample_rate, mel), caption, "ours" if ours else "target")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("samples/index.html"))
    parser.add_argument("--real", type=Path, help="folder of real recordings to copy and to clone")
    parser.add_argument("--run", type=Path, help="run folder that was fine-tuned on them")
    options = parser.parse_args()
    real = sorted(options.real.rglob("*.wav")) if options.real else []
    samples = Samples()
    with tempfile.TemporaryDirectory() as home:
        made = []
        for number, text in enumerate(SENTENCES[:COPIES]):
            wave, rate = Reader(choose_voice("auto")).read(text, number)
            made.append(Path(home, f"sentence {number + 1}.wav"))
            write_wave(made[-1], wave, rate)
        sections = {
            "The voice in the package": samples.sentences(samples.synthesizer),
            "Faster, slower, higher, lower": samples.ways(),
            "Copies of recordings": samples.copies(made),
            **({"Copies of real speech": samples.copies(real)} if real else {}),
            "Voices it was trained on": samples.clones(HEARD, []),
            "Voices it never heard": samples.clones(UNHEARD, real),
            **({"Fine-tuned on real speech": samples.sentences(open_checkpoint(options.run))} if options.run else {}),
        }
    body = "".join(f"<h2>{html.escape(title)}</h2>{content}" for title, content in sections.items())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    page = document("Listen to MyXTTS", "None of these sentences was trained on.", body)
    options.output.write_text(page, encoding="utf-8")
    print(options.output)


if __name__ == "__main__":
    main()
