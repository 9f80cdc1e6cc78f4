"""Line charts as inline SVG, in the page's own colours, readable without any script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 22
FEW = 12
"""Curves of fewer points are drawn as they are."""
COLOURS = 6
"""How many colours the style has; more lines begin again."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve: `points` (x, y) as measured, drawn faint, and their running mean; or, with `low` and `high`, a mean with its band.

    Example: Curve("seed 0", ((1, 0.41), (2, 0.44)))
    """

    label: str
    points: tuple[tuple[float, float], ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def smoothed(values: Sequence[float], weight: float = 0.3) -> list[float]:
    """The exponential running mean: the newest value has `weight`.

    Example: smoothed([1.0, 0.0], 0.5) == [1.0, 0.5].
    """
    found: list[float] = []
    for value in values:
        found.append(value if not found else weight * value + (1 - weight) * found[-1])
    return found


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers from `low` to `high`, about `count` of them.

    Example: ticks(0.0, 1.0) == [0.0, 0.25, 0.5, 0.75, 1.0].
    """
    span = (high - low) or 1.0
    raw = span / count
    base = 10 ** math.floor(math.log10(raw))
    step = next(base * factor for factor in (1, 2, 2.5, 5, 10) if base * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 10) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(lines: Sequence[Curve], label: str) -> str:
    """The chart as SVG; "" where no line has a point. `label` is what a screen reader says."""
    drawn = [line for line in lines if line.points]
    if not drawn:
        return ""
    xs = [x for line in drawn for x, _ in line.points]
    ys = [value for line in drawn for value in (*(y for _, y in line.points), *line.low, *line.high)]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    margin = (high - low) * 0.06 or max(abs(high) * 0.1, 0.01)
    low, high = low - margin, high + margin

    def place(x: float, y: float) -> str:
        across, up = (x - left) / ((right - left) or 1), (y - low) / (high - low)
        return f"{LEFT + across * (WIDTH - LEFT - RIGHT):.1f},{HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    for value in ticks(low, high):
        x, y = place(left, value).split(",")
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y}" text-anchor="end" dominant-baseline="middle">{_short(value)}</text>')
    for value in sorted({left, right}):
        x = place(value, low).split(",")[0]
        anchor = "start" if value == left else "end"
        parts.append(f'<text x="{x}" y="{HEIGHT - 6}" text-anchor="{anchor}">{_short(value)}</text>')
    for number, line in enumerate(drawn):
        parts += _curve(line, number % COLOURS, place)
    return "".join([*parts, "</svg>"])


def _curve(line: Curve, colour: int, place: Callable[[float, float], str]) -> list[str]:
    xs = [x for x, _ in line.points]
    name = f"<title>{escape(line.label)}</title>"
    if line.low:
        edge = [*zip(xs, line.high, strict=True), *reversed(list(zip(xs, line.low, strict=True)))]
        band = " ".join(place(x, y) for x, y in edge)
        mean = " ".join(place(x, y) for x, y in line.points)
        return [
            f'<polygon class="band c{colour}" points="{band}"/>',
            f'<polyline class="curve c{colour}" points="{mean}">{name}</polyline>',
        ]
    raw = " ".join(place(x, y) for x, y in line.points)
    if len(xs) < FEW:  # a running mean of few points says something else than they do
        found = [f'<polyline class="curve c{colour}" points="{raw}">{name}</polyline>']
        if len(xs) == 1:
            x, y = raw.split(",")
            found.append(f'<circle class="c{colour}" cx="{x}" cy="{y}" r="3">{name}</circle>')
        return found
    smooth = " ".join(place(x, y) for x, y in zip(xs, smoothed([y for _, y in line.points]), strict=True))
    return [
        f'<polyline class="raw c{colour}" points="{raw}"/>',
        f'<polyline class="curve c{colour}" points="{smooth}">{name}</polyline>',
    ]


def _short(value: float) -> str:
    return f"{value:.3g}" if value else "0"
