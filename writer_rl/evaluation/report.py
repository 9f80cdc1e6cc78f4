"""Rows and tables of an evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any, NotRequired, TypedDict, cast

from memory_env.datafile import DataError
from memory_env.text import one_line
from writer_rl.evaluation.frozen import PARTS, require_equal
from writer_rl.evaluation.scores import Scores

SHARED_PARTS = tuple(part for part in PARTS if part != "budgets")


class WriterRow(Scores):
    """A Writer's scores over its seeds."""

    writer: str


class VariantRow(WriterRow):
    """A Writer's scores under other budgets, and the hashes of what makes them other."""

    variant: str
    budgets: str
    prompts: str


class EvaluationDocument(TypedDict):
    """evaluation.json (docs/evaluation.md, "Files"): hashes of what was held fixed, and the rows; notes stand under the table."""

    total: int
    frozen: dict[str, str]
    rows: list[WriterRow]
    notes: NotRequired[list[str]]


class VariantDocument(TypedDict):
    """ablations.json and its like; plot: the picture beside it, if one could be drawn."""

    total: int
    frozen: dict[str, str]
    rows: list[VariantRow]
    plot: NotRequired[str]


def evaluation_document(
    total: int, frozen: Mapping[str, str], rows: Sequence[WriterRow], notes: Sequence[str] = ()
) -> EvaluationDocument:
    """Without notes there is no such key."""
    document = EvaluationDocument(total=total, frozen=dict(frozen), rows=list(rows))
    if notes:
        document["notes"] = list(notes)
    return document


def variant_document(total: int, frozen: Mapping[str, str], rows: Sequence[VariantRow]) -> VariantDocument:
    """ablations.json, grid.json, full_evidence.json, baselines.json: rows differ in their budgets, which each names itself."""
    return {"total": total, "frozen": {part: frozen[part] for part in ("questions", "judge")}, "rows": list(rows)}


def merge(documents: Sequence[tuple[str, EvaluationDocument]]) -> EvaluationDocument:
    """One document of several evaluation.json, given as (path, content).

    Raises FrozenError where conditions differ, DataError for a row twice.
    """
    merged: EvaluationDocument | None = None
    for path, document in documents:
        if merged is None:
            merged = evaluation_document(document["total"], document["frozen"], document["rows"], document.get("notes", ()))
            continue
        require_equal(merged["frozen"], document["frozen"], path)
        names = {row["writer"] for row in merged["rows"]}
        twice = next((row["writer"] for row in document["rows"] if row["writer"] in names), None)
        if twice is not None:
            raise DataError(f"{path}: has a row {twice!r}, as another of the files; rename one")
        notes = [*merged.get("notes", ()), *document.get("notes", ())]
        merged = evaluation_document(merged["total"], merged["frozen"], [*merged["rows"], *document["rows"]], notes)
    if merged is None:
        raise DataError("no evaluation to show")
    return merged


def read_evaluation(path: Path) -> EvaluationDocument:
    """An evaluation.json; DataError if it is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise DataError(f"{path}: not JSON") from None
    if not isinstance(document, dict) or not {"total", "frozen", "rows"} <= document.keys():
        raise DataError(f"{path}: no evaluation.json (total, frozen, rows)")
    return cast(EvaluationDocument, document)


def writer_table(document: EvaluationDocument, reference: str = "teacher") -> str:
    """Like the paper's Table 3: correct/total, accuracy as mean ± sample standard deviation, token-F1, MeanQ, MeanN, gap."""
    rows = document["rows"]
    best = next((row["accuracy_mean"] for row in rows if row["writer"] == reference), None)
    header = ["Writer", "Correct/total", "Acc. (%)", "token-F1", "MeanQ", "MeanN [95 % CI]"]
    header += [f"Gap to {reference}"] if best is not None else []
    lines = []
    for row in rows:
        cells = [
            row["writer"],
            f"{'/'.join(str(c) for c in row['correct'])} of {document['total']}",
            spread(row["accuracy_mean"], row["accuracy_std"]),
            f"{row['token_f1_mean']:.2f}",
            f"{row['mean_q']:.3f}",
            f"{row['mean_n']:.3f}{_interval(row['mean_n_ci95'])}",
        ]
        if best is not None:
            cells.append("-" if row["writer"] == reference else f"{row['accuracy_mean'] - best:+.2f} pp")
        lines.append(cells)
    return "\n".join([table(header, lines), *map(one_line, document.get("notes", ()))])


