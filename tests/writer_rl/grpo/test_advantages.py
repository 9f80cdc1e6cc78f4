"""Eq. 23-24: exact values, kinds in and out, and what makes a column silent."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.grpo.advantages import position_advantages, position_deviations


def test_values_by_hand():
    # Column 0: mean 2, population deviation sqrt(2); column 1: deviation 0.015 < 0.02; column 2: constant.
    returns = [[0.0, 0.50, 0.3], [2.0, 0.53, 0.3], [2.0, 0.50, 0.3], [4.0, 0.53, 0.3]]
    root = 2.0**0.5
    expected = np.array([[-root, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [root, 0.0, 0.0]])
    assert np.allclose(position_advantages(returns), expected, rtol=1e-15, atol=0)


def test_a_deviation_of_exactly_the_threshold_counts():
    assert position_advantages([[0.0], [0.04]]) == [[-1.0], [1.0]]
    assert position_advantages([[0.0], [0.0399]]) == [[0.0], [0.0]]


def test_population_deviation_and_clip_at_three():
    # One of 16 stands out: (1 - 1/16) / sqrt(15)/16 = sqrt(15) = 3.87, clipped to 3.
    returns = [[1.0], *[[0.0]] * 15]
    advantages = position_advantages(returns)
    assert advantages[0] == [3.0]
    assert advantages[1][0] == pytest.approx(-1 / 15**0.5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_tensor_gives_a_tensor_of_its_type(dtype):
    advantages = position_advantages(torch.tensor([[1.0, 5.0], [0.0, 5.0]], dtype=dtype))
    assert advantages.dtype == dtype
    assert advantages.tolist() == [[1.0, 0.0], [-1.0, 0.0]]


def test_kinds():
    assert isinstance(position_advantages(np.array([[1.0], [0.0]], dtype=np.float32)), np.ndarray)
    assert position_advantages(np.array([[1.0], [0.0]], dtype=np.float32)).dtype == np.float32
    assert position_advantages(np.array([[1], [0]])).dtype == np.float64
    assert position_advantages(torch.tensor([[1], [0]])).dtype == torch.float64
    assert position_advantages(((1.0,), (0.0,))) == [[1.0], [-1.0]]
    assert position_advantages(torch.tensor([[1.0], [0.0]], requires_grad=True)).requires_grad is False


def test_float32_input_is_computed_in_float64():
    # Around 1e4, float32 arithmetic would lose the differences; in float64 the stored values decide.
    stored = np.array([[10000.0], [10000.0625], [10000.125]], dtype=np.float32)
    expected = position_advantages(stored.astype(np.float64))
    assert np.array_equal(position_advantages(stored), expected.astype(np.float32))


@pytest.mark.parametrize(
    "returns", [[1.0, 2.0], [], [[1.0, 2.0], [3.0]], [[float("nan")], [1.0]], [[float("inf")], [1.0]], [["a"]]]
)
def test_what_is_no_table_of_finite_numbers_is_refused(returns):
    with pytest.raises(ValueError, match="returns"):
        position_advantages(returns)


@given(st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=2, max_size=9))
def test_columns_are_independent_centred_and_bounded(returns):
    advantages = np.array(position_advantages(returns))
    for column in range(3):
        alone = np.array(position_advantages([[row[column]] for row in returns]))[:, 0]
        assert np.array_equal(advantages[:, column], alone)
    assert (np.abs(advantages) <= 3).all()
    silent = position_deviations(returns) < 0.02
    assert (advantages[:, silent] == 0).all()
    unclipped = ~silent & (np.abs(advantages) < 3).all(axis=0)
    assert np.allclose(advantages[:, unclipped].mean(axis=0), 0, atol=1e-9)
    assert np.allclose(advantages[:, unclipped].std(axis=0), 1, atol=1e-9)


@given(st.lists(st.lists(st.floats(-5, 5), min_size=2, max_size=2), min_size=2, max_size=6), st.randoms())
def test_the_order_of_trajectories_does_not_matter(returns, random):
    order = list(range(len(returns)))
    random.shuffle(order)
    shuffled = position_advantages([returns[i] for i in order])
    assert np.allclose(shuffled, [position_advantages(returns)[i] for i in order], atol=1e-9)
