"""What a GRPO run has to remember besides parameters and optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field

from writer_rl.grpo.update import UpdateReport
from writer_rl.run.state import RunState


@dataclass
class GRPOState(RunState):
    """Decides the rest of a run; saved with every checkpoint.

    Example: ``GRPOState(round=12, policy_version=11, optimizer_steps=21, skips={"kl": 2})``: one round took no step, another
    only its first. The network order is a function of the round.
    """

    policy_version: int = 0
    optimizer_steps: int = 0
    skips: dict[str, int] = field(default_factory=dict)
    schedule_steps: int = 0
    """Rounds that the learning rate's schedule was begun over, whatever `trainer.steps` is since; 0: not known."""
    reference: str = ""
    """Where the frozen policy of the KL term came from."""
    reference_digest: str = ""
    """Hash of its weights: a path may hold others by the time of a resume. "": not known (saved by an older version)."""
    first_mismatch: float | None = None
    """``rollout/mismatch_mean`` of the first round that has one: what later rounds are held against."""
    frozen: dict[str, str] = field(default_factory=dict)
    """Hashes of the terminal questions, their budgets, prompts and judge."""

    def count(self, update: UpdateReport) -> None:
        """One more round is over. Any optimizer step makes a new policy version and ends a row of skips."""
        self.round += 1
        self.optimizer_steps += update.steps
        self.policy_version += update.steps > 0
        if update.skipped:
            self.skips[update.skipped] = self.skips.get(update.skipped, 0) + 1
        self.consecutive_skips = 0 if update.steps else self.consecutive_skips + 1
