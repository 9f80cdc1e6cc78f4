import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rollout.hf.token_sampling import sample_tokens
from rollout.mismatch import MismatchSums, mismatch, processed_logprobs, truncated_importance

LOGPROB = st.floats(-20.0, 0.0)


def test_hand_values():
    result = mismatch([-1.0, -2.0], [-1.0 + math.log(2), -2.0 - math.log(2)])
    assert result.mean == pytest.approx(math.log(2)) and result.max == pytest.approx(math.log(2))
    assert (result.ratio_min, result.ratio_max, result.ratio_mean) == (
        pytest.approx(0.5),
        pytest.approx(2.0),
        pytest.approx(1.25),
    )
    assert result.k3 == pytest.approx(((2 - math.log(2) - 1) + (0.5 + math.log(2) - 1)) / 2)
    assert (result.tokens, result.dropped) == (2, 0)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_mask_and_kinds(kind):
    result = mismatch(kind([[-1.0, -9.0], [-3.0, -9.0]]), kind([[-1.0, 5.0], [-3.5, 7.0]]), kind([[1, 0], [1, 0]]))
    assert result.tokens == 2 and result.max == pytest.approx(0.5)


def test_ragged_lists_and_tuples():
    assert mismatch([(-1.0,), (-2.0, -3.0)], [[-1.0], [-2.0, -3.0]]).tokens == 3


def test_tokens_without_an_engine_value_are_left_out_of_both_sides_and_counted():
    result = mismatch([-1.0, float("nan"), float("-inf")], [-1.5, -2.0, -3.0])
    assert (result.tokens, result.dropped) == (1, 2) and result.mean == pytest.approx(0.5)
    empty = mismatch([float("nan")], [-1.0])
    assert (empty.tokens, empty.mean, empty.ratio_mean) == (0, 0.0, 1.0)


def test_different_tokens_are_refused():
    with pytest.raises(ValueError, match="engine has 2 .*trainer 1"):
        mismatch([-1.0, -2.0], [-1.0])


@given(st.lists(st.tuples(st.floats(-30, 0), st.floats(-1e-7, 1e-7)), min_size=1, max_size=20))
def test_k3_is_never_negative_however_tiny_the_difference(pairs):
    engine = [a for a, _ in pairs]
    assert mismatch(engine, [a + d for a, d in pairs]).k3 >= 0


def test_k3_estimates_the_kl_of_engine_and_trainer():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(20)), rng.dirichlet(np.ones(20))
    p, q = 0.5 * p + 0.025, 0.5 * q + 0.025
    draws = rng.choice(20, size=200_000, p=p)
    result = mismatch(np.log(p[draws]), np.log(q[draws]))
    assert result.k3 == pytest.approx(float((p * np.log(p / q)).sum()), rel=0.03)
    assert result.ratio_mean == pytest.approx(1.0, abs=0.01)


def test_truncated_importance_caps_and_carries_no_gradient():
    engine = torch.tensor([-1.0, -5.0, float("nan")])
    trainer = torch.tensor([-1.5, -1.0, -1.0], requires_grad=True)
    weights = truncated_importance(engine, trainer, cap=2.0)
    assert weights.tolist() == [pytest.approx(math.exp(-0.5)), 2.0, 1.0] and not weights.requires_grad
    with pytest.raises(ValueError, match="cap is 0.5"):
        truncated_importance(engine, trainer, cap=0.5)


def test_processed_logprobs_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    values = [processed_logprobs(logits, torch.tensor([t]), 1.0, 0.7).exp().item() for t in range(4)]
    assert values == [pytest.approx(0.625), pytest.approx(0.375), 0.0, 0.0]
    assert processed_logprobs(logits, torch.tensor([2]), 1.0, 1.0).exp().item() == pytest.approx(0.15)
    half = torch.tensor([0.5, 0.3, 0.15, 0.05]) ** 2
    assert processed_logprobs(logits, torch.tensor([1]), 0.5, 1.0).exp().item() == pytest.approx((half[1] / half.sum()).item())


def test_processed_logprobs_describe_what_the_engine_draws():
    torch.manual_seed(0)
    logits = torch.randn(8) * 2
    rows = logits.expand(20_000, -1)
    uniform = torch.rand(20_000, dtype=torch.float64)
    tokens = sample_tokens(rows, torch.full((20_000,), 0.8), torch.full((20_000,), 0.9), uniform)
    frequency = torch.bincount(tokens, minlength=8) / 20_000
    expected = processed_logprobs(logits.expand(8, -1), torch.arange(8), 0.8, 0.9).exp()
    torch.testing.assert_close(frequency, expected.float(), atol=0.015, rtol=0)
    assert set(frequency.nonzero().flatten().tolist()) == set(expected.nonzero().flatten().tolist())


@given(st.lists(st.lists(st.tuples(LOGPROB, LOGPROB), max_size=8), max_size=4))
def test_sums_of_parts_are_those_of_the_whole(parts):
    """What ranks send each other says as much as their tokens would."""
    joined = sum((MismatchSums.of([a for a, _ in part], [b for _, b in part]) for part in parts), MismatchSums()).result()
    whole = mismatch([a for part in parts for a, _ in part], [b for part in parts for _, b in part])
    for name in ("max", "ratio_min", "ratio_max", "tokens", "dropped"):
        assert getattr(joined, name) == getattr(whole, name)
    for name in ("mean", "k3", "ratio_mean"):
        assert getattr(joined, name) == pytest.approx(getattr(whole, name), rel=1e-12, abs=1e-15)
