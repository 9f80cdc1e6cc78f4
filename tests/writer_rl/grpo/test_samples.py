"""Samples shared out among ranks: all of them, balanced, the same on every rank."""

from hypothesis import given
from hypothesis import strategies as st

from writer_rl.grpo.groups import share_of_rank
from writer_rl.grpo.samples import Sample, balanced_shares
from writer_rl.model.batching import length
from writer_rl.train.packing import PaddedPacking, TreePacking


def make(number, tokens):
    return Sample(f"n{number % 3}", number // 3, 0, (1,) * (tokens - 1), (2,), (0.0,), 1.0)


@given(st.lists(st.integers(2, 60), max_size=40), st.integers(1, 5), st.sampled_from([TreePacking(), PaddedPacking()]), st.randoms())
def test_shares_hold_everything_once_whatever_order_the_samples_arrive_in(lengths, ranks, packing, random):
    samples = [make(i, n) for i, n in enumerate(lengths)]
    shares = balanced_shares(samples, ranks, packing)
    assert len(shares) == ranks
    assert sorted((s for share in shares for s in share), key=repr) == sorted(samples, key=repr)
    shuffled = samples[:]
    random.shuffle(shuffled)
    assert balanced_shares(shuffled, ranks, packing) == shares


@given(st.lists(st.integers(2, 60), max_size=40), st.integers(1, 5))
def test_padded_shares_differ_by_at_most_the_longest_sample(lengths, ranks):
    shares = balanced_shares([make(i, n) for i, n in enumerate(lengths)], ranks, PaddedPacking())
    loads = [sum(map(length, share)) for share in shares]
    assert max(loads) - min(loads) <= max(lengths, default=0)


@given(st.integers(1, 6), st.integers(2, 9), st.integers(1, 12))
def test_rollout_shares_cover_every_trajectory_once(networks, group_size, ranks):
    names = [f"n{i}" for i in range(networks)]
    pairs = [(n, g) for r in range(ranks) for n, gs in share_of_rank(names, group_size, r, ranks).items() for g in gs]
    assert pairs == [(n, g) for n in names for g in range(group_size)]
    sizes = [sum(map(len, share_of_rank(names, group_size, r, ranks).values())) for r in range(ranks)]
    assert max(sizes) - min(sizes) <= 1
