"""What temperature and nucleus do to the samples: how far what was drawn from is from the policy that the objective uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from rollout.mismatch import Mismatch, MismatchSums


@dataclass(frozen=True, slots=True)
class BiasSums:
    """Sums over sampled completions, with d = log p(policy, raw) - log p(processed: temperature, nucleus, renormalised).

    tokens: of d per token; its mean ratio estimates the policy's mass inside the nucleus (1 without truncation), its k3
    estimates KL(sampling distribution || policy). total, least, most, sequences: of d summed over each completion.

    Example: one completion of raw log-probabilities -0.5, -0.2 that was drawn at -0.4, -0.1: ``total`` -0.2, ``sequences`` 1.
    """

    tokens: MismatchSums = field(default_factory=MismatchSums)
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    sequences: int = 0

    @classmethod
    def of(cls, raw: Sequence[Sequence[float]], processed: Sequence[Sequence[float]]) -> BiasSums:
        """raw, processed: log-probabilities of the same completions, token by token, all finite."""
        ratios = [sum(a) - sum(b) for a, b in zip(raw, processed, strict=True)]
        if not ratios:
            return cls()
        tokens = MismatchSums.of([v for row in processed for v in row], [v for row in raw for v in row])
        return cls(tokens, math.fsum(ratios), min(ratios), max(ratios), len(ratios))

    def __add__(self, other: BiasSums) -> BiasSums:
        return BiasSums(
            self.tokens + other.tokens,
            self.total + other.total,
            min(self.least, other.least),
            max(self.most, other.most),
            self.sequences + other.sequences,
        )

    def to_metrics(self) -> dict[str, float | None]:
        """``rollout/nucleus_mass`` and ``rollout/sequence_log_ratio/{mean,min,max}`` (nats); None each without a completion."""
        found: Mismatch = self.tokens.result()
        sequences = (self.total / self.sequences, self.least, self.most) if self.sequences else (None,) * 3
        names = (f"rollout/sequence_log_ratio/{name}" for name in ("mean", "min", "max"))
        return {"rollout/nucleus_mass": found.ratio_mean if self.sequences else None, **dict(zip(names, sequences, strict=True))}
