"""What a run report says, gathered from run directories: settings, curves, counts, times, evaluation, the best and the worst."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml

from writer_rl.evaluation.report import EvaluationDocument, read_evaluation
from writer_rl.report.charts import Curve
from writer_rl.report.stored_run import run_name
from writer_rl.run.directory import RunDirectory, RunError
from writer_rl.run.rollout_files import CompletionRecord, read_round, round_numbers

PANELS = (
    ("Return", ("reward/return/mean",)),
    ("Memory reward", ("reward/mem/mean",)),
    ("Records, Φ", ("reward/phi/mean",)),
    ("Chains", ("reward/chain/mean",)),
    ("Validity", ("reward/valid/mean",)),
    ("Question gain", ("qa/gain/mean",)),
    ("KL to the reference", ("policy/kl",)),
    ("Entropy", ("policy/entropy",)),
    ("Gradient norm", ("policy/grad_norm",)),
    ("Silent positions", ("reward/zero_variance",)),
    ("Clipped tokens", ("policy/clip_fraction",)),
    ("Completion length", ("rollout/completion_length/mean",)),
    ("Evaluation", ("evaluation/total",)),
    ("Evaluation: question score", ("evaluation/question_score",)),
)
SAME_IN_SEEDS = ("seed", "output_dir", "tracking", "model.path", "model.reference")
"""Settings (or sections) in which the seeds of one experiment differ: a seed has its own start and its own folder."""
PHASES = ("rollout", "reward", "qa", "update", "sync", "evaluation", "checkpoint")
EXTREMES = 5
LAST_ROUNDS = 10


@dataclass(frozen=True)
class ReportedRun:
    """One run directory as the report needs it; nothing is replayed.

    Example: ``ReportedRun.open(Path("runs/demo/grpo")).records[-1]["policy/kl"]``
    """

    path: Path
    settings: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]
    evaluations: Mapping[str, EvaluationDocument] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> ReportedRun:
        """Raises RunError for a folder that is no run, or that has finished no round."""
        if not path.is_dir():
            raise RunError(f"{path}: no such run directory")
        records = RunDirectory(path).read_metrics()
        if not records:
            raise RunError(f"{path}: holds no metrics.jsonl with a round; name the directory of a run that has finished one")
        config = path / "config.yaml"
        try:
            tree = yaml.safe_load(config.read_text(encoding="utf-8")) if config.is_file() else {}
        except (yaml.YAMLError, UnicodeDecodeError):
            raise RunError(f"{config}: is damaged; the report needs the run's settings") from None
        settings = flat(tree if isinstance(tree, dict) else {})
        return cls(path, settings, tuple(records), _evaluations(path))

    @property
    def name(self) -> str:
        """How people call it."""
        return run_name(self.path)

    @cached_property
    def last(self) -> Mapping[str, Any]:
        """The newest record."""
        return self.records[-1]

    def values(self, key: str) -> tuple[tuple[float, float], ...]:
        """(round, value) of every round that measured `key`."""
        return tuple((r["round"], float(r[key])) for r in self.records if isinstance(r.get(key), (int, float)))

    def mean(self, key: str, last: int | None = None) -> float | None:
        """Mean over the rounds that measured it, or over the `last` of them."""
        found = [value for _, value in self.values(key)]
        found = found[-last:] if last else found
        return fmean(found) if found else None

    def total(self, key: str) -> float:
        """Sum over all rounds."""
        return sum(value for _, value in self.values(key))

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256, shortened, of what decides and what was measured, and the frozen parts of the questions."""
        found = {name: _digest(self.path / name) for name in ("config.yaml", "metrics.jsonl") if (self.path / name).is_file()}
        for state in sorted((self.path / "checkpoints").glob("*/state.json"))[-1:]:
            try:
                frozen = json.loads(state.read_text(encoding="utf-8")).get("frozen", {})
            except (OSError, ValueError, AttributeError):
                continue
            found |= {f"questions: {part}": str(digest)[:12] for part, digest in frozen.items()}
        return found

    @property
    def environment(self) -> dict[str, str]:
        """What the run wrote of interpreter, machine and packages; {} for runs that wrote nothing."""
        try:
            found = json.loads((self.path / "environment.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}

    def extremes(self) -> tuple[list[tuple[int, CompletionRecord]], list[tuple[int, CompletionRecord]]]:
        """(round, completion) of the highest and of the lowest returns in the last rounds; ([], []) where none are stored."""
        try:
            numbers = round_numbers(self.path)[-LAST_ROUNDS:]
        except RunError:
            return [], []
        found = [(number, line) for number in numbers for line in read_round(self.path, number).completions]
        found.sort(key=lambda each: each[1].total)
        distinct = {line.text: (number, line) for number, line in found}
        ordered = sorted(distinct.values(), key=lambda each: each[1].total)
        return ordered[::-1][:EXTREMES], ordered[:EXTREMES]


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key.

    Example: flat({"trainer": {"lr": 1}}) == {"trainer.lr": 1}.
    """
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def open_runs(paths: Sequence[Path]) -> list[ReportedRun]:
    """The runs of one report. RunError for one that is given twice, and for runs of different networks or kinds."""
    runs = [ReportedRun.open(path) for path in paths]
    first = runs[0]
    for run in runs[1:]:
        if run.path.resolve() == first.path.resolve():
            raise RunError(f"{run.path}: is named twice; name other runs to compare")
        for key in ("data.train", "data.window"):
            if run.settings.get(key) != first.settings.get(key):
                raise RunError(
                    f"{run.path}: was trained on other networks than {first.path} ({key}: {run.settings.get(key)} and "
                    f"{first.settings.get(key)}); report them apart"
                )
    return runs


def differing(runs: Sequence[ReportedRun]) -> dict[str, list[Any]]:
    """The settings that are not the same in all runs."""
    keys = {key for run in runs for key in run.settings} - {"output_dir"}
    rows = {key: [run.settings.get(key) for run in runs] for key in sorted(keys)}
    return {key: values for key, values in rows.items() if any(value != values[0] for value in values)}


def experiments(runs: Sequence[ReportedRun]) -> list[tuple[str, list[ReportedRun]]]:
    """Runs that differ in nothing but their seed, together: (label, runs)."""
    groups: dict[str, list[ReportedRun]] = {}
    for run in runs:
        kept = {k: v for k, v in run.settings.items() if not any(k == s or k.startswith(f"{s}.") for s in SAME_IN_SEEDS)}
        groups.setdefault(json.dumps(kept, sort_keys=True, default=str), []).append(run)
    return [
        (members[0].name if len(members) == 1 else f"{members[0].name} and {len(members) - 1} more seeds", members)
        for members in groups.values()
    ]


def panel_lines(runs: Sequence[ReportedRun], keys: Sequence[str]) -> list[Curve]:
    """One curve an experiment: a single run as it is, several seeds as their mean with a band of one standard deviation."""
    lines = []
    for label, members in experiments(runs):
        for key in keys:
            if len(members) == 1:
                lines.append(Curve(label, members[0].values(key)))
            else:
                lines.append(_band(label, [dict(member.values(key)) for member in members]))
    return lines


def _band(label: str, seeds: Sequence[Mapping[float, float]]) -> Curve:
    shared = sorted(set.intersection(*(set(seed) for seed in seeds)))
    means = [fmean(seed[x] for seed in seeds) for x in shared]
    spread = [stdev(seed[x] for seed in seeds) for x in shared]
    low, high = (tuple(m + sign * s for m, s in zip(means, spread, strict=True)) for sign in (-1, 1))
    return Curve(label, tuple(zip(shared, means, strict=True)), low, high)


def _evaluations(path: Path) -> dict[str, EvaluationDocument]:
    """evaluation.json of the run, and those of evaluation folders beside it, by file."""
    places = (path / "evaluation.json", path / "evaluation" / "evaluation.json", path.parent / "evaluation" / "evaluation.json")
    return {str(place): read_evaluation(place) for place in places if place.is_file()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
