"""What model calls cost: tokens per stage, as the paper's Tables 9-12 count them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass

STAGES = ("write", "project", "select", "sufficiency", "answer", "judge")
NOT_IN_TOTAL = "judge"


@dataclass(frozen=True, slots=True)
class StageUsage:
    """`calls` that were answered (by the model or from the cache), `cached` of them from the cache, and the tokens of all of
    them.

    Cached answers count with their original tokens.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: StageUsage) -> StageUsage:
        return StageUsage(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


class TokenLedger:
    """Thread-safe sums per stage."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[str, StageUsage] = {}

    def add(self, stage: str, input_tokens: int, output_tokens: int, cached: bool = False) -> None:
        with self._lock:
            used = StageUsage(1, int(cached), input_tokens, output_tokens)
            self._stages[stage] = self._stages.get(stage, StageUsage()).plus(used)

    def stages(self) -> dict[str, StageUsage]:
        with self._lock:
            return dict(self._stages)


def table_row(stages: Mapping[str, StageUsage], questions: int) -> dict[str, float]:
    """Calls/units, Ingest in., Ingest out., QA input, Answer out., Total and Avg./question (Appendix D); the judge is left
    out.
    """
    write = stages.get("write", StageUsage())
    query = [usage for stage, usage in stages.items() if stage not in ("write", NOT_IN_TOTAL)]
    qa_input = sum(usage.input_tokens for usage in query)
    answer_output = sum(usage.output_tokens for usage in query)
    total = write.input_tokens + write.output_tokens + qa_input + answer_output
    return {
        "calls": write.calls,
        "ingest_in": write.input_tokens,
        "ingest_out": write.output_tokens,
        "qa_input": qa_input,
        "answer_out": answer_output,
        "total": total,
        "per_question": total / questions if questions else 0.0,
    }
