"""How fast clips are prepared and served, against a PyTorch DataLoader on the same clips, and what a million cost.

    python benchmarks/data.py [--torch-python .venv-bench/bin/python] [--repeats 5]

Speeds are audio seconds per second of CPU time, all threads counted. Exits 1 when a limit is missed.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import soundfile
import soxr

from myxtts.config.config import XTTSConfig
from myxtts.config.load import build
from myxtts.data.cache import learn_tokenizer, prepare
from myxtts.data.pack import AUDIO, CLIPS, FORMAT, INDEX, PITCH, RECORD, REJECTED, UNITS, WORDS, Pack
from myxtts.data.report import shapes_and_padding
from myxtts.demo.corpus import make_corpus
from myxtts.demo.voices import choose_voice

# Preparing finds the pitch too, which training did for every batch before: the limit was 1,000 without it
# (307 to 457 were measured on a machine that was not quiet).
LIMITS = {"prepare": 250.0, "serve": 20_000.0, "times torch": 5.0, "open seconds": 2.0, "open MB": 1024.0}
MOST_PADDING, MOST_SHAPES = 0.12, 6
BATCH = 16

TORCH = """
import sys, time
import numpy as np, soundfile, torch
from pathlib import Path

torch.set_num_threads(1)
files = sorted(Path(sys.argv[1]).glob("wavs/*.wav"))
window = torch.hann_window(1024)

class Clips(torch.utils.data.Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, number):
        wave, rate = soundfile.read(files[number], dtype="float32")
        wave = torch.from_numpy(wave)
        return torch.stft(wave, 1024, 256, window=window, return_complex=True).abs().T

def pad(items):
    return torch.nn.utils.rnn.pad_sequence(items, batch_first=True)

loader = torch.utils.data.DataLoader(Clips(), batch_size=16, shuffle=True, collate_fn=pad)
for epoch in range(2):
    begin = time.process_time()
    for batch in loader:
        pass
    seconds = time.process_time() - begin
print(seconds)
"""

PEAK = """
def peak_megabytes():  # of this program alone; getrusage would count the parent's memory before exec
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
"""

OPEN = (
    PEAK
    + """
