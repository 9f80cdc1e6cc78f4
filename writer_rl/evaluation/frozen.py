"""What has to be equal for two rows to stand in one table: hashes of questions, prompts, budgets and judge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from memory_env.network import Network
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.protocol import Answerer, Judge
from memory_env.text import json_utf8

PARTS = ("questions", "prompts", "budgets", "judge")


class FrozenError(ValueError):
    """Rows that were measured under different conditions were to share a table."""


def frozen_hashes(networks: Iterable[Network], pipeline: QueryPipeline, answerer: Answerer, judge: Judge) -> dict[str, str]:
    """SHA-256 per part. `questions` covers the messages too, `prompts` retrieval and answerer, rules included."""
    query = dict(pipeline.fingerprint)
    budgets = query.pop("budgets")
    return {
        "questions": _digest([_network(network) for network in networks]),
        "prompts": _digest({**query, **answerer.fingerprint}),
        "budgets": budgets,
        "judge": _digest(dict(judge.fingerprint)),
    }


def require_equal(mine: Mapping[str, str], others: Mapping[str, str], where: str, parts: Iterable[str] = PARTS) -> None:
    """Raises FrozenError that names the first part that differs."""
    for part in parts:
        if mine.get(part) != others.get(part):
            raise FrozenError(
                f"{where}: was measured with other {part} ({_short(others.get(part))}, here {_short(mine.get(part))}); "
                "rows of different conditions never share a table: evaluate them together, or name another folder"
            )


def _network(network: Network) -> list[object]:
    questions = [
        {
            "id": question.id,
            "category": question.category,
            "question": question.question,
            "answer": question.answer,
            "options": question.options,
            "correct_option": question.correct_option,
            "temporal": bool(question.temporal_anchors),
            "rubric": question.extra.get("rubric"),
        }
        for question in network.questions
    ]
    return [network.network_id, network.content_digest(), questions]


def _digest(value: object) -> str:
    return hashlib.sha256(json_utf8(value, sort_keys=True)).hexdigest()


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "none"
