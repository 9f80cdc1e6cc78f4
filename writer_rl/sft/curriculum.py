"""The order of SFT's stages: which one is on, when it ends, and at what learning rate it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from writer_rl.config import CurriculumStage

WINDOW = 30
"""`until_accuracy` is compared with the mean of so many steps' accuracies."""


@dataclass
class CurriculumProgress:
    """How far a run is in its curriculum; saved with every checkpoint.

    Example: ``CurriculumProgress(stage=2, step=40, place=(1, 3), recent=[...])``: stage 2 after 40 of its steps, batch 3 of pool
    1 comes next.
    """

    stage: int = 0
    step: int = 0
    place: tuple[int, int] = (0, 0)
    recent: list[float] = field(default_factory=list)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> CurriculumProgress:
        """Inverse of `dataclasses.asdict`, from JSON too."""
        return cls(fields["stage"], fields["step"], tuple(fields["place"]), list(fields["recent"]))


class Curriculum:
    """Stages with known lengths, and the progress through them.

    stages: each with `max_steps`. Example:
        curriculum = Curriculum(stages)
        while curriculum.stage is not None:
            rate = curriculum.lr_factor()
            ...                                    # one optimizer step
            curriculum.advance(accuracy)           # True when that ended the stage
    """

    def __init__(self, stages: Sequence[CurriculumStage], progress: CurriculumProgress | None = None) -> None:
        if any(stage.max_steps is None for stage in stages):
            raise ValueError("every stage needs max_steps here")
        self.stages = tuple(stages)
        self._lengths = [stage.max_steps or 0 for stage in stages]
        self.progress = progress or CurriculumProgress()

    @property
    def stage(self) -> CurriculumStage | None:
        """The stage that is on; None after the last."""
        return self.stages[self.progress.stage] if self.progress.stage < len(self.stages) else None

    def lr_factor(self) -> float:
        """The factor of the learning rates at this step: `lr_factor`, falling to `lr_final_factor` if there is one."""
        stage = self._current()
        if stage.lr_final_factor is None:
            return stage.lr_factor
        done = self.progress.step / max(1, self._lengths[self.progress.stage] - 1)
        return stage.lr_factor + (stage.lr_final_factor - stage.lr_factor) * done

    def advance(self, accuracy: float) -> bool:
        """Count a step of the current stage; True if the stage ended with it and the next is on."""
        stage, progress = self._current(), self.progress
        progress.step += 1
        progress.recent = [*progress.recent, accuracy][-WINDOW:]
        learnt = (
            stage.until_accuracy is not None and len(progress.recent) == WINDOW and fmean(progress.recent) >= stage.until_accuracy
        )
        if not learnt and progress.step < self._lengths[progress.stage]:
            return False
        self.progress = CurriculumProgress(stage=progress.stage + 1)
        return True

    def remaining(self) -> int:
        """Steps left at most."""
        return sum(self._lengths[self.progress.stage :]) - self.progress.step

    def _current(self) -> CurriculumStage:
        if self.stage is None:
            raise RuntimeError("the curriculum is finished")
        return self.stage
