"""Whether a group's advantages speak of the completion: two measures of how far credit is from local."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

APART = 0.5
"""Advantages of equal completions that differ by more say two things about one."""


def neighbour_correlation(groups: Iterable[np.ndarray]) -> float | None:
    """Pearson's correlation of a trajectory's advantages at t - 1 and t, over all groups [G, T]; None where one side is constant.

    High where what was inherited is credited again.

    Example: [[1, 1], [-1, -1]] is 1.0.
    """
    pairs = [(a[:, :-1].ravel(), a[:, 1:].ravel()) for a in groups]
    if not pairs:
        return None
    before, after = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    if not before.size or np.ptp(before) == 0 or np.ptp(after) == 0:
        return None
    return float(np.corrcoef(before, after)[0, 1])


def contradicted(groups: Iterable[tuple[Sequence[Sequence[str]], np.ndarray]]) -> float | None:
    """Of the completions with a sibling of the same words at the same position, the share that has one whose advantage is more
    than 0.5 away. Each group: texts [G][T] and advantages [G, T]. None where no two are alike.

    Example: texts [["x"], ["x"], ["y"]] with advantages [[1.0], [0.0], [-1.0]] is 1.0: both "x" are contradicted.
    """
    alike = apart = 0
    for texts, advantages in groups:
        for t in range(advantages.shape[1]):
            found: dict[str, list[float]] = {}
            for g, row in enumerate(texts):
                found.setdefault(row[t], []).append(float(advantages[g, t]))
            for values in found.values():
                if len(values) > 1:
                    alike += len(values)
                    apart += sum(max(abs(value - min(values)), abs(value - max(values))) > APART for value in values)
    return apart / alike if alike else None
