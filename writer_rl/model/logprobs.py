"""Log-probabilities of completion tokens without the logits of a whole batch.

The plain definition, ``log_softmax(hidden @ weight.T)`` gathered at the targets, holds [batch, length, vocabulary] numbers: 39 GB
for the paper's 32 x 2048 tokens and 151,936 words in float32. Here logits exist for `chunk` tokens at a time, in the forward
pass and again in the backward pass, and only where a completion token is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from writer_rl.model.support import Drawing, Support, support_of


def token_logprobs(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    chunk: int = 1024,
    entropy: bool = False,
    rows: Tensor | None = None,
    support: Support | None = None,
) -> tuple[Tensor, Tensor | None]:
    """log p(target) of each target, and on demand the entropy (nats) of the distribution that it comes from.

    hidden: [P, H], the last hidden states that predict the targets; weight: [V, H], the output matrix; targets: [T] int64; rows:
    [T] int64, nondecreasing, the state that predicts each target, or None for one each. A state's distribution is computed
    once, however many targets it has. support: renormalise over what the sampler could draw, at its temperature.
    Returns ([T], [T] or None) in float32 (float64 for float64 input). Gradients flow to hidden and weight through the
    log-probabilities only; the entropy is a figure to log.
    """
    if rows is None:
        rows = torch.arange(len(targets), device=targets.device)
    return _TokenLogProbs.apply(hidden, weight, targets, rows, chunk, entropy, support)


Scores = tuple[Tensor, Tensor | None] | tuple[Tensor, Tensor | None, Tensor, Support]
"""Raw log-probabilities and entropies; on demand log-probabilities as drawn, and the sets that they are renormalised over."""


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

    def forward(
        self,
        hidden: Tensor,
        targets: Tensor,
        entropy: bool = False,
        rows: Tensor | None = None,
        drawn: Drawing | Support | None = None,
    ) -> Scores:
        """See `token_logprobs`.

        drawn: also log-probabilities [T] renormalised over what the sampler could draw, and those sets: of these logits where
        the sampler's settings are given (`Drawing`), else the ones that an earlier pass found.
        """
        raw = token_logprobs(hidden, self.weight, targets, self.chunk, entropy, rows)
        if drawn is None:
            return raw
        if isinstance(drawn, Drawing):
            places = torch.arange(len(targets), device=targets.device) if rows is None else rows
            support = support_of(hidden, self.weight, targets, places, drawn, self.chunk)
        else:
            support = drawn
        return *raw, token_logprobs(hidden, self.weight, targets, self.chunk, False, rows, support)[0], support


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _chunks(states: int, rows: Tensor, chunk: int) -> Iterator[tuple[slice, slice]]:
    """For every `chunk` states in turn, these and the targets that they predict."""
    starts = range(0, states, chunk)
    bounds = torch.searchsorted(rows, torch.tensor([*starts, states], device=rows.device)).tolist()
    for number, start in enumerate(starts):
        yield slice(start, start + chunk), slice(bounds[number], bounds[number + 1])


class _TokenLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        rows: Tensor,
        chunk: int,
        entropy: bool,
        support: Support | None,
    ) -> tuple[Tensor, Tensor | None]:
        dtype = _wide(hidden)
        logprobs = torch.empty(len(targets), dtype=dtype, device=hidden.device)
        normalisers = torch.empty(len(hidden), dtype=dtype, device=hidden.device)
        entropies = torch.empty_like(normalisers) if entropy else None
        for states, predicted in _chunks(len(hidden), rows, chunk):
            logits = (hidden[states] @ weight.t()).to(dtype)
            logits = logits if support is None else support.restrict(logits, states)
            normalisers[states] = logits.logsumexp(-1)
            logprobs[predicted] = logits[rows[predicted] - states.start, targets[predicted]]
            if entropies is not None:
                probabilities = (logits - normalisers[states, None]).exp_()
                entropies[states] = normalisers[states] - probabilities.mul_(logits).sum(-1)
        logprobs -= normalisers[rows]
        ctx.save_for_backward(hidden, weight, targets, rows, normalisers)
        ctx.chunk, ctx.support = chunk, support
        if entropies is not None:
            entropies = entropies[rows]
            ctx.mark_non_differentiable(entropies)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _entropy: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, targets, rows, normalisers = ctx.saved_tensors
        need_hidden, need_weight = ctx.needs_input_grad[:2]
        hidden_grad = torch.empty_like(hidden) if need_hidden else None
        # Summed over chunks in float32: in bfloat16 late chunks would be rounded away.
        weight_grad = torch.zeros_like(weight, dtype=_wide(weight)) if need_weight else None
        sums = torch.zeros_like(normalisers).index_add_(0, rows, upstream)
        for states, predicted in _chunks(len(hidden), rows, ctx.chunk):
            logits = (hidden[states] @ weight.t()).to(normalisers.dtype)
            logits = logits if ctx.support is None else ctx.support.restrict(logits, states)
            # d sum_y g_y log p(y) / d logits = sum_y g_y onehot(y) - softmax(logits) sum_y g_y
            grad = (logits - normalisers[states, None]).exp_().mul_(-sums[states, None])
            grad.index_put_((rows[predicted] - states.start, targets[predicted]), upstream[predicted], accumulate=True)
            grad = (grad if ctx.support is None else grad / ctx.support.temperature).to(hidden.dtype)
            if hidden_grad is not None:
                torch.mm(grad, weight, out=hidden_grad[states])
            if weight_grad is not None:
                if weight_grad.dtype == grad.dtype:
                    weight_grad.addmm_(grad.t(), hidden[states])
                else:
                    weight_grad += grad.t() @ hidden[states]
        weight_grad = None if weight_grad is None else weight_grad.to(weight.dtype)
        return hidden_grad, weight_grad, None, None, None, None, None
