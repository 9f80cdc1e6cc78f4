"""Typed configuration: YAML files plus dotted overrides, checked before anything heavy is imported."""

from writer_rl.config.asking import AskingSection
from writer_rl.config.kinds import KINDS, EvaluationConfig, GRPOConfig, SFTConfig, SharedConfig, TrainingConfig
from writer_rl.config.loading import ConfigError, config_keys, help_text, load_config, parse_overrides, to_yaml
from writer_rl.config.section import DEFAULT_PROMPT, ROOT, resolve
from writer_rl.config.sections import (
    DataSection,
    EvaluationSection,
    LoRASection,
    ModelSection,
    QASection,
    RewardSection,
    RolloutSection,
    TrackingSection,
)
from writer_rl.config.trainers import CurriculumStage, GRPOTrainer, SFTTrainer, TrainerSection

__all__ = [
    "DEFAULT_PROMPT",
    "KINDS",
    "ROOT",
    "AskingSection",
    "ConfigError",
    "CurriculumStage",
    "DataSection",
    "EvaluationConfig",
    "EvaluationSection",
    "GRPOConfig",
    "GRPOTrainer",
    "LoRASection",
    "ModelSection",
    "QASection",
    "RewardSection",
    "RolloutSection",
    "SFTConfig",
    "SFTTrainer",
    "Section",
    "SharedConfig",
    "TrackingSection",
    "TrainerSection",
    "TrainingConfig",
    "config_keys",
    "help_text",
    "load_config",
    "parse_overrides",
    "resolve",
    "to_yaml",
]
