"""Chunked log-probabilities equal the plain definition in value and gradient, and never hold all logits."""

import pytest
import torch

from writer_rl.model.logprobs import token_logprobs


def plain(hidden, weight, targets):
    logits = torch.log_softmax(hidden @ weight.t(), -1)
    return logits.gather(-1, targets[:, None])[:, 0], -(logits.exp() * logits).sum(-1)


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_value_gradient_and_entropy_equal_the_definition(chunk):
    torch.manual_seed(0)
    hidden = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 10, 3, 3, 3, 7, 1])
    upstream = torch.randn(7, dtype=torch.float64)
    expected, expected_entropy = plain(hidden, weight, targets)
    expected_grads = torch.autograd.grad(expected, (hidden, weight), upstream)
    found, entropy = token_logprobs(hidden, weight, targets, chunk, entropy=True)
    grads = torch.autograd.grad(found, (hidden, weight), upstream)
    assert torch.allclose(found, expected, rtol=1e-12)
    assert torch.allclose(entropy, expected_entropy, rtol=1e-12)
    for grad, expected_grad in zip(grads, expected_grads, strict=True):
        assert torch.allclose(grad, expected_grad, rtol=1e-10, atol=1e-14)


def test_gradcheck():
    hidden = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h, w: token_logprobs(h, w, torch.tensor([0, 5, 2, 2]), 3)[0], (hidden, weight))


def test_bfloat16_input_gives_float32_log_probabilities():
    hidden = torch.randn(4, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(9, 8, dtype=torch.bfloat16, requires_grad=True)
    logprobs, entropy = token_logprobs(hidden, weight, torch.tensor([1, 2, 3, 8]), 2)
    assert logprobs.dtype == torch.float32 and entropy is None
    logprobs.sum().backward()
    assert hidden.grad.dtype == weight.grad.dtype == torch.bfloat16


def test_a_frozen_head_gets_no_gradient():
    hidden = torch.randn(4, 8, requires_grad=True)
    weight = torch.randn(9, 8)
    token_logprobs(hidden, weight, torch.tensor([1, 2, 3, 8]))[0].sum().backward()
    assert hidden.grad is not None and weight.grad is None


def test_nothing_to_score():
    hidden = torch.randn(0, 8, requires_grad=True)
    logprobs, entropy = token_logprobs(hidden, torch.randn(9, 8), torch.zeros(0, dtype=torch.long), 4, entropy=True)
    logprobs.sum().backward()
    assert logprobs.shape == entropy.shape == (0,)


def test_logits_of_one_chunk_only(monkeypatch):
    """No tensor of more than chunk x vocabulary elements is made, forward or backward."""
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), kwargs=None):
            nonlocal largest
            result = function(*arguments, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple) else (result,):
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.numel())
            return result

    hidden = torch.randn(64, 4, requires_grad=True)
    weight = torch.randn(50, 4, requires_grad=True)
    with Watch():
        token_logprobs(hidden, weight, torch.randint(50, (64,)), 8, entropy=True)[0].sum().backward()
    assert largest <= 8 * 50
