"""Line charts as PNG, drawn with Pillow.

In: named lines of points.
Out: a PNG file.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

Points = Sequence[tuple[float, float]]
COLOURS = ("#2f6fb3", "#c9553f", "#3f9a6d", "#b5842a", "#7a62b8", "#5f6b7a")
WIDTH, PANEL, LEFT, TOP, BOTTOM, RIGHT = 900, 260, 80, 34, 40, 20
TICKS = 5


def draw_panels(file: Path, panels: Mapping[str, Mapping[str, Points]], axis: str, markers: bool = False) -> None:
    """One chart below the other, each with the same kind of horizontal axis, from zero upwards."""
    picture = Image.new("RGB", (WIDTH, PANEL * len(panels)), "white")
    pen = ImageDraw.Draw(picture)
    font = ImageFont.load_default(15)
    for place, (title, lines) in enumerate(panels.items()):
        _draw_panel(pen, font, PANEL * place, title, lines, axis, markers)
    picture.save(file, "PNG")


def _draw_panel(
    pen: ImageDraw.ImageDraw,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    top: int,
    title: str,
    lines: Mapping[str, Points],
    axis: str,
    markers: bool,
) -> None:
    everything = [point for points in lines.values() for point in points]
    last = max((x for x, _ in everything), default=1.0) or 1.0
    highest = 1.1 * max((y for _, y in everything), default=1.0) or 1.0
    height, width = PANEL - TOP - BOTTOM, WIDTH - LEFT - RIGHT

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + x / last * width, top + TOP + height - y / highest * height

    for number in range(TICKS):
        x, y = last * number / (TICKS - 1), highest * number / (TICKS - 1)
        pen.line([at(0, y), at(last, y)], fill="#dddddd")
        pen.text((LEFT - 8, at(0, y)[1]), f"{y:.4g}", "#333333", font, anchor="rm")
        pen.text((at(x, 0)[0], top + PANEL - BOTTOM + 6), f"{x:.4g}", "#333333", font, anchor="mt")
    pen.text((LEFT, top + 6), title, "black", font)
    pen.text((WIDTH - RIGHT, top + PANEL - 4), axis, "#333333", font, anchor="rb")
    place = WIDTH - RIGHT
    for number, (name, points) in reversed(list(enumerate(lines.items()))):
        colour = COLOURS[number % len(COLOURS)]
        spots = [at(x, y) for x, y in points]
        if len(spots) > 1:
            pen.line(spots, fill=colour, width=2)
        for x, y in spots if markers or len(spots) == 1 else ():
            pen.ellipse([x - 4, y - 4, x + 4, y + 4], fill=colour)
        pen.text((place, top + 6), name, colour, font, anchor="ra")
        place -= int(pen.textlength(name, font)) + 18
