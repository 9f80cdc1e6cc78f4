"""Log-probabilities of completion tokens without the logits of a whole batch.

The plain definition, ``log_softmax(hidden @ weight.T)`` gathered at the targets, holds [batch, length, vocabulary] numbers: 39 GB
for the paper's 32 x 2048 tokens and 151,936 words in float32. Here logits exist for `chunk` tokens at a time, in the forward
pass and again in the backward pass, and only where a completion token is predicted.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def token_logprobs(
    hidden: Tensor, weight: Tensor, targets: Tensor, chunk: int = 1024, entropy: bool = False
) -> tuple[Tensor, Tensor | None]:
    """log p(target) of each row, and on demand the entropy (nats) of each row's distribution.

    hidden: [N, H], the last hidden states that predict the targets; weight: [V, H], the output matrix; targets: [N] int64.
    Returns ([N], [N] or None) in float32 (float64 for float64 input). Gradients flow to hidden and weight through the
    log-probabilities only; the entropy is a figure to log.
    """
    return _TokenLogProbs.apply(hidden, weight, targets, chunk, entropy)


class CompletionHead(nn.Module):
    """A language-model head that scores given tokens instead of returning logits.

    Its own module, so that ZeRO-3 gathers the output matrix once per pass, however many chunks a rank needs.
    """

    def __init__(self, lm_head: nn.Linear, chunk: int) -> None:
        super().__init__()
        self._lm_head = (lm_head,)  # in a tuple: the model owns this module, not the head
        self.chunk = chunk

    @property
    def weight(self) -> Tensor:
        """[V, H], the model's output matrix (its embedding, where they are tied)."""
        return self._lm_head[0].weight

    def forward(self, hidden: Tensor, targets: Tensor, entropy: bool = False) -> tuple[Tensor, Tensor | None]:
        """See `token_logprobs`."""
        return token_logprobs(hidden, self.weight, targets, self.chunk, entropy)


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


class _TokenLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, targets: Tensor, chunk: int, entropy: bool):
        count, dtype = hidden.shape[0], _wide(hidden)
        logprobs = torch.empty(count, dtype=dtype, device=hidden.device)
        normalisers = torch.empty_like(logprobs)
        entropies = torch.empty_like(logprobs) if entropy else None
        for start in range(0, count, chunk):
            rows = slice(start, start + chunk)
            logits = (hidden[rows] @ weight.t()).to(dtype)
            normalisers[rows] = logits.logsumexp(-1)
            logprobs[rows] = logits.gather(-1, targets[rows, None])[:, 0] - normalisers[rows]
            if entropies is not None:
                probabilities = (logits - normalisers[rows, None]).exp_()
                entropies[rows] = normalisers[rows] - probabilities.mul_(logits).sum(-1)
        ctx.save_for_backward(hidden, weight, targets, normalisers)
        ctx.chunk = chunk
        if entropies is not None:
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx, upstream: Tensor, _entropy: Tensor | None):
        hidden, weight, targets, normalisers = ctx.saved_tensors
        need_hidden, need_weight = ctx.needs_input_grad[:2]
        hidden_grad = torch.empty_like(hidden) if need_hidden else None
        # Summed over chunks in float32: in bfloat16 late chunks would be rounded away.
        weight_grad = torch.zeros_like(weight, dtype=_wide(weight)) if need_weight else None
        for start in range(0, hidden.shape[0], ctx.chunk):
            rows = slice(start, start + ctx.chunk)
            logits = (hidden[rows] @ weight.t()).to(normalisers.dtype)
            # d log p(y) / d logits = onehot(y) - softmax(logits)
            grad = (logits - normalisers[rows, None]).exp_().mul_(-upstream[rows, None])
            grad.scatter_add_(-1, targets[rows, None], upstream[rows, None])
            grad = grad.to(hidden.dtype)
            if hidden_grad is not None:
                torch.mm(grad, weight, out=hidden_grad[rows])
            if weight_grad is not None:
                if weight_grad.dtype == grad.dtype:
                    weight_grad.addmm_(grad.t(), hidden[rows])
                else:
                    weight_grad += grad.t() @ hidden[rows]
        return hidden_grad, None if weight_grad is None else weight_grad.to(weight.dtype), None, None, None
