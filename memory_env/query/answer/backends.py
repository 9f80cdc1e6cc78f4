"""Opening a backend from plain settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.query.answer.offline import OfflineAnswerer, OfflineJudge
from memory_env.query.answer.token_usage import TokenLedger
from memory_env.query.protocol import Answerer, Judge

OFFLINE, ENDPOINT = "offline", "openai"


@dataclass(frozen=True, slots=True)
class AnswerBackend:
    """Who answers and judges. `concurrency` is how many questions may be in flight (1 offline: it is pure computation)."""

    answerer: Answerer
    judge: Judge
    concurrency: int
    ledger: TokenLedger


def open_backend(
    kind: str,
    *,
    model: str | None = None,
    judge_model: str | None = None,
    base_url: str | None = None,
    concurrency: int = 8,
    deadline_s: float = 300.0,
    cache: str | Path | None = None,
    ledger: TokenLedger | None = None,
) -> AnswerBackend:
    """`kind` "offline" (ignores the rest) or "openai"; `cache` is the file of the persistent response cache.

    Raises DataError without a model name, or without a key or base URL in settings and environment; EndpointUnusable at
    once where no server answers at the address, or the key is refused.
    """
    ledger = ledger or TokenLedger()
    if kind == OFFLINE:
        return AnswerBackend(OfflineAnswerer(), OfflineJudge(), 1, ledger)
    if kind != ENDPOINT:
        raise DataError(f"backend {kind!r}: choose {OFFLINE} or {ENDPOINT}")
    if not model:
        raise DataError("the openai backend needs a model name: set reward.qa.model or evaluation.model")
    from memory_env.query.answer.endpoint import EndpointAnswerer, EndpointJudge
    from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
    from memory_env.query.answer.response_cache import ResponseCache

    store = ResponseCache(cache) if cache else None

    def client(name: str) -> EndpointClient:
        settings = EndpointSettings(name, base_url, concurrency=concurrency, deadline_s=deadline_s)
        return EndpointClient(settings, store, ledger).check()

    return AnswerBackend(EndpointAnswerer(client(model)), EndpointJudge(client(judge_model or model)), concurrency, ledger)
