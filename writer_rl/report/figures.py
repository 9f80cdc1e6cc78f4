"""The paper's Fig. 4-6 from evaluation folders, as PNG files (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from writer_rl.evaluation.variants import GRID_S1, GRID_S2
from writer_rl.report.paper_tables import ABLATIONS, best_differences
from writer_rl.report.results import Results

METRICS = (("accuracy_mean", "Acc. (%)", "#2456a6", "o", "-"), ("token_f1_mean", "token-F1 (%)", "#b3446c", "s", "--"))


def draw_figures(results: Sequence[Results], folder: Path) -> list[str]:
    """Draw what can be drawn into `folder`; a line for each figure: its file, or why there is none."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return ["Fig. 4-6  none: matplotlib is not installed (pip install matplotlib)"]
    folder.mkdir(parents=True, exist_ok=True)
    makers: tuple[tuple[str, str, str, Callable[[Results, Any], None]], ...] = (
        ("Fig. 4", "ablations", "--ablations", _ablation_bars),
        ("Fig. 5", "grid", "--grid", _grid_curves),
        ("Fig. 6", "grid", "--grid", _grid_cells),
    )
    said = []
    for name, part, option, draw in makers:
        found = [each for each in results if each.part(part)]
        for place, each in enumerate(found):
            tail = f"-{place + 1}" if len(found) > 1 else ""
            path = folder / f"{name.lower().replace('. ', '')}{tail}.png"
            _save(path, f"{each.path.name}: {each.document['total']} questions; {each.hashes}", each, draw)
            said.append(f"{name}  {path}")
        if not found:
            said.append(f"{name}  none: no {part}.json; launch/evaluate.py {option}")
    return said


def _save(path: Path, title: str, results: Results, draw: Callable[[Results, Any], None]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=7)
    draw(results, figure)
    figure.savefig(path, dpi=140)


def _ablation_bars(results: Results, figure: Any) -> None:
    axis = figure.add_subplot()
    writers = list(dict.fromkeys(row["writer"] for row in results.part("ablations")))
    for number, writer in enumerate(writers):
        found = best_differences(results, writer)
        places = [place + number * 0.8 / len(writers) for place in range(len(ABLATIONS))]
        values = [found[name][0] if name in found else 0.0 for name in ABLATIONS]
        bars = axis.bar(places, values, 0.75 / len(writers), label=writer)
        axis.bar_label(bars, [f"{found[n][1]:+.1f}" if n in found else "" for n in ABLATIONS], fontsize=7)
    axis.set_xticks([place + 0.4 - 0.4 / len(writers) for place in range(len(ABLATIONS))], ABLATIONS, fontsize=8)
    axis.set_ylabel("Acc. (%); above: difference to the best full")
    axis.legend(fontsize=7, frameon=False)


def _grid_values(results: Results) -> Mapping[tuple[int, int], Mapping[str, Any]]:
    rows = {row["variant"]: row for row in results.part("grid")}
    return {(s1, s2): rows[name] for s1 in GRID_S1 for s2 in GRID_S2 if (name := f"S1 {s1} x S2 {s2}") in rows}


def _grid_curves(results: Results, figure: Any) -> None:
    values = _grid_values(results)
    for place, (key, label, _, marker, style) in enumerate(METRICS, 1):
        axis = figure.add_subplot(1, 2, place)
        for s2 in GRID_S2:
            axis.plot(GRID_S1, [values[s1, s2][key] for s1 in GRID_S1], marker=marker, linestyle=style, label=f"S2 k = {s2}")
        best = max(values, key=lambda cell: values[cell][key])
        axis.plot([best[0]], [values[best][key]], marker=marker, markersize=13, fillstyle="none", color="black", linestyle="none")
        axis.set(xlabel="S1 top-k", ylabel=label, xticks=GRID_S1)
        axis.legend(fontsize=7, frameon=False)


def _grid_cells(results: Results, figure: Any) -> None:
    from matplotlib.patches import Polygon, Rectangle

    values, axis = _grid_values(results), figure.add_subplot()
    corners = (((0, 0), (0, 1), (1, 1)), ((0, 0), (1, 0), (1, 1)))
    for (key, label, colour, _, _), corner in zip(METRICS, corners, strict=True):
        low, high = min(row[key] for row in values.values()), max(row[key] for row in values.values())
        for (s1, s2), row in values.items():
            x, y = GRID_S1.index(s1), GRID_S2.index(s2)
            shade = 0.15 + 0.6 * ((row[key] - low) / (high - low) if high > low else 0.0)
            axis.add_patch(Polygon([(x + a, y + b) for a, b in corner], color=colour, alpha=shade, linewidth=0))
            at = (x + 0.3, y + 0.72) if corner == corners[0] else (x + 0.7, y + 0.28)
            axis.text(*at, f"{row[key]:.2f}", ha="center", va="center", fontsize=9)
        axis.plot([], [], "s", color=colour, label=label)
    s1, s2 = max(values, key=lambda cell: values[cell]["accuracy_mean"])
    axis.add_patch(Rectangle((GRID_S1.index(s1), GRID_S2.index(s2)), 1, 1, fill=False, linewidth=2.5))
    axis.set(xlim=(0, len(GRID_S1)), ylim=(0, len(GRID_S2)), xlabel="S1 top-k", ylabel="S2 k")
    axis.set_xticks([n + 0.5 for n in range(len(GRID_S1))], GRID_S1)
    axis.set_yticks([n + 0.5 for n in range(len(GRID_S2))], GRID_S2)
    axis.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
