"""A run report as one HTML page, and as one screen of a terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory_env.text import one_line
from writer_rl.evaluation.report import category_table, table, writer_table
from writer_rl.report.charts import line_chart
from writer_rl.report.page import render
from writer_rl.report.run_report import LAST_ROUNDS, PANELS, PHASES, ReportedRun, differing, experiments, panel_lines
from writer_rl.run.glossary import ROUND_LINE
from writer_rl.run.rollout_files import CompletionRecord

TERMS = ("json", "schema", "dup", "stop", "valid", "phi_macro", "phi_worst", "phi", "chain", "mem", "penalty", "return")
SPARKS = "▁▂▃▄▅▆▇█"
TEXT_ROWS = (
    ("return", "reward/return/mean"), ("mem", "reward/mem/mean"), ("valid", "reward/valid/mean"), ("qa", "qa/gain/mean"),
    ("kl", "policy/kl"), ("clip", "policy/clip_fraction"), ("entropy", "policy/entropy"), ("|g|", "policy/grad_norm"),
    ("silent", "reward/zero_variance"), ("len", "rollout/completion_length/mean"), ("eval", "evaluation/total"),
)  # fmt: skip


def report_page(runs: Sequence[ReportedRun], output: Path, viewer: str = "view.html") -> str:
    """The page, to be written to `output`; completions are linked into the `viewer` page of their run, where there is one."""
    panels = [(title, line_chart(panel_lines(runs, keys), title)) for title, keys in PANELS]
    values = {
        "title": ", ".join(run.name for run in runs),
        "runs": [_summary(run) for run in runs],
        "labels": [label for label, _ in experiments(runs)],
        "panels": [(title, svg) for title, svg in panels if svg],
        "differing": differing(runs),
        "settings": runs[0].settings,
        "glossary": ROUND_LINE,
        "terms": [
            (term, [_move(run, term) for run in runs]) for term in TERMS if runs[0].mean(f"reward/{term}/mean") is not None
        ],
        "last": LAST_ROUNDS,
        "positions": [(run.name, _positions(run)) for run in runs],
        "skips": [(run.name, _skips(run)) for run in runs],
        "phases": [(run.name, _phases(run)) for run in runs],
        "evaluations": [
            (name, f"{writer_table(document)}\n\n{category_table(document)}")
            for name, document in {k: d for run in runs for k, d in run.evaluations.items()}.items()
        ],
        "extremes": [(run.name, *_extremes(run, output, viewer)) for run in runs],
        "hashes": [(run.name, run.hashes) for run in runs],
        "environments": [(run.name, run.environment) for run in runs if run.environment],
    }
    return render("report.html.jinja", (), ("page.css", "report.css"), values)


def report_text(runs: Sequence[ReportedRun]) -> str:
    """One screen: a line a figure, with its course over the rounds as a spark line, its beginning and its end; safe to print."""
    parts = []
    for run in runs:
        lines = []
        for label, key in TEXT_ROWS:
            points = [value for _, value in run.values(key)]
            if points:
                lines.append([label, sparkline(points), f"{points[0]:.3f}", f"{points[-1]:.3f}", ROUND_LINE[label]])
        skips = ", ".join(f"{reason} {count}" for reason, count in _skips(run).items() if count) or "none"
        spent = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds, _ in _phases(run)["phases"][:4])
        parts.append(
            f"{one_line(str(run.path))}: round {run.last['round']} of {run.settings.get('trainer.steps', '?')}\n"
            f"{table(['', 'course', 'first', 'last', ''], lines, left=(0, 1, 4))}\nskipped updates: {skips}; time: {spent}"
        )
    changed = differing(runs)
    if len(runs) > 1:
        rows = [[key, *(str(value) for value in values)] for key, values in changed.items()]
        parts.append(table(["differing settings", *(run.name for run in runs)], rows) if rows else "equal settings")
    return "\n\n".join(parts)


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """The course of `values` in at most `width` block characters, each the mean of its share.

    Example: sparkline([0, 1]) == "▁█".
    """
    count = min(width, len(values))
    shares = [values[i * len(values) // count : (i + 1) * len(values) // count] for i in range(count)]
    means = [sum(share) / len(share) for share in shares]
    low, span = min(means), max(means) - min(means)
    return "".join(SPARKS[int((value - low) / span * 7.999) if span else 0] for value in means)


def _summary(run: ReportedRun) -> Mapping[str, Any]:
    figures = [(label, run.mean(key, 1)) for label, key in TEXT_ROWS]
    steps = run.settings.get("trainer.steps")
    return {
        "name": run.name,
        "path": str(run.path),
        "round": run.last["round"],
        "steps": steps,
        "figures": [f for f in figures if f[1] is not None],
    }


def _move(run: ReportedRun, term: str) -> tuple[float | None, float | None]:
    """Mean of the first and of the last rounds."""
    points = [value for _, value in run.values(f"reward/{term}/mean")]
    if not points:
        return None, None
    first, last = points[:LAST_ROUNDS], points[-LAST_ROUNDS:]
    return sum(first) / len(first), sum(last) / len(last)


def _positions(run: ReportedRun) -> list[float]:
    """Share of silent columns at each position, over all rounds."""
    found: list[float] = []
    while (share := run.mean(f"reward/zero_variance/position_{len(found)}")) is not None:
        found.append(share)
    return found


def _skips(run: ReportedRun) -> dict[str, int]:
    return {
        key.removeprefix("skips/"): int(value)
        for key, value in run.last.items()
        if key.startswith("skips/") and isinstance(value, (int, float)) and key not in ("skips/total", "skips/consecutive")
    }


def _phases(run: ReportedRun) -> dict[str, Any]:
    """Seconds of each phase and their share, and the tokens."""
    seconds = {phase: run.total(f"time/{phase}") for phase in PHASES}
    whole = sum(seconds.values()) or 1.0
    ordered = sorted(seconds.items(), key=lambda each: -each[1])
    generated = sum(
        length * count
        for (_, length), (_, count) in zip(
            run.values("rollout/completion_length/mean"), run.values("rollout/completions"), strict=False
        )
    )
    return {
        "phases": [(phase, spent, spent / whole) for phase, spent in ordered if spent],
        "total": run.total("time/round"),
        "generated": generated,
        "rates": {
            "generated tokens a second": run.mean("perf/rollout_tokens_per_s"),
            "trained tokens a second": run.mean("perf/update_tokens_per_s"),
        },
    }


def _extremes(run: ReportedRun, output: Path, viewer: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    best, worst = run.extremes()
    page = run.path / viewer
    link = quote(os.path.relpath(page.resolve(), output.resolve().parent)) if page.is_file() else None
    return [_shown(number, line, link) for number, line in best], [_shown(number, line, link) for number, line in worst]


def _shown(number: int, line: CompletionRecord, link: str | None) -> dict[str, Any]:
    place = f"{number}/{quote(line.network_id, safe='')}/{line.position}/{line.trajectory}"
    return {
        "place": f"round {number}, {line.network_id}, trajectory {line.trajectory}, position {line.position}",
        "link": f"{link}#{place}" if link else None,
        "total": line.total,
        "advantage": line.advantage,
        "text": one_line(line.text)[:600],
        "errors": [one_line(error) for error in line.report.get("errors", ())],
    }
