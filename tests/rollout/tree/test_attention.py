"""Attention over a tree against its definition: softmax over ancestors, one matrix for all pairs."""

import random

import pytest
import torch

from rollout.tree.attention import TreeUnsupported, _by_paths, _Rectangles, install, tree_attention
from rollout.tree.prefix_tree import PrefixTree
from rollout.tree.rectangles import rectangles
from tests.writer_rl.tiny_run import make_model

HEADS, KV_HEADS, SIZE = 4, 2, 8
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.1}


def random_tree(seed):
    """Many branches near the root, long tails, one sequence that begins another, one twice, one that shares nothing."""
    dice = random.Random(seed)
    drawn = [
        [*(dice.randrange(2) for _ in range(dice.randrange(1, 9))), *(dice.randrange(9) for _ in range(30))] for _ in range(12)
    ]
    return PrefixTree.of([*drawn, drawn[0][:5], drawn[1], [99, 98]])


def inputs(nodes, dtype):
    torch.manual_seed(0)
    shapes = [(1, heads, nodes, SIZE) for heads in (HEADS, KV_HEADS, KV_HEADS)]
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def definition(tree, query, key, value, scale):
    """In float64, with a mask of all ancestors found by walking up."""
    nodes = len(tree)
    sees = torch.zeros(nodes, nodes, dtype=torch.bool)
    for node in range(nodes):
        at = node
        while at >= 0:
            sees[node, at] = True
            at = int(tree.parents[at])
    key, value = (each.double().repeat_interleave(HEADS // KV_HEADS, 1) for each in (key, value))
    scores = (query.double() @ key.transpose(-1, -2) * scale).masked_fill(~sees, float("-inf"))
    return (scores.softmax(-1) @ value).transpose(1, 2)


def one_an_edge(query, key, value, edges, scale):
    key, value = (each.repeat_interleave(HEADS // KV_HEADS, 1) for each in (key, value))
    return _Rectangles.apply(query, key, value, rectangles(edges, float("inf")), scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("attention", [tree_attention, one_an_edge, _by_paths], ids=["joined", "one an edge", "paths"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_and_gradient_are_those_of_softmax_over_ancestors(dtype, attention, seed):
    tree = random_tree(seed)
    query, key, value = inputs(len(tree), dtype)
    upstream = torch.randn(1, len(tree), HEADS, SIZE, dtype=dtype)
    expected = definition(tree, query, key, value, 0.3)
    expected_grads = torch.autograd.grad(expected, (query, key, value), upstream.double())
    found = attention(query, key, value, tree.edges, 0.3)
    assert found.dtype == dtype
    grads = torch.autograd.grad(found, (query, key, value), upstream)
    for ours, theirs in zip([found, *grads], [expected, *expected_grads], strict=True):
        assert (ours - theirs).abs().max() < TOLERANCE[dtype]


def test_one_sequence_is_causal_attention():
    query, key, value = inputs(9, torch.float64)
    found = tree_attention(query, key, value, PrefixTree.of([range(9)]).edges)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    assert torch.allclose(found.transpose(1, 2), expected)


def test_a_later_node_changes_no_earlier_one_and_a_cousin_nothing():
    tree = PrefixTree.of([(1, 2, 3), (1, 4, 5)])
    query, key, value = inputs(5, torch.float64)
    before = tree_attention(query, key, value, tree.edges)
    with torch.no_grad():
        key[:, :, 2] += 1  # node 2: token 3, seen by itself alone
    after = tree_attention(query, key, value, tree.edges)
    assert [n for n in range(5) if not torch.equal(before[:, n], after[:, n])] == [2]


def test_an_installed_implementation_is_what_it_was_without_a_tree():
    ids = torch.arange(12)[None]
    before = make_model()(input_ids=ids).logits
    install("sdpa")
    install("sdpa")
    assert torch.equal(make_model()(input_ids=ids).logits, before)


def test_an_attention_outside_the_registry_is_refused():
    with pytest.raises(TreeUnsupported, match="attn_implementation eager"):
        install("eager")


@pytest.mark.parametrize(
    ("option", "said"), [({"sliding_window": 4}, "slides over 4"), ({"softcap": 30.0}, "softcap"), ({"dropout": 0.1}, "dropout")]
)
def test_an_attention_that_does_more_is_refused(option, said):
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    install("sdpa")
    query, key, value = inputs(9, torch.float32)
    edges = PrefixTree.of([range(9)]).edges
    with pytest.raises(TreeUnsupported, match=said):
        ALL_ATTENTION_FUNCTIONS["sdpa"](torch.nn.Identity(), query, key, value, None, tree=edges, **option)
