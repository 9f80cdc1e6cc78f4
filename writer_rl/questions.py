"""Who asks and judges the terminal questions in training: the frozen query pipeline, as a configuration says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from memory_env.query.backends import open_backend
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from rewards.qa_gain import QAGain, QAGroup, qa_gain
from writer_rl.config import QASection

QAGains = Callable[[Sequence[QAGroup]], list[QAGain]]
"""The terminal gain (Eq. 8) of each group, in their order. May raise `rewards.qa_gain.QAFailure`."""


def open_questions(settings: QASection, folder: Path) -> QAGains | None:
    """The questions' asker; None where `reward.qa.enabled` is false. An endpoint's answers are cached under `folder`.

    Raises DataError for an endpoint without a model, address or key.
    """
    if not settings.enabled:
        return None
    backend = open_backend(
        settings.backend,
        model=settings.model,
        base_url=settings.base_url,
        concurrency=settings.concurrency,
        deadline_s=settings.deadline_s,
        cache=folder / "responses.sqlite",
    )
    pipeline = QueryPipeline(QueryBudgets(s1_k=settings.s1_k, s2_k=settings.s2_k, source_k=settings.source_k))

    def gains(groups: Sequence[QAGroup]) -> list[QAGain]:
        return qa_gain(
            groups,
            pipeline,
            backend.answerer,
            backend.judge,
            max_questions=settings.max_questions,
            concurrency=backend.concurrency,
            max_failure_rate=settings.max_failure_rate,
        )

    return gains
