"""Which rows of a batch keep a common beginning in common while they decode, and which keep their own copy of all they have read.

At every step a row reads the keys and values of its whole past. Those of a beginning that several rows share can be read once for
all of them; so rows are put together where that leaves least to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rollout.tree.prefix_tree import PrefixTree

QUERY_COST = 0.13
"""What a query costs that asks a key which another one has loaded, in loaded keys. Measured on a CPU, heads of 32 and 64."""


class Trunk(NamedTuple):
    """Rows that share their first `length` tokens: two and more rows, or one that shares nothing (length 0)."""

    rows: tuple[int, ...]
    length: int


class _Below(NamedTuple):
    """The best way to part the rows below an edge, what it costs, and what else an edge above has to know of them."""

    trunks: tuple[Trunk, ...]
    cost: float
    tokens: int
    shortest: int


def trunks(sequences: Sequence[Sequence[int]], query_cost: float = QUERY_COST) -> list[Trunk]:
    """Every row once, so that the keys read at a step cost least; in the tree's order.

    A trunk of n rows and length P costs P (1 + query_cost n), and each row what it has beyond it.

    Example (rows 1 2 3 4, 1 2 3 5 and 7): ``[Trunk((0, 1), 3), Trunk((2,), 0)]``.
    """
    tree = PrefixTree.of(sequences)
    starts = np.array([edge.start for edge in tree.edges])
    ending: dict[int, dict[int, list[int]]] = {}  # of each edge, rows by the node they end at
    for row, path in enumerate(tree.paths):
        last = int(path[-1])
        ending.setdefault(int(np.searchsorted(starts, last, "right")) - 1, {}).setdefault(last, []).append(row)
    below: dict[int, list[_Below]] = {}
    for index in reversed(range(len(starts))):
        edge = tree.edges[index]
        ends = sorted(ending.get(index, {}).items())
        parts = [_equal(tuple(rows), int(tree.depths[last]) + 1, query_cost) for last, rows in ends]
        parts += reversed(below.pop(index, []))
        below.setdefault(edge.parent, []).append(_best(parts, int(tree.depths[edge.stop - 1]) + 1, query_cost))
    return [trunk for part in reversed(below.get(-1, [])) for trunk in part.trunks]


def _equal(rows: tuple[int, ...], length: int, query_cost: float) -> _Below:
    """Rows with equal sequences."""
    if len(rows) == 1:
        return _Below((Trunk(rows, 0),), length, length, length)
    return _Below((Trunk(rows, length),), length * (1 + query_cost * len(rows)), length * len(rows), length)


def _best(parts: Sequence[_Below], depth: int, query_cost: float) -> _Below:
    """These parts as they are, or all their rows with one trunk: what an edge that ends at `depth` tokens has in common."""
    apart = tuple(trunk for part in parts for trunk in part.trunks)
    rows = tuple(row for trunk in apart for row in trunk.rows)
    tokens, shortest = sum(part.tokens for part in parts), min(part.shortest for part in parts)
    length = min(depth, shortest)
    together = length * (1 + query_cost * len(rows)) + tokens - length * len(rows)
    cost = sum(part.cost for part in parts)
    if len(rows) > 1 and together < cost:
        return _Below((Trunk(rows, length),), together, tokens, shortest)
    return _Below(apart, cost, tokens, shortest)
