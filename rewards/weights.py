"""The numbers of the reward, with the paper's values as defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


class WeightError(ValueError):
    """A weight or threshold that makes no sense; the message names it and says what is allowed."""


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """Every weight and threshold of Eq. 7-21. Each is a finite number; those of one convex sum add up to 1.

    Example: `RewardWeights(qa=0.0)` trains without the terminal question term;
    `RewardWeights(macro=1.0, worst=0.0)` without the worst-owner term.
    """

    # Eq. 13: token F1 and sequence ratio of one pair of contents (sum 1)
    token: float = 0.60
    sequence: float = 0.40
    # Eq. 14: below this similarity a pair does not match
    threshold: float = 0.50
    # Eq. 7: mean and minimum over the owners (sum 1)
    macro: float = 0.80
    worst: float = 0.20
    # Eq. 17: old and new side of an UPDATE edge (sum 1)
    chain_old: float = 0.50
    chain_new: float = 0.50
    # Eq. 18: state and edges in R_mem (sum 1)
    state: float = 0.80
    chain: float = 0.20
    # Eq. 19: parts of R_valid (sum 1)
    json: float = 0.25
    schema: float = 0.35
    dup: float = 0.25
    stop: float = 0.15
    # Eq. 21: what each structural fault costs
    invalid_json: float = 0.25
    invalid_action: float = 0.15
    too_many_actions: float = 0.10
    length_limit: float = 0.10
    # Eq. 9: parts of the return, and the discount of the terminal one
    valid: float = 0.20
    mem: float = 0.45
    qa: float = 0.35
    gamma: float = 0.95

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                raise WeightError(f"{field.name}: {value!r} is not a finite number >= 0")
        for name in ("threshold", "gamma"):
            if getattr(self, name) > 1:
                raise WeightError(f"{name}: {getattr(self, name)!r} is above 1; give a number in [0, 1]")
        for names in _CONVEX:
            total = math.fsum(getattr(self, name) for name in names)
            if abs(total - 1) > 1e-9:
                raise WeightError(f"{' + '.join(names)}: add up to {total:.6g}; they are parts of one whole, make it 1")


_CONVEX = (
    ("token", "sequence"),
    ("macro", "worst"),
    ("chain_old", "chain_new"),
    ("state", "chain"),
    ("json", "schema", "dup", "stop"),
)
PAPER = RewardWeights()
