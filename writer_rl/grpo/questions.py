"""Who asks and judges the terminal questions in training: the frozen query pipeline, as a configuration says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memory_env import Network
from memory_env.query.answer.backends import open_backend
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from rewards.qa_gain import QAGain, QAGroup, qa_gain
from writer_rl.config import QASection
from writer_rl.evaluation.frozen import frozen_hashes


class Questions:
    """Asks a group's questions; calling it gives the terminal gain (Eq. 8) of each group, in their order.

    cache: the file of an endpoint's responses, so that a round begun again asks nothing twice.
    Raises DataError for an endpoint without a model, address or key; a call may raise `rewards.qa_gain.QAFailure`.

    Example: ``Questions(config.reward.qa, run / "responses.sqlite")([QAGroup(network_id, questions, final_states)])[0].gains``
    """

    def __init__(self, settings: QASection, cache: Path) -> None:
        self._settings = settings
        self._backend = open_backend(
            settings.backend,
            model=settings.model,
            base_url=settings.base_url,
            concurrency=settings.concurrency,
            deadline_s=settings.deadline_s,
            cache=cache,
        )
        budgets = QueryBudgets(s1_k=settings.s1_k, s2_k=settings.s2_k, source_k=settings.source_k)
        self._pipeline = QueryPipeline(budgets)

    def __call__(self, groups: Sequence[QAGroup]) -> list[QAGain]:
        return qa_gain(
            groups,
            self._pipeline,
            self._backend.answerer,
            self._backend.judge,
            max_questions=self._settings.max_questions,
            concurrency=self._backend.concurrency,
            max_failure_rate=self._settings.max_failure_rate,
        )

    def frozen(self, networks: Iterable[Network]) -> dict[str, str]:
        """Hashes of questions, prompts, budgets and judge: what has to stay the same over a whole run."""
        return frozen_hashes(networks, self._pipeline, self._backend.answerer, self._backend.judge)
