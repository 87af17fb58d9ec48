"""Whose voice is it? References of several readers, spoken after by the voice in the package, compared with each.

Prints how like its own reader each voice came out and how often no other reader was more like it, beside the same for
more recordings of the reader, which is the most that can be reached. Every voice is told from all others, trained on
or not. Exits 1 when fewer than 90 % of the trained ones are most like their own.

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
from myxtts.runtime import import_tensorflow
from myxtts.scoring.scores import SpokenClip, score

SPOKEN, REFERENCES, KNOWN_BY = 8, 2, 8  # sentences said in each voice, recordings given, recordings compared with
MORE = 4  # recordings that are compared as if they had been spoken
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
        sys.exit(f"speaker similarity cannot be measured: {'; '.join(found.missing.values())}")
    return [float(row["similarity"]) for row in found.clips]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, help="a folder of recordings of one more voice, never trained on")
    options = parser.parse_args()
    import_tensorflow()
    from myxtts.inference.tensorflow_engine import open_checkpoint
    from myxtts.voice import VOICE

    heard = ("hibari", *VOICES)
    count = REFERENCES + KNOWN_BY + MORE
    texts = make_sentences(2000, 77)[-(count + SPOKEN) :]
    with tempfile.TemporaryDirectory() as name:
        home, synthesizer = Path(name), open_checkpoint(VOICE)
        recordings = {
            voice: read_aloud(voice, texts[:count], home / f"recorded-{number}")
            for number, voice in enumerate((*heard, *UNHEARD))
        }
        if options.recordings:
            files = sorted(options.recordings.rglob("*.wav"))[:count]
            if len(files) < count:
                sys.exit(f"{options.recordings} holds {len(files)} WAV files; {count} are needed")
            recordings[options.recordings.name] = files
        clips, owners = [], []  # an owner: whose voice, and whether it was spoken or recorded
        for voice, paths in recordings.items():
            tokens = synthesizer.voice(paths[:REFERENCES])
            for text in texts[-SPOKEN:]:
                clips.append(SpokenClip(home / f"{len(clips)}.wav"))
                owners.append((voice, "spoken"))
                write_wave(clips[-1].wave, synthesizer.speak(synthesizer.read(text), tokens), synthesizer.sample_rate)
            clips += [SpokenClip(path) for path in paths[-MORE:]]
            owners += [(voice, "recorded")] * MORE
        similarity = {voice: measure(clips, paths[REFERENCES:-MORE]) for voice, paths in recordings.items()}
    right: dict[tuple[str, str], float] = {}
    for voice in recordings:
        told = []
        for kind in ("spoken", "recorded"):
            mine = [number for number, owner in enumerate(owners) if owner == (voice, kind)]
            best = [max(recordings, key=lambda other: similarity[other][number]) for number in mine]
            right[voice, kind] = best.count(voice) / len(best)
            own = statistics.mean(similarity[voice][number] for number in mine)
            mistaken = sorted(set(best) - {voice})
            told.append(f"{kind} {own:.3f}, right {right[voice, kind]:.0%}" + (f" (or {mistaken})" if mistaken else ""))
        print(f"{'trained' if voice in heard else 'unheard'} {voice:16} {'; '.join(told)}")
    spoken, recorded = (statistics.mean(right[voice, kind] for voice in heard) for kind in ("spoken", "recorded"))
    print(
        f"trained voices most like their own reader: {spoken:.1%} of {SPOKEN * len(heard)} (limit {LIMIT:.0%}), "
        f"their own recordings {recorded:.1%}"
    )
    return 0 if spoken >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
