"""The budget grid as a picture (Fig. 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from writer_rl.evaluation.variants import GRID_S1, GRID_S2


def plot_grid(rows: Sequence[Mapping[str, Any]], path: Path) -> bool:
    """Accuracy and token-F1 against the S1 top-k, one line per S2 k. False (and no file) without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return False
    by_name = {row["variant"]: row for row in rows}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for axis, key, label in zip(axes, ("accuracy_mean", "token_f1_mean"), ("accuracy (%)", "token-F1 (%)"), strict=True):
        for s2 in GRID_S2:
            axis.plot(GRID_S1, [by_name[f"S1 {s1} x S2 {s2}"][key] for s1 in GRID_S1], marker="o", label=f"S2 k = {s2}")
        axis.set(xlabel="S1 top-k", ylabel=label, xticks=GRID_S1)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True
