"""Evaluation folders as the paper's tables need them: which benchmark, which rows, which questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from memory_env.datafile import DataError
from writer_rl.evaluation.report import EvaluationDocument, read_evaluation

SOCIAL, GROUP, EVER, LOCOMO = "SocialMemBench", "GroupMemBench", "EverMemBench", "LoCoMo"
SHORT = {SOCIAL: "SM", GROUP: "GM", EVER: "EM", LOCOMO: "LoCoMo"}

# Columns of the tables -> words that name the category in a benchmark's files, however it writes or numbers them.
SOCIAL_COLUMNS = {f"Q{n}": (f"q{n}",) for n in range(1, 10)}
GROUP_COLUMNS = {
    "Abst.": ("abstention",), "Implicit": ("implicit",), "Multi-hop": ("hop",), "Temporal": ("temporal",),
    "K.-update": ("update",), "Term-amb.": ("ambiguity", "term"),
}  # fmt: skip
EVER_COLUMNS = {
    "Single": ("sh", "single"), "Multi": ("mh", "multi"), "Temp": ("tp", "temp", "temporal"),
    "Const": ("c", "const", "constraint"), "Proact": ("p", "proact", "proactivity"), "Update": ("u", "update", "updating"),
    "Style": ("style",), "Skill": ("skill",), "Role": ("title", "role"),
}  # fmt: skip
LOCOMO_COLUMNS = {
    "Single-hop": ("single",), "Multi-hop": ("multi",), "Temporal": ("temporal",), "Open-domain": ("open",),
    "Adversarial/AD": ("adversarial",),
}  # fmt: skip
COLUMNS: dict[str, Mapping[str, tuple[str, ...]]] = {
    SOCIAL: SOCIAL_COLUMNS, GROUP: GROUP_COLUMNS, EVER: EVER_COLUMNS, LOCOMO: LOCOMO_COLUMNS,
}  # fmt: skip


@dataclass(frozen=True)
class Results:
    """One evaluation folder. `document` is its evaluation.json.

    Example: ``Results.open(Path("runs/evaluation")).benchmark == "SocialMemBench"``
    """

    path: Path
    document: EvaluationDocument
    benchmark: str

    @classmethod
    def open(cls, path: Path) -> Results:
        """Raises DataError for a file that is no evaluation.json."""
        document = read_evaluation(path / "evaluation.json")
        names = {name for row in document["rows"] for name in row["by_category"]}
        return cls(path, document, benchmark_of(names))

    @property
    def hashes(self) -> str:
        """The frozen parts, shortened: what rows of one table share.

        Example: "questions 1f0c2a, prompts 77de10, budgets 5a9b31, judge 90c4ef"
        """
        return ", ".join(f"{part} {str(digest)[:6]}" for part, digest in self.document["frozen"].items())

    def part(self, name: str) -> list[dict[str, Any]]:
        """The rows of ablations.json, grid.json, baselines.json or full_evidence.json; [] where it was not run."""
        return list(self._json(f"{name}.json").get("rows", []))

    @cached_property
    def tokens(self) -> dict[str, Any]:
        """tokens.json; {} where nothing was counted."""
        return self._json("tokens.json")

    @cached_property
    def questions(self) -> list[dict[str, Any]]:
        """The lines of questions.jsonl: every question of every row, seed and variant."""
        path = self.path / "questions.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
        try:
            return [json.loads(line) for line in lines if line]
        except ValueError:
            raise DataError(f"{path}: holds a line that is not JSON; evaluate again into another folder") from None

    def writers(self) -> list[str]:
        """The rows, in order."""
        return [row["writer"] for row in self.document["rows"]]

    def by_column(self, row: Mapping[str, Any], figure: str) -> dict[str, tuple[float, int]]:
        """Column -> (mean of `figure` over its categories, weighted by questions; questions)."""
        found = {}
        for column, words in COLUMNS[self.benchmark].items():
            parts = [value for name, value in row["by_category"].items() if names(name, words, self.benchmark)]
            total = sum(part["total"] for part in parts)
            if total:
                found[column] = (sum(part[figure] * part["total"] for part in parts) / total, total)
        return found

    def multiple_choice(self) -> set[tuple[str, str]]:
        """(network, question) of the questions that someone answered by a letter."""
        return {(line["network_id"], line["question_id"]) for line in self.questions if line.get("option")}

    def split(self, writer: str, variant: str = "main") -> dict[bool, tuple[float, float] | None]:
        """True: multiple choice, False: open -> (accuracy %, token-F1 %) over all seeds; None without such questions."""
        chosen = self.multiple_choice()
        lines = [line for line in self.questions if line["writer"] == writer and line["variant"] == variant]
        found: dict[bool, tuple[float, float] | None] = {}
        for choice in (True, False):
            part = [line for line in lines if ((line["network_id"], line["question_id"]) in chosen) == choice]
            found[choice] = (
                (100 * fmean(line["correct"] for line in part), 100 * fmean(line["token_f1"] for line in part)) if part else None
            )
        return found

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise DataError(f"{path}: not JSON; evaluate again into another folder") from None
        return found if isinstance(found, dict) else {}


def open_results(paths: Sequence[Path]) -> list[Results]:
    """Every evaluation folder at or under `paths`, by path. DataError where there is none."""
    found = {folder.resolve(): Results.open(folder) for path in paths for folder in _folders(path)}
    if not found:
        raise DataError(f"{', '.join(map(str, paths))}: holds no evaluation.json; make one with launch/evaluate.py --output")
    return sorted(found.values(), key=lambda results: str(results.path))


def benchmark_of(categories: set[str]) -> str:
    """Which benchmark has these categories; "" where none fits most of them.

    Example: benchmark_of({"Q1", "Q8"}) == "SocialMemBench"
    """
    fits = {
        benchmark: sum(any(names(name, words, benchmark) for words in columns.values()) for name in categories)
        for benchmark, columns in COLUMNS.items()
    }
    best = max(fits, key=lambda benchmark: fits[benchmark])
    return best if fits[best] * 2 > len(categories) else ""


def names(category: str, words: Sequence[str], benchmark: str) -> bool:
    """Whether a category as a file writes it is the one that `words` name.

    Of EverMemBench the code between the first and the second mark counts: "F_MH_Top01" is Multi, "MA_P_Top01" Proact.
    """
    parts = category.lower().replace("-", "_").replace(" ", "_").split("_")
    if benchmark == EVER:
        coded = parts[0] in ("f", "ma", "p") and len(parts) > 1
        return parts[1] in words if coded else any(word in parts for word in words if len(word) > 2)
    return any(word in parts for word in words)


def _folders(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; name one that holds evaluations")
    yield from sorted(file.parent for file in path.rglob("evaluation.json"))
