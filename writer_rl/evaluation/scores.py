"""Scores of question-level results: accuracy, token-F1, MeanQ, MeanN and its bootstrap interval (Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TypedDict

import numpy as np

RESAMPLES = 10_000
BOOTSTRAP_SEED = 0


@dataclass(frozen=True, slots=True)
class Result:
    """One judged question.

    Example: Result("heldout_01", "Q1_heldout_01_03", "Q1", correct=True, score=1.0, token_f1=0.5).
    """

    network_id: str
    question_id: str
    category: str
    correct: bool
    score: float
    token_f1: float


class Accuracies(TypedDict):
    """Right answers of each seed; accuracy over the seeds and token-F1 in percent, the deviation None for one seed."""

    correct: list[int]
    accuracy_mean: float
    accuracy_std: float | None
    token_f1_mean: float


class CategoryScores(Accuracies):
    """The same for the `total` questions of one category, and their MeanQ."""

    total: int
    mean_q: float


class Scores(Accuracies):
    """A row of evaluation.json without its name: MeanQ, MeanN, its 95 % interval [low, high], and each category."""

    mean_q: float
    mean_n: float
    mean_n_ci95: list[float]
    by_category: dict[str, CategoryScores]


def token_f1(answer: str, gold: str) -> float:
    """Eq. 11 for one question, in [0, 1]: over token sets; lower case, outer white space and trailing periods stripped, split on
    white space; 0 if either set or their intersection is empty.

    Example: token_f1("lives in Oslo.", "Oslo") == 0.5.
    """
    a, g = (set(text.lower().strip().rstrip(".").split()) for text in (answer, gold))
    shared = len(a & g)
    if not shared:
        return 0.0
    precision, recall = shared / len(a), shared / len(g)
    return 2 * precision * recall / (precision + recall)


def accuracy(results: Sequence[Result]) -> float:
    """Eq. 10, in percent."""
    return 100.0 * fmean(result.correct for result in results)


def mean_q(results: Sequence[Result]) -> float:
    """Eq. 12: every question weighs the same; in [0, 1]."""
    return fmean(result.score for result in results)


def network_means(results: Sequence[Result]) -> dict[str, float]:
    """Mean score per network, by network id in order of first appearance."""
    by_network: dict[str, list[float]] = {}
    for result in results:
        by_network.setdefault(result.network_id, []).append(result.score)
    return {network_id: fmean(scores) for network_id, scores in by_network.items()}


def bootstrap_interval(means: Sequence[float], resamples: int = RESAMPLES, seed: int = BOOTSTRAP_SEED) -> tuple[float, float]:
    """95 % interval of MeanN: the 2.5th and 97.5th percentiles of means over networks drawn with replacement."""
    values = np.asarray(means, dtype=np.float64)
    draws = np.random.default_rng(seed).integers(0, len(values), size=(resamples, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def summary(seeds: Sequence[Sequence[Result]]) -> Scores:
    """A row of evaluation.json without its name. `seeds` holds the results of one training seed each, over the same questions.

    Accuracies and token-F1 in percent, MeanQ and MeanN in [0, 1]; the standard deviation is the sample one, None for one
    seed; the interval resamples networks of seed-averaged means. Raises ValueError for seeds over different questions, or none.
    """
    asked = [[(result.network_id, result.question_id) for result in results] for results in seeds]
    if not asked or not asked[0] or any(sorted(each) != sorted(asked[0]) for each in asked):
        raise ValueError("the seeds of one Writer must cover the same questions, at least one")
    per_network = [network_means(results) for results in seeds]
    means = {name: fmean(means[name] for means in per_network) for name in per_network[0]}
    categories = sorted({result.category for result in seeds[0]})
    return {
        **_accuracies(seeds),
        "mean_q": fmean(mean_q(results) for results in seeds),
        "mean_n": fmean(means.values()),
        "mean_n_ci95": list(bootstrap_interval(list(means.values()))),
        "by_category": {
            category: _category([[result for result in results if result.category == category] for results in seeds])
            for category in categories
        },
    }


def _accuracies(seeds: Sequence[Sequence[Result]]) -> Accuracies:
    accuracies = [accuracy(results) for results in seeds]
    return {
        "correct": [sum(result.correct for result in results) for results in seeds],
        "accuracy_mean": fmean(accuracies),
        "accuracy_std": stdev(accuracies) if len(accuracies) > 1 else None,
        "token_f1_mean": 100.0 * fmean(fmean(result.token_f1 for result in results) for results in seeds),
    }


def _category(seeds: Sequence[Sequence[Result]]) -> CategoryScores:
    return {"total": len(seeds[0]), **_accuracies(seeds), "mean_q": fmean(mean_q(results) for results in seeds)}
