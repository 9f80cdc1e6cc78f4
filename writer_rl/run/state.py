"""What a run of any kind has to remember besides parameters and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass
class RunState:
    """Saved with every checkpoint; decides, with the configuration, how the run goes on.

    Example: ``RunState(round=12, best=0.61, evaluations_without_best=2)``: the best of the evaluations so far was the third last.
    """

    round: int = 0
    """Rounds (SFT: steps) finished."""
    consecutive_skips: int = 0
    """Rounds (steps) in a row without an optimizer step."""
    best: float | None = None
    evaluations_without_best: int = 0
    wandb_id: str | None = None

    def evaluated(self, value: float | None) -> bool:
        """Take note of an evaluation; whether it is the best so far."""
        is_best = value is not None and (self.best is None or value > self.best)
        self.best = value if is_best else self.best
        self.evaluations_without_best = 0 if is_best else self.evaluations_without_best + 1
        return is_best

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; what an older version did not save has its default, and other keys are left alone."""
        return cls(**{field.name: saved[field.name] for field in fields(cls) if field.name in saved})
