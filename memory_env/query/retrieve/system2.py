"""System 2 at query time: one row per member or GROUP, records chosen inside the row (Eq. 5-6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memory_env.query.budgets import QueryBudgets
from memory_env.query.protocol import Projection
from memory_env.query.retrieve.index import DerivedIndex, MemoryIndex
from memory_env.query.retrieve.terms import terms
from memory_env.records import GROUP

_FEW_ROWS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Places of records in the indexes. `chains` and `said`: (similarity, places in the derived index, oldest first)."""

    owner: str
    chains: tuple[tuple[float, tuple[int, ...]], ...]
    said: tuple[tuple[float, tuple[int, ...]], ...]
    fallback: tuple[float, int] | None


def search(projection: Projection, index: MemoryIndex, budgets: QueryBudgets) -> tuple[Row, ...]:
    """A row for every row of the projection, in its order; what one row holds never depends on another row."""
    rows = [owner for owner in projection.rows if (budgets.s2_group if owner == GROUP else budgets.s2_person)]
    scores = _Scores(index, len(rows))
    return tuple(_row(owner, projection, index, budgets, scores) for owner in rows)


def row_issue(projection: Projection, owner: str) -> str:
    """The issue inside one row: the question without the owner's name; other members named stay ("... promise Bob")."""
    others = [name for name in projection.names if name not in (owner, projection.source)]
    return " ".join([projection.issue, *others])


class _Scores:
    """Similarities with an issue, computed once per question where many of its `rows` share it."""

    def __init__(self, index: MemoryIndex, rows: int):
        self._index, self._rows = index, rows
        self._records: dict[str, np.ndarray] = {}
        self._messages: dict[str, np.ndarray] = {}

    def records(self, issue: str) -> np.ndarray:
        if issue not in self._records:
            self._records[issue] = self._index.derived.similarity(issue)
        return self._records[issue]

    def messages(self, issue: str, places: np.ndarray) -> np.ndarray:
        if self._rows <= _FEW_ROWS:
            return self._index.verbatim.similarity(issue, places)
        if issue not in self._messages:
            self._messages[issue] = self._index.verbatim.similarity(issue)
        return self._messages[issue][places]


def _row(owner: str, projection: Projection, index: MemoryIndex, budgets: QueryBudgets, scores: _Scores) -> Row:
    derived, issue, mode = index.derived, row_issue(projection, owner), projection.mode
    heads = derived.of_owner(owner)
    constrained = bool(projection.source) and owner == projection.owner
    if constrained:
        heads = heads[[derived.records[head].source == projection.source for head in heads]]
    # A source-owner constraint is a match by itself, and an issue without terms matches all: then the floor does not apply.
    floor = -1.0 if constrained or not terms(issue) else budgets.s2_floor
    chains = _best_chains(derived, heads, scores.records(issue), mode, floor, budgets.s2_k)
    said = ()
    if owner != GROUP and not constrained:
        said = _best_chains(  # type: ignore[assignment]
            derived, derived.said_by(owner), scores.records(issue), mode, budgets.s2_floor, budgets.source_k
        )
    fallback = None
    if not chains and budgets.s1:
        speaker = projection.source if constrained else owner
        places = index.verbatim.by_speaker(speaker)
        fallback = _best_message(places, scores.messages(issue, places), budgets.fallback_floor)
    return Row(owner, chains, said, fallback)


def _best_chains(
    derived: DerivedIndex, heads: np.ndarray, scores: np.ndarray, mode: str, floor: float, k: int
) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """The k best chains by similarity, newest first among equals; in head mode a chain is its head alone."""
    if not len(heads) or not k:
        return ()
    fit = derived.best_of_chain(scores)[heads] if mode == "full" else scores[heads]
    kept = fit >= floor
    found = sorted(zip(fit[kept].tolist(), heads[kept].tolist(), strict=True), key=lambda pair: (-pair[0], -pair[1]))
    return tuple((score, derived.chains[head] if mode == "full" else (head,)) for score, head in found[:k])


def _best_message(places: np.ndarray, scores: np.ndarray, floor: float) -> tuple[float, int] | None:
    """The most similar of a speaker's messages, the newest among equals; None under the floor."""
    if not len(places):
        return None
    last = len(places) - 1 - int(np.argmax(scores[::-1]))
    score = float(scores[last])
    return (score, int(places[last])) if score >= floor and score > 0 else None
