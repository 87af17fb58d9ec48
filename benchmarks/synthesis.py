"""Speaking ten words with the voice in the package: cold start against `import tensorflow`, warm against real time.

Prints one line each; exits 1 when a limit is missed. Runs in alternation, medians of the repeats.

    python benchmarks/synthesis.py [--repeats 5]
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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        speak = ("-m", "myxtts", "say", SENTENCE, "-o", Path(name, "a.wav"))
        seconds("-c", "import tensorflow"), seconds(*speak)  # files into the page cache
        imports, colds = [], []
        for _ in range(options.repeats):
            imports.append(seconds("-c", "import tensorflow"))
            colds.append(seconds(*speak))
        cold = statistics.median(colds) / statistics.median(imports)

        from myxtts.runtime import import_tensorflow

        import_tensorflow()
        from myxtts.inference.tensorflow_engine import open_checkpoint
        from myxtts.voice import VOICE

        synthesizer = open_checkpoint(VOICE, eager_calls=0)
        voice = synthesizer.voice()
        synthesizer.speak(synthesizer.read(SENTENCE), voice)
        rates = []
        for _ in range(max(5, options.repeats)):
            begin = time.perf_counter()
            wave = synthesizer.speak(synthesizer.read(SENTENCE), voice)
            rates.append(len(wave) / synthesizer.sample_rate / (time.perf_counter() - begin))
        warm = statistics.median(rates)
    print(f"import tensorflow {statistics.median(imports):.2f} s, cold synthesis {statistics.median(colds):.2f} s")
    print(f"cold synthesis / import tensorflow: {cold:.2f} (limit {COLD_LIMIT})")
    print(f"warm synthesis: {warm:.1f} x real time (limit {WARM_LIMIT})")
    return 0 if cold <= COLD_LIMIT and warm >= WARM_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
