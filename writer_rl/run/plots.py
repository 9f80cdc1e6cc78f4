"""The reward curves of a run as one picture, for whoever has no W&B at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PANELS = (
    ("return", ("reward/return/mean",)),
    ("memory reward", ("reward/mem/mean", "reward/phi/mean", "reward/chain/mean")),
    ("validity", ("reward/valid/mean", "reward/json/mean", "reward/schema/mean")),
    ("question gain", ("qa/gain/mean", "qa/both/mean", "qa/s1/mean")),
    ("KL to the reference", ("policy/kl",)),
    ("entropy, gradient norm", ("policy/entropy", "policy/grad_norm")),
    ("silent positions, clipped tokens", ("reward/zero_variance", "policy/clip_fraction")),
    ("completion length", ("rollout/completion_length/mean",)),
)
SMOOTHING = 0.3
"""Weight of the newest round in the drawn average; the rounds themselves are faint."""


def draw_reward_curves(records: Sequence[Mapping[str, Any]], path: Path) -> bool:
    """Write a PNG of the curves in `records` (lines of metrics.jsonl); False where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    columns = 4
    rows = -(-len(PANELS) // columns)
    figure = Figure(figsize=(4 * columns, 2.8 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (title, keys) in enumerate(PANELS, 1):
        axes = figure.add_subplot(rows, columns, place)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("round", fontsize=8)
        axes.tick_params(labelsize=7)
        for key in keys:
            points = [(record["round"], record[key]) for record in records if record.get(key) is not None]
            if points:
                rounds, values = zip(*points, strict=True)
                (line,) = axes.plot(rounds, _smoothed(values), label=key.split("/", 1)[1].removesuffix("/mean"))
                axes.plot(rounds, values, color=line.get_color(), alpha=0.25, linewidth=0.8)
        if len(keys) > 1 and axes.lines:
            axes.legend(fontsize=7)
    figure.savefig(path, dpi=110)
    return True


def _smoothed(values: Sequence[float]) -> list[float]:
    smooth: list[float] = []
    for value in values:
        smooth.append(value if not smooth else SMOOTHING * value + (1 - SMOOTHING) * smooth[-1])
    return smooth
