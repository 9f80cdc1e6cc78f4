"""The order of networks and the learning rate, both functions of the round's number alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.config import GRPOTrainer
from writer_rl.train.schedule import NetworkOrder, kept_schedule, lr_factor


def test_the_paper_samples_each_of_15_networks_twice_in_30_rounds():
    order = NetworkOrder([f"n{i}" for i in range(15)], 1, seed=0)
    rounds = [order.networks(i) for i in range(30)]
    assert sorted(rounds[:15]) == sorted(rounds[15:]) == sorted((f"n{i}",) for i in range(15))
    assert rounds[:15] != rounds[15:]


@given(st.integers(1, 9), st.data())
def test_no_network_twice_in_a_round_and_all_equally_often(count, data):
    names = [f"n{i}" for i in range(count)]
    per_round = data.draw(st.integers(1, count))
    order = NetworkOrder(names, per_round, seed=data.draw(st.integers(0, 5)))
    seen = dict.fromkeys(names, 0)
    for index in range(3 * count):
        networks = order.networks(index)
        assert len(set(networks)) == per_round
        for name in networks:
            seen[name] += 1
        assert max(seen.values()) - min(seen.values()) <= 2
    assert set(seen.values()) == {3 * per_round}


def test_a_round_is_the_same_whoever_asks_first():
    one, other = NetworkOrder("abcde", 2, 7), NetworkOrder("abcde", 2, 7)
    assert one.networks(9) == other.networks(9)
    assert [one.networks(i) for i in range(12)] == [other.networks(i) for i in range(12)]
    assert [one.networks(i) for i in range(12)] != [NetworkOrder("abcde", 2, 8).networks(i) for i in range(12)]


def test_more_networks_a_round_than_there_are():
    with pytest.raises(ValueError, match="networks_per_round: 3"):
        NetworkOrder("ab", 3, 0)


def test_rates_by_hand():
    linear = GRPOTrainer(lr=1.0, lr_schedule="linear", lr_final=0.2, warmup_steps=1)
    assert [lr_factor(linear, i, 6) for i in range(6)] == pytest.approx([0.5, 1.0, 0.8, 0.6, 0.4, 0.2])
    cosine = GRPOTrainer(lr=1.0, lr_schedule="cosine")
    assert [lr_factor(cosine, i, 3) for i in range(3)] == pytest.approx([1.0, 0.5, 0.0], abs=1e-12)
    assert [lr_factor(GRPOTrainer(), i, 3) for i in range(4)] == [1.0] * 4


def test_a_schedule_that_was_begun_is_kept_and_said():
    linear = GRPOTrainer(lr_schedule="linear", lr_final=4e-5)
    assert "begun over 2 rounds is kept; every round after it has lr 4e-05" in kept_schedule(linear, 2, 4)
    assert kept_schedule(linear, 4, 2).endswith("begun over 4 rounds is kept")
    assert kept_schedule(linear, 4, 4) is None and kept_schedule(GRPOTrainer(), 2, 4) is None
