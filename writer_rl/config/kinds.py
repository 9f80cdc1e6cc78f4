"""The three kinds of configuration: one for each script that reads one."""

from __future__ import annotations

from pydantic import NonNegativeInt

from writer_rl.config.section import SettingsSection, Text
from writer_rl.config.sections import (
    DataSection,
    EvaluationSection,
    ModelSection,
    RewardSection,
    RolloutSection,
    TrackingSection,
)
from writer_rl.config.trainers import GRPOTrainer, SFTTrainer, TrainerSection


class SharedConfig(SettingsSection):
    """The sections of every kind."""

    model: ModelSection = ModelSection()
    """The Writer."""
    data: DataSection = DataSection()
    """Which conversations, and how they are shown to the Writer."""
    rollout: RolloutSection = RolloutSection()
    """How completions are sampled."""
    reward: RewardSection = RewardSection()
    """What a step is worth."""
    evaluation: EvaluationSection = EvaluationSection()
    """Evaluation during training and after."""
    tracking: TrackingSection = TrackingSection()
    """Where a run's figures go."""
    seed: NonNegativeInt = 0
    """Determines every random choice of the run."""
    output_dir: Text = "runs/writer"
    """The run directory."""


class TrainingConfig(SharedConfig):
    """What training adds."""

    trainer: TrainerSection
    """How it trains."""


class SFTConfig(TrainingConfig):
    """`launch/sft.py`."""

    trainer: SFTTrainer = SFTTrainer()
    """How SFT trains."""


class GRPOConfig(TrainingConfig):
    """`launch/grpo.py`."""

    trainer: GRPOTrainer = GRPOTrainer()
    """How GRPO trains."""


class EvaluationConfig(SharedConfig):
    """`launch/evaluate.py`: no trainer."""


KINDS: dict[str, type[SharedConfig]] = {"sft": SFTConfig, "grpo": GRPOConfig, "evaluate": EvaluationConfig}
"""The name of a kind, which is also the name of its block in a configuration file, and its type."""
