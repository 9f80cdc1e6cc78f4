"""What is left to compute of a prefix tree when some of its nodes have been computed before.

The new nodes are a forest of their own: each hangs from the nearest new node above it, and attention inside the forest is that
of any tree. Known nodes ask nothing; those above a new node are only asked. So a call needs the forest, and for every run of
known nodes which new ones lie below it. Again these are a slice, since nodes are numbered depth first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollout.tree.prefix_tree import Branch, Ints, PrefixTree
from rollout.tree.rectangles import Run

Bools = NDArray[np.bool_]


class Above(NamedTuple):
    """Known nodes, by runs of their places, and the new nodes [start, end) that lie below all of them."""

    runs: tuple[Run, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Extension:
    """The new nodes of a tree beside its known ones.

    tokens, depths [N]: of the new nodes, depth first; depth counts from the tree's root. edges: of their forest. above: what they
    ask of known nodes. ends [n]: of each sequence, which new node is its last (it is always new: its state is asked for). places
    [T]: where each of the whole tree's nodes lies, among P known places followed by the N new ones.

    Example (1 2 3 known at places 0 1 2; sequences 1 2 3 and 1 2 4 5): new are 3, once more, and 4 5: tokens [3, 4, 5], depths
    [2, 2, 3], edges (0, 1, 1, -1) and (1, 3, 3, -1), above (((0, 2),), 0, 3), ends [0, 2], places [0, 1, 3, 4, 5].
    """

    tokens: Ints
    depths: Ints
    edges: tuple[Branch, ...]
    above: tuple[Above, ...]
    ends: Ints
    places: Ints

    @classmethod
    def of(cls, tree: PrefixTree, known: Ints, count: int) -> Extension:
        """tree: of the sequences, none empty. known [T]: the place of each of its nodes, -1 where there is none. count: P."""
        last = np.array([path[-1] for path in tree.paths], dtype=np.int64)
        new = known < 0
        new[last] = True
        nodes = np.flatnonzero(new)
        rank = np.concatenate([[0], np.cumsum(new)])  # of each node, how many new ones stand before it
        forest = PrefixTree(tree.tokens[nodes], *_hung(tree, new, rank), ())
        places = known.copy()
        places[nodes] = count + np.arange(len(nodes))
        above = tuple(_above(tree, new, rank, known))
        return cls(forest.tokens, tree.depths[nodes], forest.edges, above, rank[last], places)


def places_in(tree: PrefixTree, before: Sequence[tuple[int, ...]], places: Ints) -> Ints:
    """[T]: the place of each node of `tree` that is a node of the tree of `before` too, -1 elsewhere.

    places: of each node of that tree, in its order.
    """
    found = np.full(len(tree), -1, dtype=np.int64)
    if not before:
        return found
    sequences = [tuple(tree.tokens[path].tolist()) for path in tree.paths]
    both = PrefixTree.of([*before, *sequences])
    old, own = np.zeros(len(both), dtype=bool), np.zeros(len(both), dtype=bool)
    for path in both.paths[: len(before)]:
        old[path] = True
    for path in both.paths[len(before) :]:
        own[path] = True
    # All three trees number their nodes depth first, so the order is the same in each.
    place = np.full(len(both), -1, dtype=np.int64)
    place[old] = places
    found[:] = place[own]
    return found


def _hung(tree: PrefixTree, new: Bools, rank: Ints) -> tuple[Ints, Ints]:
    """Of each new node: how many new ones lie above it, and the nearest of them (-1: none)."""
    depths, parents = np.zeros(rank[-1], dtype=np.int64), np.full(rank[-1], -1, dtype=np.int64)
    deepest: list[tuple[int, int]] = []  # of each edge, the last new node on the way to its end, and how many there are
    for edge in tree.edges:
        above, level = deepest[edge.parent] if edge.parent >= 0 else (-1, 0)
        begin, end = int(rank[edge.start]), int(rank[edge.stop])
        if end > begin:
            parents[begin:end] = np.arange(begin - 1, end - 1)
            parents[begin] = above
            depths[begin:end] = np.arange(level, level + end - begin)
            above, level = end - 1, level + end - begin
        deepest.append((above, level))
    return depths, parents


def _above(tree: PrefixTree, new: Bools, rank: Ints, known: Ints) -> Iterator[Above]:
    for edge in tree.edges:
        nodes = np.arange(edge.start, edge.stop)[~new[edge.start : edge.stop]]
        if not len(nodes):
            continue
        # Known nodes with a new one between them are not above the same nodes.
        for part in np.split(nodes, np.flatnonzero(np.diff(nodes) > 1) + 1):
            start, end = int(rank[part[-1] + 1]), int(rank[edge.end])
            if end > start:
                places = known[part]
                runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
                yield Above(tuple((int(run[0]), int(run[-1]) + 1) for run in runs), start, end)
