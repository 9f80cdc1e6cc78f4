"""The budget grid as a picture (Fig. 5 and 6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from writer_rl.evaluation.report import VariantRow
from writer_rl.evaluation.variants import GRID_S1, GRID_S2


def plot_grid(rows: Sequence[VariantRow], path: Path) -> bool:
    """Accuracy and token-F1 against the S1 top-k, one line per S2 k. False (and no file) without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return False
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    accuracy = {row["variant"]: row["accuracy_mean"] for row in rows}
    token_f1 = {row["variant"]: row["token_f1_mean"] for row in rows}
    for axis, values, label in zip(axes, (accuracy, token_f1), ("accuracy (%)", "token-F1 (%)"), strict=True):
        for s2 in GRID_S2:
            axis.plot(GRID_S1, [values[f"S1 {s1} x S2 {s2}"] for s1 in GRID_S1], marker="o", label=f"S2 k = {s2}")
        axis.set(xlabel="S1 top-k", ylabel=label, xticks=GRID_S1)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True
