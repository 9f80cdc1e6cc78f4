"""Evidence as prompt values: text is data, so every piece is on one line and holds no chat-template marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_env.query.members import full_name
from memory_env.query.protocol import Evidence, EvidenceItem
from memory_env.records import Record
from memory_env.text import break_control_tokens, one_line


def safe(text: str) -> str:
    return break_control_tokens(one_line(text))


def evidence_values(evidence: Evidence) -> dict[str, Any]:
    """`roster`, `mode`, `messages` and `rows` of the answer prompt."""
    return {
        "roster": [safe(full_name(name, evidence.roster)) for name in evidence.roster],
        "mode": evidence.projection.mode,
        "messages": [item_values(item) for item in evidence.messages],
        "rows": [
            {
                "owner": safe(row.owner),
                "chains": [[item_values(item) for item in chain] for chain in row.chains],
                "said": [item_values(item) for item in row.said],
                "fallback": item_values(row.fallback) if row.fallback else None,
                "empty": row.empty,
            }
            for row in evidence.rows
        ],
    }


def item_values(item: EvidenceItem | Record) -> dict[str, Any]:
    return {
        "owner": safe(item.owner),
        "source": safe(item.source),
        "ts": safe(item.ts),
        "content": safe(item.content),
        "current": getattr(item, "current", True),
        "messages": list(getattr(item, "messages", ())),
    }


def numbered(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    """Messages with the numbers 1, 2, ... by which a model refers to them."""
    return [{"number": number, **item_values(record)} for number, record in enumerate(records, 1)]
