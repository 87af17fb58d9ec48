"""Whose voice is it? References of several readers, spoken after by the voice in the package, compared with each.

Prints how like its own reader each voice came out, how often no other reader was more like it, and the same for voices
that were never trained on. Exits 1 when fewer than 90 % of the trained ones are most like their own.

    MYXTTS_SCORER=.venv-scores/bin/python python benchmarks/cloning.py [--recordings DIR]
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "recipes"))
from english import UNHEARD, VOICES

from myxtts.audio.wav import write_wave
from myxtts.demo.sentences import make_sentences
from myxtts.demo.voices import Reader
from myxtts.devices import import_tensorflow
from myxtts.scoring.scores import SpokenClip, score

SPOKEN, REFERENCES, KNOWN_BY = 8, 2, 8  # sentences said in each voice, recordings given, recordings compared with
LIMIT = 0.9


def read_aloud(voice: str, texts: list[str], folder: Path) -> list[Path]:
    """Recordings of a reader."""
    reader, paths = Reader(voice), [folder / f"{number}.wav" for number in range(len(texts))]
    folder.mkdir(parents=True)
    for number, (text, path) in enumerate(zip(texts, paths, strict=True)):
        write_wave(path, *reader.read(text, 90_000 + number))
    return paths


def measure(clips: list[SpokenClip], recordings: list[Path]) -> list[float]:
    """How like the voice of some recordings each clip is."""
    found = score(clips, recordings, only=["similarity"])
    if found.missing:
        sys.exit(f"likeness cannot be measured: {'; '.join(found.missing.values())}")
    return [float(row["similarity"]) for row in found.clips]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, help="a folder of recordings of one more voice, never trained on")
    options = parser.parse_args()
    import_tensorflow()
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.voice import VOICE

    heard = ("hibari", *VOICES)
    texts = make_sentences(2000, 77)[-(REFERENCES + KNOWN_BY + SPOKEN) :]
    with tempfile.TemporaryDirectory() as name:
        home, synthesizer = Path(name), Synthesizer(VOICE)
        recordings = {
            voice: read_aloud(voice, texts[: REFERENCES + KNOWN_BY], home / f"recorded-{number}")
            for number, voice in enumerate((*heard, *UNHEARD))
        }
        if options.recordings:
            files = sorted(options.recordings.rglob("*.wav"))[: REFERENCES + KNOWN_BY]
            if len(files) <= REFERENCES:
                sys.exit(f"{options.recordings} holds {len(files)} WAV files; {REFERENCES + 1} or more are needed")
            recordings[options.recordings.name] = files
        clips, owners = [], []
        for voice, paths in recordings.items():
            tokens = synthesizer.voice(paths[:REFERENCES])
            for text in texts[-SPOKEN:]:
                clips.append(SpokenClip(home / f"{len(clips)}.wav"))
                owners.append(voice)
                write_wave(clips[-1].wave, synthesizer.speak(text, tokens), synthesizer.sample_rate)
        likeness = {voice: measure(clips, paths[REFERENCES:]) for voice, paths in recordings.items()}
    right = {}
    for voice in recordings:
        mine = [number for number, owner in enumerate(owners) if owner == voice]
        own = statistics.mean(likeness[voice][number] for number in mine)
        best = [max(recordings, key=lambda other: likeness[other][number]) for number in mine]
        right[voice] = best.count(voice) / len(best)
        mistaken = sorted({other for other in best if other != voice})
        told = f"; else like {', '.join(mistaken)}" if mistaken else ""
        kind = "trained" if voice in heard else "unheard"
        print(f"{kind} {voice:16} like its reader {own:.3f}, most like it in {right[voice]:4.0%} of {len(best)}{told}")
    trained = statistics.mean(right[voice] for voice in heard)
    print(f"trained voices: {trained:.1%} most like their own reader among {len(recordings)} (limit {LIMIT:.0%})")
    return 0 if trained >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
