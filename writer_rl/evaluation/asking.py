"""Who asks a memory, from settings: one builder for the evaluation and for the reward's terminal questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.query.answer.backends import ENDPOINT, OFFLINE, AnswerBackend, open_backend
from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
from memory_env.query.answer.response_cache import ResponseCache
from memory_env.query.answer.token_usage import TokenLedger
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.retrieve.dense import Embedder, minilm
from writer_rl.config import AskingSection, ConfigError


def budgets_of(settings: AskingSection) -> QueryBudgets:
    """The budgets as a query pipeline takes them; at least as many messages are recalled as are kept."""
    return QueryBudgets(
        s1_recall=max(settings.s1_recall, settings.s1_k),
        s1_k=settings.s1_k,
        s2_k=settings.s2_k,
        source_k=settings.source_k,
        ask=settings.ask,
    )


@dataclass
class Asking:
    """Backend and query pipelines under one section of settings. `open_asking` makes one.

    Example: ``open_asking(config.evaluation, "evaluation", folder / "responses.sqlite").pipeline().evidence(question, index)``
    """

    settings: AskingSection
    backend: AnswerBackend
    cache: Path

    def pipeline(self, budgets: QueryBudgets | None = None, dense: bool | None = None) -> QueryPipeline:
        """The configured pipeline; `budgets` and `dense` where a table's variant has others."""
        dense = self.settings.retrieval == "dense" if dense is None else dense
        return QueryPipeline(budgets or budgets_of(self.settings), self._embedder if dense else None, **self._prompted)

    def client(self, model: str, max_tokens: int = 1024) -> EndpointClient:
        """A client of the endpoint for another model, with the same cache and ledger."""
        settings = self.settings
        given = EndpointSettings(
            model,
            settings.base_url,
            concurrency=settings.concurrency,
            deadline_s=settings.deadline_s,
            max_tokens=max_tokens,
        )
        return EndpointClient(given, self._store, self.backend.ledger).check()

    @property
    def concurrency(self) -> int:
        """How many questions may be in flight; 1 where all is computed here."""
        return self.settings.concurrency if self._prompted else self.backend.concurrency

    @cached_property
    def _store(self) -> ResponseCache:
        return ResponseCache(self.cache)

    @cached_property
    def _embedder(self) -> Embedder:
        return minilm()

    @cached_property
    def _prompted(self) -> dict[str, Any]:
        """The parts that a model plays; {} where rules do."""
        settings = self.settings
        if settings.query != ENDPOINT:
            return {}
        from memory_env.query.prompted import PromptedProjector, PromptedSelector, PromptedSufficiency

        client = self.client(settings.query_model or settings.model or "")
        return {
            "projector": PromptedProjector(client),
            "selector": PromptedSelector(client),
            "sufficiency": PromptedSufficiency(client),
        }


def open_asking(settings: AskingSection, section: str, cache: Path) -> Asking:
    """Opens the backend. section: what the settings are called, for messages. cache: the file of an endpoint's responses.

    Raises ConfigError or DataError for a model that is missing or that nobody asks, and what `open_backend` raises.
    """
    require_models(settings, section)
    backend = open_backend(
        settings.backend,
        model=settings.model,
        judge_model=settings.judge_model,
        base_url=settings.base_url,
        concurrency=settings.concurrency,
        deadline_s=settings.deadline_s,
        cache=cache,
        ledger=TokenLedger(),
    )
    return Asking(settings, backend, cache)


def require_models(settings: AskingSection, section: str) -> None:
    """Nobody is asked without a name, and no name is given in vain: DataError and ConfigError."""
    if settings.backend == ENDPOINT and not settings.model:
        raise DataError(f"the openai backend needs a model name: set {section}.model")
    if settings.query == ENDPOINT and not (settings.query_model or settings.model):
        raise DataError(f"{section}.query is openai: set {section}.query_model or {section}.model")
    if settings.query != ENDPOINT and settings.query_model:
        raise ConfigError(
            f"{section}.query: rules never ask {settings.query_model}; set {section}.query openai, or no {section}.query_model"
        )
    unasked = settings.judge_model or (settings.model if settings.query != ENDPOINT else None)
    if settings.backend == OFFLINE and unasked:
        raise ConfigError(f"{section}.backend: offline never asks {unasked}; set {section}.backend openai, or no {section}.model")


def who_answers(settings: AskingSection) -> str:
    """Who answers and judges, for the console."""
    if settings.backend == ENDPOINT:
        return (
            f"answers by {settings.model}, verdicts by {settings.judge_model or settings.model}, retrieval {settings.retrieval}"
        )
    return "answers and verdicts by the offline rules, no model"


def asked_otherwise(reward: AskingSection, evaluation: AskingSection) -> str | None:
    """How the reward's questions are asked otherwise than the evaluation's, in one line without a subject; None if they are not.

    Example: "s1_k 2 (evaluation: 10), judge offline rules (evaluation: big)"
    """
    ours, theirs = _effective(reward), _effective(evaluation)
    found = [f"{name} {ours[name]} (evaluation: {theirs[name]})" for name in ours if ours[name] != theirs[name]]
    return ", ".join(found) or None


def _effective(settings: AskingSection) -> dict[str, str]:
    """What decides evidence, answers and verdicts, by name: settings that nothing reads are left out."""
    budgets = budgets_of(settings)
    asks = settings.backend == ENDPOINT
    prompted = settings.query == ENDPOINT
    return {
        "s1_recall": str(budgets.s1_recall),
        "s1_k": str(budgets.s1_k),
        "s2_k": str(budgets.s2_k),
        "source_k": str(budgets.source_k),
        "ask": "on" if budgets.ask else "off",
        "retrieval": settings.retrieval,
        "query": str(settings.query_model or settings.model) if prompted else "rules",
        "answers": str(settings.model) if asks else "offline rules",
        "judge": str(settings.judge_model or settings.model) if asks else "offline rules",
        "base_url": (settings.base_url or "OPENAI_BASE_URL") if asks or prompted else "none",
    }
