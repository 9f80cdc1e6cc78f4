"""Eq. 25-27 against hand values and a plain definition; masks that may hold anything; gradients that stay finite."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.grpo.objective import clipped_grpo, grpo_sums, k3

NAN, INF = float("nan"), float("inf")


def plain_definition(logp, old, ref, advantages, mask, clip, kl_coef):
    """The formulas, token by token, with Python numbers."""
    losses, kls, clipped, tokens = [], [], 0, 0
    for n, advantage in enumerate(advantages):
        if advantage == 0:
            continue
        terms, sample_kls = [], []
        for k in range(len(logp[n])):
            if not mask[n][k]:
                continue
            rho = math.exp(logp[n][k] - old[n][k])
            bound = min(max(rho, 1 - clip), 1 + clip)
            delta = ref[n][k] - logp[n][k]
            kl = math.exp(delta) - delta - 1
            terms.append(min(rho * advantage, bound * advantage) - kl_coef * kl)
            sample_kls.append(kl)
            clipped += bound * advantage < rho * advantage
            tokens += 1
        losses.append(-sum(terms) / max(len(terms), 1))
        kls.append(sum(sample_kls) / max(len(terms), 1))
    count = max(len(losses), 1)
    return sum(losses) / count, sum(kls) / count, clipped / max(tokens, 1)


def test_values_by_hand():
    # Sample 0 (A = 2): ratios 1.5 (clipped to 1.2) and 0.5 (not): surrogate (2.4 + 1.0) / 2 = 1.7; ref = logp, so no KL.
    # Sample 1 (A = -1): ratios 0.5 (clipped to 0.8) and 1.5 (not): surrogate (-0.8 - 1.5) / 2 = -1.15; KL ln2: 2 - ln2 - 1.
    log = math.log
    logp = torch.tensor([[log(1.5), log(0.5)], [log(0.5), log(1.5)]], dtype=torch.float64)
    old = torch.zeros_like(logp)
    ref = logp + torch.tensor([[0.0, 0.0], [log(2.0), log(2.0)]])
    result = clipped_grpo(logp, old, ref, torch.tensor([2.0, -1.0]), torch.ones(2, 2))
    kl = 1 - log(2.0)
    assert result.loss.item() == pytest.approx(-(1.7 - 1.15 - 0.1 * kl) / 2, abs=1e-7)
    assert result.kl.item() == pytest.approx(kl / 2, abs=1e-7)
    assert result.clip_fraction.item() == 0.5


numbers = st.floats(-3, 0, width=32)


@given(st.data(), st.integers(1, 4), st.integers(1, 5))
def test_equal_to_the_plain_definition(data, n, length):
    def table(values):
        return data.draw(st.lists(st.lists(values, min_size=length, max_size=length), min_size=n, max_size=n))

    logp, old, ref = table(numbers), table(numbers), table(numbers)
    mask = table(st.booleans())
    advantages = data.draw(st.lists(st.sampled_from([0.0, -2.0, -0.5, 0.7, 3.0]), min_size=n, max_size=n))
    expected = plain_definition(logp, old, ref, advantages, mask, 0.2, 0.1)
    result = clipped_grpo(*(torch.tensor(x, dtype=torch.float64) for x in (logp, old, ref, advantages)), torch.tensor(mask))
    assert result.loss.item() == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
    assert result.kl.item() == pytest.approx(expected[1], rel=1e-9, abs=1e-12)
    assert result.clip_fraction.item() == pytest.approx(expected[2])


@pytest.mark.parametrize("mask_type", [torch.bool, torch.int64, torch.float32])
@pytest.mark.parametrize("junk", [NAN, INF, -INF, 1e30])
def test_masked_positions_may_hold_anything(mask_type, junk):
    clean = torch.tensor([[-0.5, -1.0, 0.0], [-0.2, 0.0, 0.0]])
    dirty = torch.tensor([[-0.5, -1.0, junk], [-0.2, junk, junk]], requires_grad=True)
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]]).to(mask_type)
    old, ref = clean - 0.1, clean + 0.2
    junked = [torch.where(mask != 0, x, torch.tensor(junk)) for x in (old, ref)]
    advantages = torch.tensor([1.0, -1.0])
    result = clipped_grpo(dirty, *junked, advantages, mask)
    result.loss.backward()
    reference = clean.clone().requires_grad_()
    expected = clipped_grpo(reference, old, ref, advantages, mask)
    expected.loss.backward()
    assert result.loss.item() == expected.loss.item()
    assert torch.equal(dirty.grad, reference.grad)


def test_a_sample_without_advantage_takes_no_part_even_if_it_is_broken():
    logp = torch.tensor([[-0.5, -0.5], [NAN, -3.0]], requires_grad=True)
    result = clipped_grpo(logp, torch.zeros(2, 2) - 0.5, torch.zeros(2, 2) - 0.6, torch.tensor([1.0, 0.0]), torch.ones(2, 2))
    alone = clipped_grpo(logp[:1], torch.zeros(1, 2) - 0.5, torch.zeros(1, 2) - 0.6, torch.tensor([1.0]), torch.ones(1, 2))
    assert result.loss.item() == alone.loss.item()
    assert result.kl.item() == alone.kl.item()
    result.loss.backward()
    assert logp.grad[1].tolist() == [0.0, 0.0]


def test_without_a_nonzero_advantage_the_loss_is_zero_and_attached():
    logp = torch.tensor([[-0.5, NAN]], requires_grad=True)
    result = clipped_grpo(logp, logp.detach(), torch.zeros(1, 2), torch.zeros(1), torch.ones(1, 2))
    result.loss.backward()
    assert result.loss.item() == 0 and result.kl.item() == 0 and result.clip_fraction.item() == 0
    assert logp.grad.tolist() == [[0.0, 0.0]]


def test_an_enormous_ratio_on_the_clipped_side_has_no_gradient():
    logp = torch.tensor([[0.0]], requires_grad=True)
    result = clipped_grpo(logp, torch.tensor([[-1000.0]]), torch.zeros(1, 1), torch.tensor([1.0]), torch.ones(1, 1))
    result.loss.backward()
    assert result.loss.item() == pytest.approx(-1.2)
    assert logp.grad.item() == 0.0


def test_a_nan_that_counts_reaches_the_loss():
    logp = torch.tensor([[NAN]], requires_grad=True)
    assert math.isnan(clipped_grpo(logp, torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1), torch.ones(1, 1)).loss.item())


def test_gradient_at_the_start_is_the_policy_gradient():
    # ratio 1: d loss / d logp = -A / (tokens of the sample) / samples, and no KL force where ref = theta.
    logp = torch.tensor([[-1.0, -2.0], [-1.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[1, 1], [1, 0]])
    clipped_grpo(logp, logp.detach(), logp.detach(), torch.tensor([1.0, -2.0]), mask).loss.backward()
    assert logp.grad.tolist() == [[-0.25, -0.25], [1.0, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_computes_in_the_type_of_logp(dtype):
    logp = torch.tensor([[-0.5]], dtype=dtype, requires_grad=True)
    result = clipped_grpo(
        logp, torch.tensor([[-0.5]]), torch.tensor([[-0.4]]), torch.tensor([1.0], dtype=torch.float64), torch.ones(1, 1)
    )
    assert result.loss.dtype == result.kl.dtype == result.clip_fraction.dtype == dtype


@given(st.floats(-1e-3, 1e-3))
def test_k3_is_never_negative_and_keeps_tiny_values(delta):
    value = k3(torch.tensor(delta, dtype=torch.float32)).item()
    assert value >= 0
    assert value == pytest.approx(delta * delta / 2, rel=0.01, abs=1e-10)


def test_gradients_of_parts_add_up_to_the_gradient_of_the_whole():
    torch.manual_seed(0)
    logp = (-torch.rand(6, 5, dtype=torch.float64)).requires_grad_()
    old, ref = logp.detach() + 0.3 * torch.randn(6, 5), logp.detach() + 0.3 * torch.randn(6, 5)
    advantages, mask = torch.tensor([1.0, 0.0, -2.0, 3.0, -0.5, 1.5]), torch.rand(6, 5) < 0.7
    clipped_grpo(logp, old, ref, advantages, mask).loss.backward()
    whole = logp.grad.clone()
    logp.grad = None
    for rows in ([0, 1], [2], [3, 4, 5]):
        sums = grpo_sums(logp[rows], old[rows], ref[rows], advantages[rows], mask[rows])
        (sums.loss / 5).backward()
    assert torch.allclose(logp.grad, whole, rtol=1e-12)


def test_token_weights_scale_the_surrogate_but_not_the_kl():
    logp = torch.tensor([[-1.0, -1.0]], dtype=torch.float64)
    ref = logp + 0.5
    arguments = (logp, logp, ref, torch.tensor([1.0]), torch.ones(1, 2), 0.2, 0.1)
    kl = k3(torch.tensor(0.5, dtype=torch.float64)).item()
    assert grpo_sums(*arguments).loss.item() == pytest.approx(-1 + 0.1 * kl)
    weighted = grpo_sums(*arguments, token_weights=torch.tensor([[0.5, 0.1]]))
    assert weighted.loss.item() == pytest.approx(-0.3 + 0.1 * kl)
