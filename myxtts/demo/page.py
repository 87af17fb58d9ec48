"""One self-contained HTML page: players, pictures, loss curve, timings.

In: the facts of a demo run.
Out: HTML text without a single outside address.
"""

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import soundfile

from myxtts.audio.picture import colour, png

STYLE = """
:root { color-scheme: light dark; --line: #8884; --accent: #d2463f; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.4rem; }
p.lead { opacity: .75; margin-top: 0; }
section.pair { border-top: 1px solid var(--line); padding: 1rem 0; }
section.pair blockquote { margin: 0 0 .7rem; font-size: 1.05rem; }
.voices { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--soft); border-radius: .6rem; padding: .7rem; }
figcaption { font-size: .85rem; opacity: .8; margin-bottom: .4rem; }
figure.ours figcaption { color: var(--accent); opacity: 1; }
audio { width: 100%; } img { width: 100%; height: 7rem; border-radius: .3rem; margin-top: .5rem; display: block; }
img.path { height: 14rem; image-rendering: pixelated; }
table { border-collapse: collapse; }
td, th { padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
"""


@dataclass(frozen=True)
class Sound:
    """A clip to play, with its mel picture."""

    wave: np.ndarray
    sample_rate: int
    mel: np.ndarray  # [frames, n_mels]


@dataclass(frozen=True)
class Pair:
    """A sentence in our voice, beside the voice we learned from where there is a recording of it."""

    sentence: str
    ours: Sound
    target: Sound | None


def _data_address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _picture(matrix: np.ndarray, words: str, style: str = "") -> str:
    address = _data_address("image/png", png(colour(matrix)))
    return f'<img class="{style}" alt="{html.escape(words)}" src="{address}">'


def figure(sound: Sound, caption: str, style: str) -> str:
    """A player with a picture under it; the style `ours` stands out."""
    file = io.BytesIO()
    soundfile.write(file, sound.wave, sound.sample_rate, format="WAV", subtype="PCM_16")
    player = f'<audio controls preload="metadata" src="{_data_address("audio/wav", file.getvalue())}"></audio>'
    picture = _picture(sound.mel.T, f"mel spectrogram, {caption}")
    return f'<figure class="{style}"><figcaption>{html.escape(caption)}</figcaption>{player}{picture}</figure>'


def _pair(pair: Pair, voice: str) -> str:
    figures = [figure(pair.ours, "MyXTTS, trained on this machine", "ours")]
    if pair.target is not None:
        figures.insert(0, figure(pair.target, f"the voice it learned from ({voice})", "target"))
    return side_by_side(pair.sentence, figures)


def side_by_side(sentence: str, figures: Sequence[str]) -> str:
    """One sentence by several speakers."""
    quote = f"<blockquote>{html.escape(sentence)}</blockquote>"
    return f'<section class="pair">{quote}<div class="voices">{"".join(figures)}</div></section>'


def document(title: str, lead: str, body: str) -> str:
    """A whole page around its content."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f'<h1>{html.escape(title)}</h1><p class="lead">{html.escape(lead)}</p>{body}</body></html>\n'
    )


def loss_curve(points: Sequence[tuple[float, float]]) -> str:
    """An SVG line of (minutes, loss)."""
    if len(points) < 2:
        return "<p>The run was too short for a curve.</p>"
    width, height, left, bottom = 720, 240, 44, 28
    longest, highest = max(x for x, _ in points), max(y for _, y in points)
    spots = [(left + x / longest * (width - left - 8), (height - bottom) * (1 - y / highest * 0.95)) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    marks = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + share * (width - left - 8), (height - bottom) * (1 - share * 0.95)
        marks.append(f'<text x="{x:.0f}" y="{height - 8}" text-anchor="middle">{longest * share:.1f} min</text>')
        marks.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{highest * share:.2f}</text>')
        marks.append(f'<path d="M{left} {y:.0f}H{width - 8}" stroke="currentColor" stroke-opacity=".15"/>')
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="training loss over time">{"".join(marks)}'
        f'<polyline fill="none" stroke="#d2463f" stroke-width="2" points="{line}"/></svg>'
    )


def make_page(
    title: str,
    lead: str,
    voice: str,
    pairs: Sequence[Pair],
    curve: Sequence[tuple[float, float]],
    path: np.ndarray | None,
    facts: Sequence[tuple[str, str]],
    next_step: str,
) -> str:
    """The whole page."""
    rows = "".join(f'<tr><th>{html.escape(k)}</th><td class="number">{html.escape(v)}</td></tr>' for k, v in facts)
    alignment = ""
    if path is not None:
        picture = _picture(path, "alignment of sounds to time", "path")
        alignment = (
            "<h2>Which sound when</h2><p>The alignment found for a sentence that was not trained on: "
            f"time to the right, the sounds of the text upwards.</p>{picture}"
        )
    return document(
        title,
        lead,
        f"<h2>Listen</h2>{''.join(_pair(pair, voice) for pair in pairs)}"
        f"<h2>How the loss fell</h2>{loss_curve(curve)}{alignment}"
        f"<h2>Figures of this run</h2><table>{rows}</table>"
        f"<h2>Your own voice</h2><p>{html.escape(next_step)}</p>",
    )