def _interval(bounds: Sequence[float]) -> str:
    """A bootstrap over networks, or nothing where there is no spread to resample: a single network says nothing of others."""
    low, high = bounds
    return f" [{low:.3f}, {high:.3f}]" if low < high else ""


def category_table(document: EvaluationDocument) -> str:
    """Accuracy per category, Writers as rows."""
    return _categories([((row["writer"],), row) for row in document["rows"]], ["Acc. (%)"])


def variant_category_table(document: VariantDocument, first: str) -> str:
    """Accuracy per category of rows that differ in their budgets.

    A total that one category carries shows here: without System 1, "nothing recorded" is right for every adversarial question.
    """
    return _categories([((row["variant"], row["writer"]), row) for row in document["rows"]], [first, "Acc. (%)"])


def _categories(rows: Sequence[tuple[tuple[str, ...], Scores]], names: Sequence[str]) -> str:
    categories = sorted({category for _, row in rows for category in row["by_category"]})
    totals = {c: next(row["by_category"][c]["total"] for _, row in rows if c in row["by_category"]) for c in categories}
    header = [*names, *(f"{category} ({totals[category]})" for category in categories)]
    lines = [[*labels, *(f"{row['by_category'][c]['accuracy_mean']:.1f}" for c in categories)] for labels, row in rows]
    return table(header, lines)


def variant_table(document: VariantDocument, first: str, full: str | None = None) -> str:
    """Rows that differ in their budgets; with `full`, the difference of each row to it within the same Writer (Table 22)."""
    header = [first, "Writer", "Correct/total", "Acc. (%)", "token-F1"] + ([f"vs. {full}"] if full else [])
    reference = {row["writer"]: row["accuracy_mean"] for row in document["rows"] if row["variant"] == full}
    lines = []
    for row in document["rows"]:
        cells = [
            row["variant"],
            row["writer"],
            f"{'/'.join(str(c) for c in row['correct'])} of {document['total']}",
            spread(row["accuracy_mean"], row["accuracy_std"]),
            f"{row['token_f1_mean']:.2f}",
        ]
        if full:
            cells.append(f"{row['accuracy_mean'] - reference[row['writer']]:+.2f}")
        lines.append(cells)
    return table(header, lines)


def memory_table(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Memory metrics per Writer: the mean over its seeds, with the sample standard deviation where there are several."""
    names = ["total", "valid", "mem", "phi", "chain", "question_score", "update_accuracy", "attribution_accuracy", "records"]

    def cell(values: Mapping[str, Any], name: str) -> str:
        if name not in values:
            return "-"
        seeds = [seed[name] for seed in values["seeds"]]
        return spread(values[name], stdev(seeds) if len(seeds) > 1 else None, digits=1 if name == "records" else 3)

    lines = [[writer, *(cell(values, name) for name in names)] for writer, values in metrics.items()]
    return table(["Memory", *(name.replace("_", " ") for name in names)], lines)


def token_table(usage: Mapping[str, Mapping[str, float]]) -> str:
    """Tokens like the paper's Tables 9-12."""
    names = ("calls", "ingest_in", "ingest_out", "qa_input", "answer_out", "total", "per_question")
    header = ["Tokens", "Calls/units", "Ingest in.", "Ingest out.", "QA input", "Answer out.", "Total", "Avg./question"]
    return table(header, [[name, *(f"{row[each]:,.0f}" for each in names)] for name, row in usage.items()])


def spread(mean: float, deviation: float | None, digits: int = 2) -> str:
    return f"{mean:.{digits}f}" if deviation is None else f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Aligned text, the columns of `left` to the left; a name with line breaks or unprintable characters shows their escapes."""
    header, rows = [one_line(cell) for cell in header], [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(line[place]) for line in (header, *rows)) for place in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = (c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        return "  ".join(aligned).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, rows)])
