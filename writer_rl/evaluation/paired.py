"""Two Writers on the same questions: their difference, its interval, and a test question by question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memory_env.datafile import DataError

Verdicts = Mapping[tuple[str, str], bool]
"""Right or wrong by (network, question)."""
RESAMPLES, SEED = 10_000, 0


@dataclass(frozen=True)
class Pair:
    """`second` against `first` on the same questions.

    better, worse: questions that are right more often, less often, over the seeds; difference: accuracy points; interval: its
    95 % bootstrap interval over networks and seeds, None for a single network; p: exact sign test over those that differ.

    Example: SFT 164 and RL 166 of 305, RL right on 20 that SFT has wrong and wrong on 18 that SFT has right:
    Pair("SFT", "RL", 305, 1, 20, 18, 0.66, (-3.6, 4.9), 0.87).
    """

    first: str
    second: str
    questions: int
    seeds: int
    better: int
    worse: int
    difference: float
    interval: tuple[float, float] | None
    p: float


def paired(first: str, second: str, before: Sequence[Verdicts], after: Sequence[Verdicts]) -> Pair:
    """before, after: the verdicts of each seed; a Writer of one seed stands beside every seed of the other.

    Raises DataError where the Writers answered different questions, or where both have several seeds but not as many.

    Example: one network, SFT right on q1, RL right on q1 and q2, neither on q3: difference 33.3, better 1, worse 0, p 1.0.
    """
    from scipy.stats import binomtest  # a second to import

    seeds = max(len(before), len(after))
    if {len(before), len(after)} - {1, seeds} or not seeds:
        counts = f"{first} has {len(before)} seeds and {second} {len(after)}"
        raise DataError(f"{counts}: they can't be paired; evaluate as many of each")
    keys = sorted(before[0])
    for name, verdicts in ((first, before), (second, after)):
        if any(sorted(each) != keys for each in verdicts):
            raise DataError(f"{name}: did not answer the same questions as {first}; evaluate both again, into one folder")
    gains = np.array([[after[s % len(after)][k] - before[s % len(before)][k] for k in keys] for s in range(seeds)], dtype=float)
    total = gains.sum(axis=0)
    better, worse = int((total > 0).sum()), int((total < 0).sum())
    p = binomtest(better, better + worse).pvalue if better + worse else 1.0
    networks = [key[0] for key in keys]
    difference = 100 * float(gains.mean())
    return Pair(first, second, len(keys), seeds, better, worse, difference, _interval(gains, networks), float(p))


def read_verdicts(folder: Path) -> dict[str, list[dict[tuple[str, str], bool]]]:
    """Of each Writer the verdicts of its seeds, from an evaluation's questions.jsonl (the frozen configuration's alone).

    Raises DataError where there is none.
    """
    path = folder / "questions.jsonl"
    if not path.is_file():
        raise DataError(f"{path}: is not there; name the output folder of launch/evaluate.py")
    found: dict[str, dict[int, dict[tuple[str, str], bool]]] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if line["variant"] == "main":
                seeds = found.setdefault(line["writer"], {}).setdefault(line["seed"], {})
                seeds[line["network_id"], line["question_id"]] = bool(line["correct"])
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}, line {number}: is no answer of an evaluation; run the evaluation again") from None
    return {writer: [seeds[seed] for seed in sorted(seeds)] for writer, seeds in found.items()}


def paired_table(pairs: Sequence[Pair]) -> str:
    """The pairs as a table for a terminal."""
    from writer_rl.evaluation.report import table

    header = ["compared", "difference", "95 % interval", "better", "worse", "p", "questions", "seeds"]
    rows = [
        [
            f"{pair.second} - {pair.first}", f"{pair.difference:+.2f} pp",
            "-" if pair.interval is None else f"[{pair.interval[0]:+.2f}, {pair.interval[1]:+.2f}]",
            str(pair.better), str(pair.worse), f"{pair.p:.3f}", str(pair.questions), str(pair.seeds),
        ]
        for pair in pairs
    ]  # fmt: skip
    return table(header, rows)


def _interval(gains: np.ndarray, networks: Sequence[str]) -> tuple[float, float] | None:
    """gains: [seeds, questions] in -1, 0, 1. Networks, each with all its questions, and seeds are drawn with replacement."""
    names = sorted(set(networks))
    if len(names) < 2:
        return None
    member = np.array([[name == network for network in networks] for name in names], dtype=float)
    sums, counts = gains @ member.T, member.sum(axis=1)  # [seeds, networks], [networks]
    dice = np.random.default_rng(SEED)
    drawn = dice.multinomial(len(names), np.full(len(names), 1 / len(names)), size=RESAMPLES)
    seeds = dice.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES)
    means = 100 * ((seeds @ sums) * drawn).sum(axis=1) / (len(sums) * (drawn @ counts))
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
