"""Ragged samples as padded batches: what is where, and that nothing is lost."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.model.batching import collate, length, micro_batches


def sample(prompt, completion):
    return SimpleNamespace(prompt_ids=prompt, completion_ids=completion)


samples = st.lists(
    st.builds(sample, st.lists(st.integers(0, 9), min_size=1, max_size=6), st.lists(st.integers(0, 9), max_size=6)),
    min_size=1,
    max_size=12,
)


def test_the_documented_example():
    batch = collate([sample([5, 6], [8, 9]), sample([7], [4])])
    assert batch.input_ids.tolist() == [[5, 6, 8, 9], [7, 4, 0, 0]]
    assert batch.mask.tolist() == [[True, True], [True, False]]
    assert (batch.rows.tolist(), batch.columns.tolist(), batch.targets.tolist()) == ([0, 0, 1], [1, 2, 0], [8, 9, 4])
    assert batch.per_sample(torch.tensor([1.0, 2.0, 3.0])).tolist() == [[1.0, 2.0], [3.0, 0.0]]


@given(samples)
def test_every_completion_token_is_predicted_from_the_token_before_it(drawn):
    batch = collate(drawn)
    at = 0
    for row, each in enumerate(drawn):
        ids = [*each.prompt_ids, *each.completion_ids]
        for place in range(len(each.prompt_ids), len(ids)):
            assert (batch.rows[at], batch.columns[at], batch.targets[at]) == (row, place - 1, ids[place])
            at += 1
    assert at == len(batch.targets)
    assert batch.mask.sum(1).tolist() == [len(each.completion_ids) for each in drawn]


def test_masks_come_from_lengths_never_from_values():
    """A completion that contains and ends with the padding id keeps all its tokens."""
    batch = collate([sample([3], [0, 5, 0]), sample([1, 2], [4])])
    assert batch.mask.tolist() == [[True, True, True], [True, False, False]]
    assert batch.targets.tolist() == [0, 5, 0, 4]


def test_a_sample_without_a_prompt_is_refused():
    with pytest.raises(ValueError, match="prompt"):
        collate([sample([], [1])])


@given(samples, st.integers(1, 40))
def test_micro_batches_hold_every_sample_once_within_the_budget(drawn, budget):
    groups = micro_batches(drawn, budget)
    assert sorted(index for group in groups for index in group) == list(range(len(drawn)))
    for group in groups:
        padded = len(group) * max(length(drawn[i]) for i in group)
        assert padded <= budget or len(group) == 1
    assert groups == micro_batches(drawn, budget)
    lengths = [length(drawn[i]) for group in groups for i in group]
    assert lengths == sorted(lengths, reverse=True)
