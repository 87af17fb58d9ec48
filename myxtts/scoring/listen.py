"""Listens to clips with whatever measuring packages this Python has. Run as a script, also by another Python.

In: on standard input {"clips": [{"wave", "recording"?}, ...], "voices": [paths], "language", "whisper"}.
Out: on standard output {"clips": [{"heard"?, "dnsmos"?, "similarity"?, "pesq"?, "stoi"?}, ...],
     "missing": {measure: why}}.

It imports nothing of MyXTTS: the packages that measure are large and may live in an environment of their own.
"""

import json
import sys
import warnings

RATE = 16000


class Clip:
    """One spoken clip at 16 kHz, with the recording it was made from where there is one."""

    def __init__(self, task):
        self.path = task["wave"]
        self.wave = read(task["wave"])
        self.recording = read(task["recording"]) if task.get("recording") else None


def read(path):
    import numpy as np
    import soundfile
    import soxr

    wave, rate = soundfile.read(path, dtype="float32", always_2d=True)
    wave = wave.mean(axis=1)
    return np.ascontiguousarray(soxr.resample(wave, rate, RATE) if rate != RATE else wave)


def make_hearing(job):
    """What Whisper hears."""
    from faster_whisper import WhisperModel

    model = WhisperModel(job["whisper"], device="cpu", compute_type="int8")

    def listen(clip):
        segments, _ = model.transcribe(
            clip.wave,
            language=job["language"],
            beam_size=1,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return {"heard": " ".join(segment.text.strip() for segment in segments)}

    return listen


def make_quality(_job):
    """DNSMOS: how good a listener would find the signal, 1 to 5."""
    import numpy as np
    from speechmos import dnsmos

    def listen(clip):
        level = 0.9 / max(1e-9, float(np.abs(clip.wave).max()))
        return {"dnsmos": float(dnsmos.run(clip.wave * level, sr=RATE)["ovrl_mos"])}

    return listen


def make_similarity(job):
    """The cosine between the voice of a clip and the mean voice of some recordings."""
    import numpy as np
    from resemblyzer import VoiceEncoder, preprocess_wav

    encoder = VoiceEncoder("cpu", verbose=False)

    def embed(wave):
        return encoder.embed_utterance(preprocess_wav(wave, RATE))

    target = np.mean([embed(read(path)) for path in job["voices"]], axis=0)
    target /= np.linalg.norm(target)
    return lambda clip: {"similarity": float(embed(clip.wave) @ target)}


def make_fidelity(_job):
    """How close a clip is to its recording: PESQ (wide band, up to 4.6) and STOI (up to 1)."""
    from pesq import pesq
    from pystoi import stoi

    def listen(clip):
        length = min(len(clip.wave), len(clip.recording))
        ours, theirs = clip.wave[:length], clip.recording[:length]
        return {"pesq": float(pesq(RATE, theirs, ours, "wb")), "stoi": float(stoi(theirs, ours, RATE))}

    return listen


# measure: what makes it, what to install for it
MEASURES = {
    "cer": (make_hearing, "faster-whisper"),
    "dnsmos": (make_quality, "speechmos"),
    "similarity": (make_similarity, "resemblyzer"),
    "pesq": (make_fidelity, "pesq pystoi"),
}


def listen_to_all(job):
    """Scores of all clips by all measures that can be had and make sense here."""
    clips = [Clip(task) for task in job["clips"]]
    results: list = [{} for _ in clips]
    missing = {}
    for name in job["measures"]:
        make, packages = MEASURES[name]
        try:
            listen = make(job)
        except ImportError as error:
            missing[name] = f"pip install {packages} ({error})"
            continue
        except Exception as error:  # a model that cannot be had is told, and the other measures go on
            missing[name] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            continue
        for clip, result in zip(clips, results):  # noqa: B905 (any Python 3 may run this)
            try:
                result.update(listen(clip))
            except Exception as error:  # silence, or too short for the measure: told, and the other clips go on
                told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                missing[name] = f"{clip.path} was left out ({told})"
    return {"clips": results, "missing": missing}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    answer, sys.stdout = sys.stdout, sys.stderr  # packages print what they like; the answer stands alone
    json.dump(listen_to_all(json.load(sys.stdin)), answer)
