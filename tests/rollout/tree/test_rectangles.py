"""Whatever is put together, every node asks itself and each ancestor exactly once."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.tree.prefix_tree import PrefixTree
from rollout.tree.rectangles import Rectangle, rectangles

sequences = st.lists(st.lists(st.integers(0, 2), max_size=9).map(tuple), max_size=9)


def nodes(runs):
    return [node for start, stop in runs for node in range(start, stop)]


def pairs(rectangle):
    """(query, key) that a kernel computes for this rectangle, those of the lead's queries left out."""
    lead, start, stop, end, _ = rectangle
    queries, keys = nodes([*lead, (start, end)]), nodes([*lead, (start, stop)])
    return [(q, k) for i, q in enumerate(queries) for j, k in enumerate(keys) if j <= i and q >= start]


def ancestors(tree):
    found = []
    for node, parent in enumerate(tree.parents.tolist()):
        found.append({node} | (found[parent] if parent >= 0 else set()))
    return found


@given(sequences, st.sampled_from([0.0, 0.3, 1.0, 8.0, math.inf]))
def test_every_node_asks_itself_and_each_ancestor_once(drawn, lead_cost):
    tree = PrefixTree.of(drawn)
    plan = rectangles(tree.edges, lead_cost)
    asked = Counter(pair for rectangle in plan for pair in pairs(rectangle))
    assert asked == Counter((node, above) for node, found in enumerate(ancestors(tree)) for above in found)


@given(sequences, st.sampled_from([0.0, 1.0, math.inf]))
def test_a_nodes_first_rectangle_says_so_and_no_other(drawn, lead_cost):
    tree = PrefixTree.of(drawn)
    begun = set()
    for rectangle in rectangles(tree.edges, lead_cost):
        asking = set(range(rectangle.start, rectangle.end))
        assert asking & begun == (set() if rectangle.first else asking)
        begun |= asking
    assert begun == set(range(len(tree)))


def test_the_documented_example():
    edges = PrefixTree.of([(1, 2, 3), (1, 2, 4, 5)]).edges
    assert rectangles(edges, 0.5) == (Rectangle((), 0, 3, 3, True), Rectangle(((0, 2),), 3, 5, 5, True))


def test_at_infinite_cost_each_edge_is_one():
    edges = PrefixTree.of([(1, 2, 3), (1, 2, 4, 5)]).edges
    assert [r[:4] for r in rectangles(edges, math.inf)] == [((), e.start, e.stop, e.end) for e in edges]


@pytest.mark.parametrize("shared", [1, 1000])
def test_a_short_edge_joins_those_below_and_a_long_one_does_not(shared):
    """Two branches of 100 tokens each under one edge: asking it by itself costs 200 queries once more."""
    stem = tuple(range(shared))
    plan = rectangles(PrefixTree.of([stem + (7,) * 100, stem + (8,) * 100]).edges)
    assert len(plan) == (2 if shared == 1 else 3)