import sys, time
begin = time.perf_counter()
from pathlib import Path
from myxtts.data.pack import open_pack
loaded = time.perf_counter()
pack = open_pack(Path(sys.argv[1]))
clip = pack[len(pack) // 2]
opened = time.perf_counter()
print(opened - loaded, opened - begin, peak_megabytes(), len(pack))
"""
)

FIRST_BATCH = (
    PEAK
    + """
import sys, time
from pathlib import Path
from myxtts.runtime import import_tensorflow
import_tensorflow()
from myxtts.config.config import XTTSConfig
from myxtts.data.cache import learn_tokenizer
from myxtts.data.dataset import HostDataset
from myxtts.data.pack import open_pack
before = peak_megabytes()
begin = time.perf_counter()
config, pack = XTTSConfig(), open_pack(Path(sys.argv[1]))
dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
next(iter(dataset.batches()))
print(time.perf_counter() - begin, peak_megabytes() - before)
"""
)


def run(python: str, code: str, folder: Path) -> list[float]:
    result = subprocess.run([python, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    return [float(word) for word in result.stdout.split()]


def make_clips(folder: Path) -> Path:
    """About as long as LJSpeech's clips (6.6 s): sentences of espeak-ng, which speaks at 22.05 kHz, joined by twos."""
    source = make_corpus(folder.with_name("sentences"), "espeak", 1200, seed=3).folder
    lines = [line.split("|") for line in (source / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    (folder / "wavs").mkdir(parents=True)
    with (folder / "metadata.csv").open("w", encoding="utf-8") as metadata:
        for (one, first), (two, second) in zip(lines[::2], lines[1::2], strict=True):
            waves = [soundfile.read(source / "wavs" / f"{name}.wav", dtype="int16") for name in (one, two)]
            soundfile.write(folder / "wavs" / f"{one}.wav", np.concatenate([w for w, _ in waves]), waves[0][1])
            metadata.write(f"{one}|{first} {second}\n")
    return folder


def measure_prepare(corpus: Path, cache: Path, repeats: int) -> tuple[float, Pack]:
    """Audio seconds a CPU second, and the pack."""
    config = build({"data.cache_dir": str(cache)})
    speeds = []
    for _ in range(repeats):
        shutil.rmtree(cache, ignore_errors=True)
        begin = time.process_time()
        pack = prepare(corpus, config)
        speeds.append(recorded_seconds(corpus) / (time.process_time() - begin))
    return statistics.median(speeds), pack


def recorded_seconds(corpus: Path) -> float:
    return sum(soundfile.info(path).duration for path in (corpus / "wavs").glob("*.wav"))


def measure_serving(pack: Pack, corpus: Path, torch_python: str, repeats: int) -> tuple[float, float]:
    """Audio seconds a CPU second of our warm epoch and of the DataLoader's, in alternation."""
    from myxtts.runtime import import_tensorflow

    import_tensorflow()
    from myxtts.data.dataset import HostDataset

    config = build({"data.batch_size": BATCH})
    dataset = HostDataset(pack, learn_tokenizer([pack], config), config)
    ours, theirs = [], []
    epochs = 10
    for _ in range(repeats):
        batches = iter(dataset.batches(epochs=1 + epochs))
        for _ in range(dataset.batches_per_epoch):  # warm: every clip was read and checked once
            next(batches)
        begin = time.process_time()
        for _ in batches:
            pass
        ours.append(epochs * pack.seconds / (time.process_time() - begin))
        if torch_python:
            theirs.append(recorded_seconds(corpus) / run(torch_python, TORCH, corpus)[0])
    return statistics.median(ours), statistics.median(theirs) if theirs else 0.0


def write_million(folder: Path, count: int = 1_000_000) -> None:
    """An index of a million clips; their audio is a file of holes."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    records = np.zeros(count, RECORD)
    lengths = rng.integers(22050, 220500, 64).astype(np.int32)
    checksums = np.array([zlib.crc32(bytes(2 * int(length))) for length in lengths], np.uint32)
    kinds = rng.integers(0, len(lengths), count)
    records["samples"], records["checksum"] = lengths[kinds], checksums[kinds]
    records["units"] = rng.integers(20, 100, count)
    records["start"][1:] = np.cumsum(records["samples"].astype(np.int64))[:-1]
    records["first_unit"][1:] = np.cumsum(records["units"].astype(np.int64))[:-1]
    records["speaker"] = rng.integers(0, 500, count)
    records["id_bytes"], records["text_bytes"] = 12, 60
    records["words"] = np.arange(count) * 72
    (folder / CLIPS).write_bytes(records.tobytes())
    units = int(records["units"].sum())
    (folder / UNITS).write_bytes(rng.integers(0, 60, units).astype("<u2").tobytes())
    (folder / WORDS).write_bytes(b"".join(b"clip%08d" % n + b"x" * 60 for n in range(count)))
    (folder / REJECTED).write_text("id,reason,detail\n")
    (folder / PITCH).touch()
    with (folder / AUDIO).open("wb") as audio:
        audio.truncate(2 * int(records["samples"].astype(np.int64).sum()))
    index = {
        "format": FORMAT, "sample_rate": XTTSConfig().audio.sample_rate, "listed": count,
        "speakers": [f"speaker {n}" for n in range(500)], "languages": ["en"],
        "symbols": [chr(97 + n) for n in range(60)], "sources": {"22050 Hz, 1 channel": count}, "warnings": [],
        "sizes": {name: (folder / name).stat().st_size for name in (AUDIO, PITCH, CLIPS, UNITS, WORDS, REJECTED)},
    }  # fmt: skip
    index["checksums"] = {name: zlib.crc32((folder / name).read_bytes()) for name in (CLIPS, UNITS, WORDS, REJECTED)}
    (folder / INDEX).write_text(json.dumps(index))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch-python", default="", help="a Python with torch and soundfile")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    failed = []

    def judge(name: str, value: float, smaller_is_better: bool = False) -> str:
        limit = LIMITS[name]
        good = value <= limit if smaller_is_better else value >= limit
        if not good:
            failed.append(name)
        return f"{'✅' if good else '❌'} (limit {limit:g})"

    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        corpus = make_clips(home / "same-rate")
        speed, pack = measure_prepare(corpus, home / "cache", options.repeats)
        resampled = home / "resampled"
        (resampled / "wavs").mkdir(parents=True)
        shutil.copy(corpus / "metadata.csv", resampled)
        for path in (corpus / "wavs").glob("*.wav"):
            wave, rate = soundfile.read(path, dtype="float32")
            soundfile.write(resampled / "wavs" / path.name, soxr.resample(wave, rate, 44100), 44100)
        other, _ = measure_prepare(resampled, home / "cache2", options.repeats)
        print(f"{len(pack)} clips of {pack.seconds / len(pack):.1f} s; audio seconds per CPU second:")
        print(f"prepare from WAV at the model's rate {speed:.0f} {judge('prepare', speed)}, from 44.1 kHz {other:.0f}")
        ours, theirs = measure_serving(pack, corpus, options.torch_python, options.repeats)
        print(f"warm epoch, pack to padded batch {ours:.0f} {judge('serve', ours)}")
        if theirs:
            ratio = ours / theirs
            print(
                f"PyTorch DataLoader, soundfile + torch.stft {theirs:.0f}: {ratio:.1f} x {judge('times torch', ratio)}"
            )
        else:
            print("PyTorch DataLoader: not measured (give --torch-python)")
        million = home / "million"
        write_million(million)
        runs = [run(sys.executable, OPEN, million) for _ in range(options.repeats)]
        seconds, with_imports, megabytes = (statistics.median(column) for column in list(zip(*runs, strict=True))[:3])
        print(
            f"open a million clips {seconds:.3f} s ({with_imports:.2f} s with imports) "
            f"{judge('open seconds', with_imports, True)}, {megabytes:.0f} MB {judge('open MB', megabytes, True)}"
        )
        first, grown = run(sys.executable, FIRST_BATCH, million)
        print(f"its first batch after {first:.2f} s, {grown:.0f} MB more than TensorFlow alone")
        voice = choose_voice("auto")
        demo = make_corpus(home / "demo", voice, 1200, seed=0).folder
        config = build({"data.cache_dir": str(home / "cache3"), "data.batch_size": BATCH})
        shapes, padding = shapes_and_padding(prepare(demo, config), config)
        good = shapes <= MOST_SHAPES and padding <= MOST_PADDING
        print(f"demo corpus ({voice}): {shapes} shapes, {padding:.1%} padding {chr(9989) if good else chr(10060)}")
        if not good:
            failed.append("padding")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
