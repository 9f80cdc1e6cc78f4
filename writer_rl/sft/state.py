"""What an SFT run has to remember besides parameters and optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from writer_rl.run.state import RunState
from writer_rl.sft.curriculum import CurriculumProgress


@dataclass
class SFTState(RunState):
    """Decides the rest of a run; saved with every checkpoint.

    Example: ``SFTState(round=240, progress=CurriculumProgress(stage=1, step=40, place=(1, 3)))``: 240 steps, 40 of them in the
    second stage, where batch 3 of pool 1 comes next.
    """

    skipped: int = 0
    """Steps so far whose loss or gradient was not finite."""
    progress: CurriculumProgress = field(default_factory=CurriculumProgress)

    def count(self, taken: bool) -> None:
        """One more step is over."""
        self.round += 1
        self.skipped += not taken
        self.consecutive_skips = 0 if taken else self.consecutive_skips + 1

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; reads checkpoints of 0.1 too, which called `consecutive_skips` otherwise."""
        skips = saved.get("consecutive_skips", saved.get("consecutive", 0))
        progress = CurriculumProgress.from_dict(saved["progress"])
        return super().from_dict({**saved, "progress": progress, "consecutive_skips": skips})
