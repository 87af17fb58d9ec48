"""Makes the voice that ships in the package: a corpus of synthetic voices, a vocoder, a speech model, small copies.

    pip install -r recipes/requirements.txt && apt-get install flite wordnet-base
    python recipes/english.py --folder box

Each part that is already done is kept, and a training run that was ended goes on where it was. The result lies in
`myxtts/voice`, and `myxtts evaluate` scores it. Takes some hours on two CPU cores.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

HIBARI, OTHERS = 3600, 400  # sentences read by the main voice, and by each of the others
# Voices of other pitch and timbre, so that a reference decides something. Not here, to be tested with: UNHEARD.
VOICES = ("hibari@0.84", "hibari@1.16", "flite:slt", "flite:rms", "flite:awb", "flite:kal16")
# A few sentences each of the same readers higher and lower: many voices, so that the space between them is learned too.
SHIFTED, FEW = tuple(f"flite:{name}@{tempo}" for name in ("slt", "rms", "awb", "kal16") for tempo in (0.9, 1.12)), 100
UNHEARD = ("hibari@0.92", "espeak:en-us+f3", "espeak:en-us+m3")
WORDNET = Path("/usr/share/wordnet")  # whose examples are natural sentences on everything
EXAMPLE_SHARE, ROW_SHARE = 0.5, 0.15  # of the texts; the rest is the demo's grammar
COMMON = 4000  # words that are frequent enough to be read in rows, for sounds in neighbourhoods that sentences lack
KNOWN = 40_000  # words that an example may hold: rarer ones are read in more ways than one
LONG, SHORT = 400, 100  # of the main voice's: sentences joined to long ones, and a word or two
SEED = 11


def make_texts(count: int) -> list[str]:
    """Examples of WordNet, sentences of the demo's grammar, and rows of common words."""
    from myxtts.demo.sentences import make_sentences

    pick = random.Random(SEED)
    words = common_words(COMMON)
    rows = []
    for _ in range(int(count * ROW_SHARE)):
        row = pick.sample(words, pick.randint(4, 9))
        comma = pick.randint(2, len(row) - 1)
        rows.append(f"{' '.join(row[:comma])}, {' '.join(row[comma:])}{pick.choice('..?!')}".capitalize())
    examples = pick.sample(example_sentences(), int(count * EXAMPLE_SHARE))
    texts = make_sentences(count - len(rows) - len(examples), SEED) + rows + examples
    pick.shuffle(texts)
    return texts


def make_odd_lengths() -> list[str]:
    """Texts that are longer and shorter than the others."""
    from myxtts.demo.sentences import make_sentences

    pick = random.Random(SEED + 1)
    sentences = make_sentences(2 * LONG, SEED + 1) + pick.sample(example_sentences(), 2 * LONG)
    pick.shuffle(sentences)
    parts, texts = iter(sentences), []
    for _ in range(LONG):
        some = [next(parts) for _ in range(pick.choice((2, 2, 3)))]
        joints = [pick.choice((", and ", ", but ", "; ", ", ")) for _ in some[1:]]
        texts.append("".join(part[:-1] + joint for part, joint in zip(some, joints, strict=False)) + some[-1])
    words = common_words(COMMON)
    texts += [" ".join(pick.sample(words, pick.randint(1, 2))).capitalize() + pick.choice("..?!") for _ in range(SHORT)]
    return texts


def common_words(count: int) -> list[str]:
    from wordfreq import top_n_list

    words = [word for word in top_n_list("en", 2 * count) if word.isascii() and word.isalpha() and len(word) > 2]
    return words[:count]


def example_sentences() -> list[str]:
    """What WordNet gives as examples of its words, where it is all of words that most readers know."""
    from wordfreq import top_n_list

    files = sorted(WORDNET.glob("data.*"))
    if not files:
        sys.exit(f"{WORDNET} holds no data.* files; run: apt-get install wordnet-base")
    known = set(top_n_list("en", KNOWN))
    quoted = (text for file in files for text in re.findall(r'"([^"]+)"', file.read_text(encoding="utf-8")))
    sentences = dict.fromkeys(
        text[0].upper() + text[1:].rstrip(".") + ("" if text[-1] in "?!" else ".")
        for text in quoted
        if 25 <= len(text) <= 84
        and re.fullmatch(r"[A-Za-z',; -]+[.?!]?", text)
        and not re.search(r"[A-Z][A-Z]|[a-z][A-Z]", text)
        and all(word in known for word in re.findall("[a-z][a-z']*", text.lower()))
    )
    return list(sentences)


