"""One-to-one matching of predictions and references, and its soft F1 (Eq. 16)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

Row = dict[int, float]


def soft_f1(rows: Sequence[Row], references: int) -> float:
    """F of Eq. 16: twice the weight of the best one-to-one matching over the number of both sides' items.

    rows: one per prediction, {index of a reference: weight > 0}; what is absent weighs 0. 1 if both sides are empty.
    Example: soft_f1([{0: 0.9, 1: 0.8}, {0: 0.7}], 2) == 2 * (0.8 + 0.7) / 4.
    """
    items = len(rows) + references
    return 2.0 * best_weight(rows, references) / items if items else 1.0


def best_weight(rows: Sequence[Row], references: int) -> float:
    """The weight of a maximum-weight one-to-one matching, summed by `math.fsum` (correctly rounded, so in no order).

    Where several matchings are the best but for rounding, it is the one that scipy's `linear_sum_assignment` finds on
    the matrix in the order of the items; callers that want a value free of that order sort the items.
    """
    return math.fsum(rows[index][reference] for index, reference in best_pairs(rows, references))


def best_pairs(rows: Sequence[Row], references: int) -> list[tuple[int, int]]:
    """The pairs (prediction, reference) of that matching, those that weigh 0 left out.

    Example: best_pairs([{0: 0.9, 1: 0.8}, {0: 0.7}], 2) == [(0, 1), (1, 0)].
    """
    if all(len(row) <= 1 for row in rows):
        used = [reference for row in rows for reference in row]
        if len(set(used)) == len(used):  # nobody competes: every weight is taken
            return [(index, reference) for index, row in enumerate(rows) for reference in row]
    matrix = np.zeros((len(rows), references))
    for index, row in enumerate(rows):
        for reference, weight in row.items():
            matrix[index, reference] = weight
    found = zip(*linear_sum_assignment(matrix, maximize=True), strict=True)
    return [(int(index), int(reference)) for index, reference in found if reference in rows[index]]
