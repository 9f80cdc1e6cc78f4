"""A tree computed in two parts is the tree: nothing that is known is computed again but each sequence's last token."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.tree.attention import extension_attention, tree_attention
from rollout.tree.extension import Extension, places_in
from rollout.tree.prefix_tree import PrefixTree

TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple)
SEQUENCES = st.lists(TOKENS, min_size=1, max_size=7)


def extension(before, sequences):
    """With the known nodes lying in reverse, so that no order is taken for granted."""
    count = len(PrefixTree.of(before))
    tree = PrefixTree.of(sequences)
    known = places_in(tree, before, np.arange(count)[::-1])
    return tree, known, Extension.of(tree, known, count)


def prefixes(tree):
    """Of each node, the tokens from its root to itself."""
    found = []
    for node in range(len(tree)):
        above = found[tree.parents[node]] if tree.parents[node] >= 0 else ()
        found.append((*above, int(tree.tokens[node])))
    return found


def test_the_documented_example():
    _, known, made = extension([(1, 2, 3)], [(1, 2, 3), (1, 2, 4, 5)])
    assert known.tolist() == [2, 1, 0, -1, -1]
    assert made.tokens.tolist() == [3, 4, 5] and made.depths.tolist() == [2, 2, 3]
    assert made.edges == ((0, 1, 1, -1), (1, 3, 3, -1)) and made.ends.tolist() == [0, 2]
    assert made.above == ((((2, 3), (1, 2)), 0, 3),) and made.places.tolist() == [2, 1, 3, 4, 5]


@given(st.lists(TOKENS, max_size=6), SEQUENCES)
def test_known_places_are_those_of_equal_prefixes(before, sequences):
    tree, known, _ = extension(before, sequences)
    old = {prefix: place for place, prefix in enumerate(reversed(prefixes(PrefixTree.of(before))))}
    assert known.tolist() == [old.get(prefix, -1) for prefix in prefixes(tree)]


@given(st.lists(TOKENS, max_size=6), SEQUENCES)
def test_only_what_is_unknown_and_the_last_tokens_are_new(before, sequences):
    tree, known, made = extension(before, sequences)
    last = {int(path[-1]) for path in tree.paths}
    new = [node for node in range(len(tree)) if known[node] < 0 or node in last]
    assert made.tokens.tolist() == tree.tokens[new].tolist() and made.depths.tolist() == tree.depths[new].tolist()
    assert [new[end] for end in made.ends] == [int(path[-1]) for path in tree.paths]


@settings(deadline=None)
@given(st.lists(TOKENS, max_size=6), SEQUENCES, st.sampled_from([1, 2]))
def test_attention_of_the_new_nodes_is_that_of_the_whole_tree(before, sequences, kv_heads):
    tree, known, made = extension(before, sequences)
    generator = torch.Generator().manual_seed(len(tree))
    query, key, value = (torch.randn(1, heads, len(tree), 8, generator=generator) for heads in (2, kv_heads, kv_heads))
    count = len(PrefixTree.of(before))
    stored = [each.new_full((1, kv_heads, count + len(made.tokens), 8), float("nan")) for each in (key, value)]
    for node in range(len(tree)):
        for place in {int(known[node]), int(made.places[node])} - {-1}:
            for old, own in zip(stored, (key, value), strict=True):
                old[:, :, place] = own[:, :, node]
    new = torch.from_numpy(np.flatnonzero(made.places >= count))
    expected = tree_attention(query, key, value, tree.edges, 0.4)[:, new]
    found = extension_attention(query[:, :, new], *stored, made, 0.4)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_known_node_below_a_new_one_is_asked_too():
    """1 2 ends a sequence, so 2 is computed anew, though 1 2 3 is known; what comes below sees 1, 2 and 3 all the same."""
    _, _, made = extension([(1, 2, 3, 4)], [(1, 2), (1, 2, 3, 5)])
    assert made.tokens.tolist() == [2, 5] and made.edges == ((0, 2, 2, -1),)
    assert [(above.start, above.end) for above in made.above] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("sequences", [[(1,)], [(1,), (1,)], [(2, 1)] * 3])
def test_a_prompt_that_is_all_known_computes_one_token(sequences):
    assert len(extension(sequences, sequences)[2].tokens) == 1
