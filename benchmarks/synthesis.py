"""Speaking a 10-word sentence: cold start against `import tensorflow`, warm against real time.

Prints one line each; exits 1 when a limit is missed. Runs in alternation, medians of the repeats.

    python benchmarks/synthesis.py [--checkpoint RUN] [--repeats 5]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SENTENCE = "The old sailor carried a heavy basket across the valley."
COLD_LIMIT, WARM_LIMIT = 3.0, 10.0


def seconds(*words: str | Path) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True)
    return time.perf_counter() - begin


def train_small_run(folder: Path) -> Path:
    """A run of the real `tiny` size, long enough to have learned durations."""
    from myxtts.demo.corpus import make_corpus

    corpus = make_corpus(folder / "corpus", "espeak", 60, seed=0).folder
    words = ["train", "--train-data", corpus, "--cache-dir", folder / "cache", "--checkpoint-dir", folder / "run"]
    seconds("-m", "myxtts", *words, "--batch-size", "4", "--max-steps", "80")
    return folder / "run"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = options.checkpoint or train_small_run(folder)
        speak = ("-m", "myxtts", "synthesize", "--checkpoint", checkpoint, "--text", SENTENCE, "-o", folder / "a.wav")
        seconds("-c", "import tensorflow"), seconds(*speak)  # files into the page cache
        imports, colds = [], []
        for _ in range(options.repeats):
            imports.append(seconds("-c", "import tensorflow"))
            colds.append(seconds(*speak))
        cold = statistics.median(colds) / statistics.median(imports)

        from myxtts.devices import import_tensorflow

        import_tensorflow()
        from myxtts.inference.synthesizer import Synthesizer

        synthesizer = Synthesizer(checkpoint)
        voice = synthesizer.voice()
        synthesizer.speak(SENTENCE, voice)
        rates = []
        for _ in range(max(5, options.repeats)):
            begin = time.perf_counter()
            wave = synthesizer.speak(SENTENCE, voice)
            rates.append(len(wave) / synthesizer.sample_rate / (time.perf_counter() - begin))
        warm = statistics.median(rates)
    print(f"import tensorflow {statistics.median(imports):.2f} s, cold synthesis {statistics.median(colds):.2f} s")
    print(f"cold synthesis / import tensorflow: {cold:.2f} (limit {COLD_LIMIT})")
    print(f"warm synthesis: {warm:.1f} x real time (limit {WARM_LIMIT})")
    return 0 if cold <= COLD_LIMIT and warm >= WARM_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
