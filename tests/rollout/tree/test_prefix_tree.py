"""The prefix tree against its plain definition: a node for every distinct prefix."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.tree.prefix_tree import Branch, Overlaps, PrefixTree, cut, shares

sequences = st.lists(st.lists(st.integers(0, 2), max_size=7).map(tuple), max_size=8)


def prefixes(sequence):
    return [sequence[: i + 1] for i in range(len(sequence))]


def distinct(group):
    """The distinct prefixes of a group: what its tree must hold."""
    return {prefix for sequence in group for prefix in prefixes(sequence)}


def test_the_documented_example():
    tree = PrefixTree.of([(1, 2, 3), (1, 2, 4, 5)])
    assert tree.tokens.tolist() == [1, 2, 3, 4, 5]
    assert tree.depths.tolist() == [0, 1, 2, 2, 3]
    assert tree.parents.tolist() == [-1, 0, 1, 1, 3]
    assert [path.tolist() for path in tree.paths] == [[0, 1, 2], [0, 1, 3, 4]]
    assert tree.edges == (Branch(0, 2, 5, -1), Branch(2, 3, 3, 0), Branch(3, 5, 5, 0))


@given(sequences)
def test_every_distinct_prefix_is_one_node(drawn):
    tree = PrefixTree.of(drawn)
    assert len(tree) == len(distinct(drawn))
    node_of = {}
    for sequence, path in zip(drawn, tree.paths, strict=True):
        assert tree.tokens[path].tolist() == list(sequence)
        assert tree.depths[path].tolist() == list(range(len(sequence)))
        assert tree.parents[path].tolist() == [-1, *path[:-1]][: len(path)]
        for prefix, node in zip(prefixes(sequence), path.tolist(), strict=True):
            assert node_of.setdefault(prefix, node) == node


@given(sequences)
def test_edges_hold_each_node_once_and_what_is_below_them(drawn):
    tree = PrefixTree.of(drawn)
    assert [node for edge in tree.edges for node in range(edge.start, edge.stop)] == list(range(len(tree)))
    ancestors = []
    for node, parent in enumerate(tree.parents.tolist()):
        ancestors.append({node} | (ancestors[parent] if parent >= 0 else set()))
    for edge in tree.edges:
        assert [n for n in range(len(tree)) if edge.start in ancestors[n]] == list(range(edge.start, edge.end))
        above = int(tree.parents[edge.start])
        assert edge.parent == next((i for i, e in enumerate(tree.edges) if e.start <= above < e.stop), -1)
        # No edge could be longer: it begins at a root or below a branch.
        assert above < 0 or tree.parents.tolist().count(above) > 1


def test_the_documented_overlaps():
    found = Overlaps.of([(1, 2, 3), (4, 5), (1, 2, 4)])
    assert (found.order.tolist(), found.shared.tolist(), found.lengths.tolist()) == ([0, 2, 1], [0, 2, 0], [3, 3, 2])


@given(sequences, st.integers(1, 20))
def test_cuts_repeat_as_little_as_any_cut_of_the_order_could(drawn, budget):
    overlaps = Overlaps.of(drawn)
    groups = cut(overlaps, budget)
    assert sorted(i for group in groups for i in group) == list(range(len(drawn)))
    sizes = [len(distinct([drawn[i] for i in group])) for group in groups]
    assert all(size <= budget or len(group) == 1 for size, group in zip(sizes, groups, strict=True))
    assert sizes == sorted(sizes, reverse=True)
    ordered = [drawn[i] for i in overlaps.order]
    best = min(
        (cost, number)
        for chosen in itertools.product([False, True], repeat=max(len(drawn) - 1, 0))
        for runs in [split(ordered, chosen)]
        if all(len(run) == 1 or len(distinct(run)) <= budget for run in runs)
        for cost, number in [(sum(len(distinct(run)) for run in runs), len(runs))]
    )
    assert (sum(sizes), len(groups)) == best


def split(ordered, cuts):
    runs = [[ordered[0]]] if ordered else []
    for sequence, here in zip(ordered[1:], cuts, strict=True):
        if here:
            runs.append([])
        runs[-1].append(sequence)
    return runs


@given(sequences, st.integers(1, 4))
def test_the_largest_share_is_as_small_as_runs_of_the_order_allow(drawn, parts):
    overlaps = Overlaps.of(drawn)
    found = shares(overlaps, parts)
    assert len(found) == parts
    assert sorted(i for share in found for i in share) == list(range(len(drawn)))
    ordered = [drawn[i] for i in overlaps.order]
    least = min(
        max((len(distinct(run)) for run in split(ordered, chosen)), default=0)
        for chosen in itertools.product([False, True], repeat=max(len(drawn) - 1, 0))
        if sum(chosen) < parts
    )
    assert max(len(distinct([drawn[i] for i in share])) for share in found) == least


def test_the_documented_shares():
    four = [(1, 1, 1, 1), (1, 1, 1, 2), (2, 1, 1, 1), (2, 1, 1, 2)]
    assert [len(distinct([four[i] for i in share])) for share in shares(Overlaps.of(four), 2)] == [5, 5]


def test_the_cut_falls_where_least_is_shared():
    drawn = [(1, 2, 3, 4, 5), (1, 2, 3, 4, 6), (1, 9, 9, 9, 9)]
    assert sorted(map(sorted, cut(Overlaps.of(drawn), 6))) == [[0, 1], [2]]


@pytest.mark.parametrize("drawn", [[], [()], [(), (1,)]])
def test_nothing_to_share(drawn):
    assert len(PrefixTree.of(drawn)) == len(distinct(drawn))
    assert sorted(i for group in cut(Overlaps.of(drawn), 4) for i in group) == list(range(len(drawn)))
