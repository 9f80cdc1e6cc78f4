"""A tree's (token, ancestor) pairs as rectangles: which queries ask which keys in one call of an attention kernel.

The plain plan is one rectangle an edge: queries of its subtree, keys of its own nodes, causal from the top left corner. A query
costs a kernel about as much as 80 keys (float32), however few keys it asks, and every edge above a node asks it once more.
Short edges are therefore not asked by themselves: their nodes go in front of each edge below, as queries and as keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rollout.tree.prefix_tree import Branch

LEAD_COST = 8.0
"""What a node that leads another edge costs, in queries: itself, its keys, and the copies, forward and backward. By measurement;
5 to 10 are equally good."""

Run = tuple[int, int]
"""Nodes [start, stop)."""


class Rectangle(NamedTuple):
    """Queries of the lead's nodes and of [start, end), keys of the lead's nodes and of [start, stop), causal from the top left.

    lead: runs of ancestors right above `start`, in order; what their queries find is thrown away. first: no rectangle before this
    one asked for the nodes [start, end), so it begins their attention.

    Example (edges of 1 2 3 and 1 2 4 5, all short): ((), 0, 3, 3, True) asks for 1 2 3 at once, and (((0, 2),), 3, 5, 5, True)
    puts 1 2 in front of 4 5.
    """

    lead: tuple[Run, ...]
    start: int
    stop: int
    end: int
    first: bool


@lru_cache(maxsize=256)
def rectangles(edges: tuple[Branch, ...], lead_cost: float = LEAD_COST) -> tuple[Rectangle, ...]:
    """Rectangles that hold every (node, ancestor or itself) pair once; the one that begins a node's attention comes first.

    An edge joins those below it where this costs less than asking for everything below it once more. lead_cost: infinite for
    one rectangle an edge.
    """
    below: dict[int, list[int]] = {-1: []}
    for index, edge in enumerate(edges):
        below.setdefault(edge.parent, []).append(index)
    found = []
    # edge, the lead it inherits, where its run begins, whether something above already asked for its nodes
    waiting: list[tuple[int, tuple[Run, ...], int, bool]] = [(i, (), edges[i].start, False) for i in reversed(below[-1])]
    while waiting:
        index, lead, start, asked = waiting.pop()
        edge, children = edges[index], below.get(index, [])
        length = _length(lead) + edge.stop - start
        if children and edge.end - edge.stop > (len(children) - 1) * length * lead_cost:
            # The first child's nodes follow the edge's own: together they are one run.
            later = [(child, (*lead, (start, edge.stop)), edges[child].start, asked) for child in children[1:]]
            waiting += [*reversed(later), (children[0], lead, start, asked)]
        else:
            found.append(Rectangle(lead, start, edge.stop, edge.end, not asked))
            waiting += [(child, (), edges[child].start, True) for child in reversed(children)]
    return tuple(found)


def _length(runs: Sequence[Run]) -> int:
    return sum(stop - start for start, stop in runs)
