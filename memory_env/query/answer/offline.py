"""The default backend: deterministic, no network, no key. docs/evaluation.md says what it can and can't tell."""

from memory_env.query.answer.offline_answer import OfflineAnswerer
from memory_env.query.answer.offline_judge import OfflineJudge

__all__ = ["OfflineAnswerer", "OfflineJudge"]
