"""Both ways of laying out samples keep every sample, within the budget."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.writer_rl.train.test_tree_batch import drawn_samples, sharing_samples
from writer_rl.config import GRPOTrainer
from writer_rl.train.packing import PaddedPacking, TreePacking, micro_batch_tokens

either = st.sampled_from([TreePacking(), PaddedPacking()])


@given(drawn_samples, either, st.integers(1, 40))
def test_micro_batches_hold_every_sample_once_within_the_budget(drawn, packing, budget):
    groups = packing.micro_batches(drawn, budget)
    assert sorted(i for group in groups for i in group) == list(range(len(drawn)))
    for group in groups:
        assert len(group) == 1 or packing.collate([drawn[i] for i in group]).forwarded() <= budget


@given(drawn_samples, either, st.integers(1, 4))
def test_shares_hold_every_sample_once(drawn, packing, ranks):
    found = packing.shares(drawn, ranks)
    assert len(found) == ranks
    assert sorted(i for share in found for i in share) == list(range(len(drawn)))


def test_what_shares_nothing_has_no_padding():
    short, long = sharing_samples(1)[-1], sharing_samples(2)[-1]
    assert TreePacking().collate([short, long]).forwarded() == sum(
        len(s.prompt_ids) + len(s.completion_ids) for s in (short, long)
    )


@pytest.mark.parametrize(("asked", "device", "tokens"), [(None, "cpu", 4096), (None, "cuda", 16_384), (77, "cpu", 77)])
def test_the_budget_suits_the_device(asked, device, tokens):
    assert micro_batch_tokens(GRPOTrainer(micro_batch_tokens=asked), torch.device(device)) == tokens
