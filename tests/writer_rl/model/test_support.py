"""Log-probabilities renormalised over what the sampler could draw."""

import math

import pytest
import torch

from rollout.mismatch import processed_logprobs
from writer_rl.model.logprobs import CompletionHead, token_logprobs
from writer_rl.model.support import Drawing, nucleus, support_of


def head_of(logits):
    """A state and an output matrix whose logits are these: the identity."""
    return logits, torch.eye(logits.shape[-1], dtype=logits.dtype)


def test_five_tokens_by_hand():
    """0.5, 0.3, 0.15, 0.04, 0.01 at top-p 0.9: three are kept, with mass 0.95; then the policy moves and the set stays."""
    old = torch.tensor([[0.5, 0.3, 0.15, 0.04, 0.01]], dtype=torch.float64).log()
    assert nucleus(old, 0.9).tolist() == [[True, True, True, False, False]]
    hidden, weight = head_of(old)
    target, row = torch.tensor([1]), torch.tensor([0])
    support = support_of(hidden, weight, target, row, Drawing(1.0, 0.9), 8)
    assert support.ids.tolist() == [0, 1, 2] and support.bounds.tolist() == [0, 3]
    assert token_logprobs(hidden, weight, target, support=support)[0].exp().item() == pytest.approx(0.3 / 0.95)
    now = torch.tensor([[0.1, 0.2, 0.1, 0.5, 0.1]], dtype=torch.float64).log()  # its own nucleus would be another
    assert token_logprobs(now, weight, target, support=support)[0].exp().item() == pytest.approx(0.2 / 0.4)


def test_temperature_by_hand():
    """At temperature 0.5 probabilities are squared: 0.25, 0.09, 0.0225, ... of 0.3642; two hold 0.93 of it."""
    hidden, weight = head_of(torch.tensor([[0.5, 0.3, 0.15, 0.04, 0.01]], dtype=torch.float64).log())
    support = support_of(hidden, weight, torch.tensor([0]), torch.tensor([0]), Drawing(0.5, 0.9), 8)
    assert support.ids.tolist() == [0, 1]
    found = token_logprobs(hidden, weight, torch.tensor([0]), support=support)[0].item()
    assert found == pytest.approx(math.log(0.25 / 0.34))


def test_a_drawn_token_is_always_in_its_set():
    hidden, weight = head_of(torch.tensor([[0.9, 0.05, 0.05]], dtype=torch.float64).log())
    support = support_of(hidden, weight, torch.tensor([2]), torch.tensor([0]), Drawing(1.0, 0.5), 8)
    assert support.ids.tolist() == [0, 2]


@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("vocabulary", [40, 1500])
def test_values_and_gradients_are_those_of_the_plain_definition(chunk, vocabulary):
    """States that predict several tokens, cut into chunks; 1500: flat distributions whose nucleus needs the whole sort."""
    torch.manual_seed(0)
    hidden = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    weight = (torch.randn(vocabulary, 6, dtype=torch.float64) * 0.3).requires_grad_()
    rows = torch.tensor([0, 0, 1, 2, 3, 3, 4])
    plain = (hidden @ weight.t())[rows] / 0.7
    inside = nucleus(plain.detach(), 0.8)
    targets = torch.stack([r.nonzero()[i % 3, 0] for i, r in enumerate(inside)])
    expected = plain.masked_fill(~inside, float("-inf")).log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    support = support_of(hidden, weight, targets, rows, Drawing(0.7, 0.8), chunk)
    found = token_logprobs(hidden, weight, targets, chunk, rows=rows, support=support)[0]
    torch.testing.assert_close(found, expected)
    sampler = processed_logprobs((hidden @ weight.t())[rows], targets, 0.7, 0.8)
    torch.testing.assert_close(found.float(), sampler.float(), atol=1e-5, rtol=1e-5)
    upstream = torch.randn(len(rows), dtype=torch.float64)
    wanted = torch.autograd.grad(expected, (hidden, weight), upstream)
    given = torch.autograd.grad(found, (hidden, weight), upstream)
    torch.testing.assert_close(given, wanted)


def test_the_head_leaves_raw_log_probabilities_bit_for_bit():
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 30, bias=False)
    head, hidden, targets = CompletionHead(layer, 2), torch.randn(5, 6), torch.arange(5)
    raw = head(hidden, targets, True)
    both = head(hidden, targets, True, None, Drawing(0.8, 0.9))
    assert torch.equal(raw[0], both[0]) and torch.equal(raw[1], both[1])
    assert torch.equal(head(hidden, targets, True, None, both[3])[2], both[2])
