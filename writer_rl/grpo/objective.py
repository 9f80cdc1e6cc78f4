"""The clipped GRPO objective (Eq. 25-27), as pure functions of log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Objective:
    """What `clipped_grpo` returns: `loss` [] differentiable, `kl` [] and `clip_fraction` [] to look at.

    Example: at pi_theta = pi_old = pi_ref and one sample of advantage 1, loss == -1, kl == 0, clip_fraction == 0.
    """

    loss: Tensor
    kl: Tensor
    clip_fraction: Tensor


@dataclass(frozen=True, slots=True)
class ObjectiveSums:
    """The objective of some samples before normalisation, so that the sums of micro-batches and ranks can be added up.

    `loss` [] is differentiable: the sum over samples with a nonzero advantage of their token mean. `kl` [] is the sum of their
    token-mean k3, `clipped` [] and `tokens` [] count their tokens, `samples` [] themselves; none of those has a gradient.
    """

    loss: Tensor
    kl: Tensor
    clipped: Tensor
    tokens: Tensor
    samples: Tensor


def clipped_grpo(
    logp: Tensor,
    old_logp: Tensor,
    ref_logp: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: float = 0.20,
    kl_coef: float = 0.10,
) -> Objective:
    """The loss to minimise, minus Eq. 26, over the samples with a nonzero advantage among these N.

    logp, old_logp, ref_logp: [N, L] log-probabilities of sampled tokens under pi_theta, pi_old, pi_ref; advantages: [N]; mask:
    [N, L], nonzero on completion tokens (elsewhere the log-probabilities may be anything, NaN included). Computes in logp's
    dtype; gradients flow to logp alone. Without a nonzero advantage the loss is 0, still attached to the graph, and kl is 0.
    """
    sums = grpo_sums(logp, old_logp, ref_logp, advantages, mask, clip, kl_coef)
    samples, tokens = sums.samples.clamp(min=1), sums.tokens.clamp(min=1)
    return Objective(sums.loss / samples, sums.kl / samples, sums.clipped / tokens)


def grpo_sums(
    logp: Tensor,
    old_logp: Tensor,
    ref_logp: Tensor,
    advantages: Tensor,
    mask: Tensor,
    clip: float = 0.20,
    kl_coef: float = 0.10,
    token_weights: Tensor | None = None,
    ratio_of: tuple[Tensor, Tensor] | None = None,
) -> ObjectiveSums:
    """`clipped_grpo` without its denominators: divide `loss` by the whole update's number of samples.

    token_weights: [N, L] factors of the surrogate term (an importance correction), or None. ratio_of: [N, L] each, the
    log-probabilities (now, old) that Eq. 25's ratio is taken between, where they are not logp and old_logp; KL stays of those.
    """
    dtype = logp.dtype
    advantages = advantages.to(logp)
    active = advantages != 0
    counted = (mask != 0) & active[:, None]
    # Values are replaced before any arithmetic: a NaN that is multiplied by 0 afterwards still poisons the gradient.
    zero = torch.zeros((), dtype=dtype, device=logp.device)
    logp = torch.where(counted, logp, zero)
    old_logp = torch.where(counted, old_logp.detach().to(logp), zero)
    ref_logp = torch.where(counted, ref_logp.detach().to(logp), zero)
    log_ratio = logp - old_logp
    if ratio_of is not None:
        now, old = ratio_of
        log_ratio = torch.where(counted, now - old.detach().to(now), zero)
    surrogate, clipped = _surrogate(log_ratio, advantages[:, None], clip)
    if token_weights is not None:
        surrogate = surrogate * torch.where(counted, token_weights.detach().to(logp), zero)
    kl = k3(ref_logp - logp)
    lengths = counted.sum(1).clamp(min=1)
    token_mean = torch.where(counted, surrogate - kl_coef * kl, zero).sum(1) / lengths
    kl_mean = torch.where(counted, kl.detach(), zero).sum(1) / lengths
    return ObjectiveSums(
        loss=-token_mean.sum(),
        kl=kl_mean.sum(),
        clipped=(clipped & counted).sum().to(dtype),
        tokens=counted.sum().to(dtype),
        samples=active.sum().to(dtype),
    )


def k3(delta: Tensor) -> Tensor:
    """Eq. 27: exp(delta) - delta - 1 >= 0 for delta = log pi_ref - log pi_theta, accurate where delta is tiny."""
    # expm1 keeps the digits that exp(delta) - 1 cancels; its own rounding may still fall a hair below delta.
    return (torch.expm1(delta) - delta).clamp(min=0)


def _surrogate(log_ratio: Tensor, advantages: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """min(rho A, clip(rho) A) of Eq. 26 and where the clipped term is the smaller one.

    Written as a choice, not as a minimum: exp of a huge log ratio on the side that is not chosen would make the gradient NaN.
    """
    ratio = torch.exp(log_ratio.detach())
    above = (advantages > 0) & (ratio > 1 + clip)
    below = (advantages < 0) & (ratio < 1 - clip)
    clipped = above | below
    bound = torch.where(above, torch.full_like(ratio, 1 + clip), 1 - clip)  # two plain numbers would give float32
    live = torch.exp(torch.where(clipped, torch.zeros_like(log_ratio), log_ratio))
    return torch.where(clipped, bound, live) * advantages, clipped
