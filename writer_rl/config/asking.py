"""How a memory is asked: what evaluation and the reward's terminal questions have in common."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from writer_rl.config.section import Address, SettingsSection


class AskingSection(SettingsSection):
    """Retrieval, answers and verdicts. `writer_rl.evaluation.asking` opens it, for the reward and for the evaluation alike."""

    s1_recall: PositiveInt = 40
    """Verbatim messages recalled before selection."""
    s1_k: PositiveInt = 10
    """Verbatim messages per question."""
    s2_k: PositiveInt = 2
    """Derived records per row."""
    source_k: NonNegativeInt = 1
    """Records per row that the person said about others."""
    ask: bool = False
    """One supplementary search where the messages are not enough (Sufficiency/ASK)."""
    retrieval: Literal["lexical", "dense"] = "lexical"
    """lexical: BM25 and term overlap; dense: all-MiniLM-L6-v2 (the extra `embed`)."""
    query: Literal["rules", "openai"] = "rules"
    """Who projects, selects and checks sufficiency: deterministic rules, or the endpoint."""
    query_model: str | None = None
    """The endpoint's model for that; null: `model`."""
    backend: Literal["offline", "openai"] = "offline"
    """Who answers and judges: a deterministic offline backend, or an OpenAI-compatible endpoint."""
    model: str | None = None
    """The endpoint's model for answers (and, without `query_model`, queries)."""
    judge_model: str | None = None
    """The endpoint's model for judging; null: `model`."""
    base_url: Address | None = None
    """The endpoint; null: the OPENAI_BASE_URL variable. The key comes from OPENAI_API_KEY alone."""
    concurrency: PositiveInt = 8
    """Requests in flight at once."""
    deadline_s: PositiveFloat = 300.0
    """Seconds for one question, retries included."""
    max_failure_rate: float = Field(default=0.2, ge=0, le=1)
    """The share of the questions that may stay without a verdict; with more the work stops, resumable."""
