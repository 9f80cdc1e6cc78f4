"""How much each retrieval path may return. Frozen and hashed, since a score only compares under equal budgets."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from memory_env.datafile import DataError


@dataclass(frozen=True, slots=True)
class QueryBudgets:
    """Appendix A's fixed query budgets; the two tracks never share one.

    `s1_recall` messages (at least `s1_k`) are recalled, expanded and cut to `s1_k`; `s1_all` takes every message instead
    (full context); `ask` allows one supplementary recall of `ask_recall`. `s2_k` records (chains in full mode) per row with
    similarity of at least `s2_floor`, `source_k` more that the row's member said about others; an empty row takes a message of
    similarity `fallback_floor` or stays empty. `s1`, `s2_group`, `s2_person` switch tracks and views off (Table 22).
    """

    s1_recall: int = 40
    s1_k: int = 10
    expand_rounds: int = 2
    expand_anchors: int = 2
    expand_window: int = 5
    ask: bool = False
    ask_recall: int = 20
    s2_k: int = 2
    source_k: int = 1
    s2_floor: float = 0.30
    fallback_floor: float = 0.25
    s1_all: bool = False
    s1: bool = True
    s2_person: bool = True
    s2_group: bool = True

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name.endswith("floor") and not 0.0 <= value <= 1.0:
                raise DataError(f"query budget {name} must be between 0 and 1, got {value}")
            if value < 0:
                raise DataError(f"query budget {name} must not be negative, got {value}")

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of all settings."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


UNLIMITED = QueryBudgets(s1_all=True, s2_k=10**9, source_k=10**9, s2_floor=0.0)
"""Full evidence: everything the state holds, for the upper reference."""