def make_corpora(folder: Path) -> None:
    """One for the speech model, and one for the vocoder in which the main voice has all pitches."""
    from myxtts.demo.corpus import make_multispeaker_corpus
    from myxtts.demo.sentences import evaluation_sentences, make_sentences

    texts = iter(make_texts(HIBARI + OTHERS * len(VOICES)))
    take = lambda count: [next(texts) for _ in range(count)]  # noqa: E731
    parts = {"hibari": take(HIBARI), **{voice: take(OTHERS) for voice in VOICES}}
    parts["hibari"][-LONG - SHORT :] = make_odd_lengths()
    more = iter(make_sentences(FEW * len(SHIFTED), SEED + 2))
    parts |= {voice: [next(more) for _ in range(FEW)] for voice in SHIFTED}

    def show(what: str, done: int, total: int) -> None:
        print(f"\r{what} {done}/{total}", end="", file=sys.stderr, flush=True)

    if seen := set(evaluation_sentences()) & {text for part in parts.values() for text in part}:
        sys.exit(f"these are for evaluation and must not be trained on: {seen}; choose another SEED")
    make_multispeaker_corpus(folder / "speech", parts, SEED, progress=show)
    pick = random.Random(SEED)
    tempos = [2.0 ** pick.uniform(-0.5, 0.4) for _ in range(60)]
    pitches = {f"hibari@{tempo:.3f}": parts["hibari"][10 * n : 10 * n + 10] for n, tempo in enumerate(tempos)}
    natural = {"hibari": parts["hibari"][600:1200]}
    others = {voice: parts[voice][:120] for voice in VOICES if voice.startswith("flite")}
    make_multispeaker_corpus(folder / "waves", {**natural, **pitches, **others}, SEED, progress=show)
    print(file=sys.stderr)


def train(corpus: Path, run: Path, steps: int, *flags: str) -> Path:
    """Trains with the command, or goes on with a run that was ended; its newest checkpoint."""
    words = [sys.executable, "-m", "myxtts", "train", "--max-steps", str(steps), "--checkpoint-dir", str(run)]
    if not _is_complete(run, steps):
        begun = (run / "latest").exists()
        words += ["--resume", str(run)] if begun else ["--train-data", str(corpus), *flags]
        if code := subprocess.run(words).returncode:
            sys.exit(code)
    return run / "latest"


def _is_complete(run: Path, steps: int) -> bool:
    state = run / "latest" / "state.json"
    return state.is_file() and json.loads(state.read_text(encoding="utf-8"))["step"] >= steps


def ship(checkpoint: Path, target: Path) -> None:
    """Puts a small copy of a checkpoint into the package."""
    from myxtts.checkpoint.folder import read_checkpoint, write_checkpoint
    from myxtts.checkpoint.packaged import shrink

    part = target.with_name(f".{target.name}")
    shutil.rmtree(part, ignore_errors=True)
    small = write_checkpoint(part, shrink(read_checkpoint(checkpoint)), keep=1, best=False)
    shutil.rmtree(target, ignore_errors=True)
    small.rename(target)
    shutil.rmtree(part)
    print(f"{target}: {sum(file.stat().st_size for file in target.iterdir()) / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where corpora and runs are kept")
    parser.add_argument("--vocoder-steps", type=int, default=7_500)
    parser.add_argument("--speech-steps", type=int, default=10_000)
    options = parser.parse_args()
    folder = options.folder
    make_corpora(folder)
    cache = ("--cache-dir", str(folder / "cache"), "--log-every", "100", "--sample-every", "0", "--batch-size", "8")
    steps = options.vocoder_steps
    adversarial = ("--target", "vocoder", "--lr", "1.5e-3", "--discriminators-after", str(4 * steps // 5))
    vocoder = train(folder / "waves", folder / "vocoder", steps, *cache, *adversarial)
    speech = train(folder / "speech", folder / "run", options.speech_steps, *cache)
    from myxtts.voice import VOCODER, VOICE

    ship(vocoder, VOCODER)
    ship(speech, VOICE)


if __name__ == "__main__":
    main()
