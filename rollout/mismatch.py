"""How far the sampler's distribution is from the trainer's: measured and reported, by default not corrected.

Two things differ. *Mismatch*: both compute the same raw log-probability (temperature 1, full vocabulary) with other
kernels; it should be near zero, and growth over updates means stale weights. *Sampling bias*: tokens are drawn at
temperature 0.8 within a top-p nucleus, while the objective (Eq. 25) uses the raw policy on both sides of its ratio.
The paper's objective leaves that bias in; `rollout.sampling_bias` says how large it is, `trainer.ratio: sampler` takes it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Statistics over sampled tokens, with d = log p(trainer) - log p(engine), both raw.

    ``mean`` and ``max`` of abs(d) in nats; ``k3`` = mean of exp(d) - d - 1 >= 0, an estimate of KL(engine || trainer);
    ``ratio_mean``, ``ratio_min``, ``ratio_max`` of exp(d), before any masking or truncation. Tokens whose engine
    value is not finite are left out of all of them and counted in ``dropped``.

    Example: equal log-probabilities give ``Mismatch(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, tokens=n, dropped=0)``.
    """

    mean: float
    max: float
    k3: float
    ratio_mean: float
    ratio_min: float
    ratio_max: float
    tokens: int
    dropped: int

    def to_metrics(self, prefix: str = "rollout/mismatch") -> dict[str, float]:
        """Flat metrics: ``{"rollout/mismatch_mean": ..., "rollout/mismatch_k3": ...}``."""
        return {f"{prefix}_{name}": float(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class MismatchSums:
    """`Mismatch` before its division: what ranks send each other instead of their tokens.

    Example: ``sum((MismatchSums.of([-1.0], [-1.1]), MismatchSums.of([-2.0], [-2.0])), MismatchSums()).result().mean`` is 0.05.
    """

    absolute: float = 0.0
    largest: float = 0.0
    k3: float = 0.0
    ratio: float = 0.0
    ratio_min: float = math.inf
    ratio_max: float = -math.inf
    tokens: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, engine_logprobs: Any, trainer_logprobs: Any, mask: Any = None) -> MismatchSums:
        """Of the same tokens under both; arguments as in `mismatch`."""
        engine, trainer = _flat(engine_logprobs), _flat(trainer_logprobs)
        if engine.shape != trainer.shape:
            raise ValueError(f"engine has {engine.size} log-probabilities, trainer {trainer.size}: not of the same tokens")
        if mask is not None:
            chosen = _flat(mask) != 0
            engine, trainer = engine[chosen], trainer[chosen]
        finite = np.isfinite(engine)
        d = trainer[finite] - engine[finite]
        dropped = int(engine.size - d.size)
        if not d.size:
            return cls(dropped=dropped)
        ratio = np.exp(d)
        return cls(
            absolute=float(np.abs(d).sum()),
            largest=float(np.abs(d).max()),
            k3=float((np.expm1(d) - d).sum()),  # expm1: exp(d) - 1 - d cancels to noise for tiny d
            ratio=float(ratio.sum()),
            ratio_min=float(ratio.min()),
            ratio_max=float(ratio.max()),
            tokens=int(d.size),
            dropped=dropped,
        )

    def __add__(self, other: MismatchSums) -> MismatchSums:
        return MismatchSums(
            self.absolute + other.absolute,
            max(self.largest, other.largest),
            self.k3 + other.k3,
            self.ratio + other.ratio,
            min(self.ratio_min, other.ratio_min),
            max(self.ratio_max, other.ratio_max),
            self.tokens + other.tokens,
            self.dropped + other.dropped,
        )

    def result(self) -> Mismatch:
        """The statistics; those of equal log-probabilities where there is no token."""
        if not self.tokens:
            return Mismatch(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, tokens=0, dropped=self.dropped)
        n = self.tokens
        means = self.absolute / n, self.largest, self.k3 / n, self.ratio / n
        return Mismatch(*means, self.ratio_min, self.ratio_max, tokens=n, dropped=self.dropped)


def mismatch(engine_logprobs: Any, trainer_logprobs: Any, mask: Any = None) -> Mismatch:
    """Compare raw log-probabilities of the same tokens.

    Args:
        engine_logprobs, trainer_logprobs: arrays or tensors of one shape, or (ragged) lists of lists.
        mask: same shape, nonzero on the tokens that count; without it all do.
    """
    return MismatchSums.of(engine_logprobs, trainer_logprobs, mask).result()


def truncated_importance(engine_logprobs: torch.Tensor, trainer_logprobs: torch.Tensor, cap: float = 2.0) -> torch.Tensor:
    """Per-token weights min(exp(trainer - engine), cap) that correct for the mismatch; same shape, no gradient.

    Optional and off by default (the paper's objective has no such factor). It corrects kernels, not the sampling bias:
    both sides are raw. A token without a finite engine value gets weight 1.
    """
    if cap < 1:
        raise ValueError(f"cap is {cap}; below 1 it would shrink tokens whose probabilities agree")
    d = (trainer_logprobs - engine_logprobs).detach()
    return torch.where(torch.isfinite(d), d, torch.zeros_like(d)).exp().clamp(max=cap)


def processed_logprobs(logits: torch.Tensor, tokens: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """Log-probabilities under the distribution tokens were drawn from: temperature, top-p nucleus, renormalised.

    Args:
        logits: [..., V]. tokens: [...].

    Returns:
        [...]; minus infinity for a token outside the nucleus.
    """
    scaled = torch.log_softmax(logits.float() / temperature, dim=-1)
    ordered, order = scaled.sort(dim=-1, descending=True, stable=True)
    mass = ordered.double().exp()
    kept = (mass.cumsum(-1) - mass) < top_p
    nucleus = torch.zeros_like(kept).scatter(-1, order, kept)
    log_mass = scaled.masked_fill(~nucleus, float("-inf")).logsumexp(-1)
    inside = nucleus.gather(-1, tokens[..., None])[..., 0]
    value = scaled.gather(-1, tokens[..., None])[..., 0] - log_mass
    return value.masked_fill(~inside, float("-inf"))


def _flat(values: Any) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        return values.detach().double().cpu().numpy().ravel()
    if isinstance(values, Sequence) and values and isinstance(values[0], Sequence | np.ndarray | torch.Tensor):
        return np.concatenate([_flat(row) for row in values])
    return np.asarray(values, dtype=np.float64).ravel()
