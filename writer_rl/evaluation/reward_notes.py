"""How the reward of a trained Writer asked its questions, where that differs from the evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from writer_rl.config import EvaluationConfig, QASection
from writer_rl.evaluation.asking import asked_otherwise
from writer_rl.evaluation.checkpoint_writer import CheckpointWriter
from writer_rl.evaluation.run_settings import run_settings
from writer_rl.evaluation.writers import Writer


def reward_notes(rows: Mapping[str, Sequence[Writer]], config: EvaluationConfig) -> list[str]:
    """One line for every row whose reward asked its questions otherwise than this evaluation does.

    A row's settings are those of the run that its checkpoint lies in; a folder that has left its run says nothing.

    Example: ["RL: its reward's questions were asked with s1_k 2 (evaluation: 10)"]
    """
    notes = []
    for name, writers in rows.items():
        asked = [_asked_in_training(writer) for writer in writers if isinstance(writer, CheckpointWriter)]
        found = dict.fromkeys(asked_otherwise(reward, config.evaluation) for reward in asked if reward is not None)
        notes += [f"{name}: its reward's questions were asked with {line}" for line in found if line]
    return notes


def _asked_in_training(writer: CheckpointWriter) -> QASection | None:
    settings = run_settings(writer.folder)
    reward = None
    if settings is not None and "kl_coef" in _section(settings, "trainer"):  # SFT asks nothing
        try:
            reward = QASection.model_validate(_section(settings, "reward").get("qa") or {})
        except ValidationError:  # of a version that could say other things
            reward = None
    return reward if reward is not None and reward.enabled else None


def _section(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}
