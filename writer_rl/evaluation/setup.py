"""From a configuration to networks, backend and query pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_env import Network, check_disjoint
from memory_env.datafile import DataError
from memory_env.ingest.formats import read_networks
from memory_env.loader import part_of_prepared
from memory_env.query.answer.backends import AnswerBackend, open_backend
from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
from memory_env.query.answer.response_cache import ResponseCache
from memory_env.query.answer.token_usage import TokenLedger
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.retrieve.dense import Embedder, minilm, minilm_installed
from writer_rl.config import ConfigError, EvaluationConfig, resolve
from writer_rl.evaluation.variants import Variant
from writer_rl.train.data import load_sources

CACHE_FILE = "responses.sqlite"


def budgets_of(config: EvaluationConfig) -> QueryBudgets:
    settings = config.evaluation
    return QueryBudgets(
        s1_recall=max(settings.s1_recall, settings.s1_k),
        s1_k=settings.s1_k,
        s2_k=settings.s2_k,
        source_k=settings.source_k,
        ask=settings.ask,
    )


def networks_of(config: EvaluationConfig, paths: Sequence[str] = ()) -> list[Network]:
    """The configured networks, or those of `paths` in any known format; only networks with questions count.

    Raises DataError when none has a question.
    """
    if paths:
        networks = [network for path in paths for network in read_networks(part_of_prepared(path, "heldout"))]
        repeated = {network.network_id for network in networks if [n.network_id for n in networks].count(network.network_id) > 1}
        if repeated:
            raise DataError(f"--networks: network {min(repeated)} appears twice; name each source once")
    else:
        networks = load_sources(getattr(config.data, config.evaluation.networks))
        if config.evaluation.networks == "heldout":
            present = [source for source in config.data.train if source.startswith("corpus:") or resolve(source).exists()]
            check_disjoint(load_sources(present), networks)
    asked = [network for network in networks if network.questions]
    if not asked:
        raise DataError("no network with questions: nothing to evaluate")
    return asked


@dataclass(slots=True)
class Setup:
    """What every Writer of a call shares."""

    config: EvaluationConfig
    backend: AnswerBackend
    client: Callable[[str], EndpointClient]
    _embedder: Embedder | None = None

    def pipeline(self, variant: Variant) -> QueryPipeline:
        dense = self.config.evaluation.retrieval == "dense" if variant.dense is None else variant.dense
        if dense and self._embedder is None:
            self._embedder = minilm()
        parts: dict[str, Any] = {}
        if self.config.evaluation.query == "openai":
            from memory_env.query.prompted import PromptedProjector, PromptedSelector, PromptedSufficiency

            client = self.client(self.config.evaluation.model or "")
            parts = {
                "projector": PromptedProjector(client),
                "selector": PromptedSelector(client),
                "sufficiency": PromptedSufficiency(client),
            }
        return QueryPipeline(variant.budgets, self._embedder if dense else None, **parts)


def judging_line(config: EvaluationConfig) -> str:
    """Who answers and judges, for the console.

    Raises ConfigError where the reward asks a model and the evaluation says nothing of its own, or names a model nobody asks:
    figures of the offline judge must not pass for a model's.
    """
    settings, reward = config.evaluation, config.reward.qa
    if settings.backend == "openai":
        return (
            f"answers by {settings.model}, verdicts by {settings.judge_model or settings.model}, retrieval {settings.retrieval}"
        )
    if settings.judge_model or (settings.model and settings.query == "rules"):
        raise ConfigError(
            f"evaluation.backend: offline never asks {settings.judge_model or settings.model}; set evaluation.backend openai, or "
            "no evaluation.model"
        )
    line = "answers and verdicts by the offline rules, no model"
    if not reward.enabled or reward.backend == "offline":
        return line
    if "backend" not in settings.model_fields_set:
        raise ConfigError(
            "evaluation.backend: the reward's questions are judged by a model (reward.qa.backend openai), the evaluation's would "
            "be by the offline rules; set evaluation.backend openai and evaluation.model, or evaluation.backend offline"
        )
    return f"WARNING: {line}, though the reward's were by {reward.model}: set evaluation.backend openai and evaluation.model"


def open_setup(config: EvaluationConfig, output: Path) -> Setup:
    """Opens the backend; the response cache lies in the output folder."""
    settings, ledger = config.evaluation, TokenLedger()
    backend = open_backend(
        settings.backend,
        model=settings.model,
        judge_model=settings.judge_model,
        base_url=settings.base_url,
        concurrency=settings.concurrency,
        deadline_s=settings.deadline_s,
        cache=output / CACHE_FILE,
        ledger=ledger,
    )
    stores: list[ResponseCache] = []

    def client(model: str) -> EndpointClient:
        stores[:] = stores or [ResponseCache(output / CACHE_FILE)]
        given = EndpointSettings(
            model,
            settings.base_url,
            concurrency=settings.concurrency,
            deadline_s=settings.deadline_s,
            max_tokens=max(1024, config.rollout.max_new_tokens),
        )
        return EndpointClient(given, stores[0], ledger).check()

    if settings.query == "openai" and not settings.model:
        raise DataError("evaluation.query is openai: set evaluation.model")
    return Setup(config, backend, client)


def dense_available() -> bool:
    return minilm_installed()
