"""System 2 at query time: one row per member or GROUP, records chosen inside the row (Eq. 5-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_env.query.budgets import QueryBudgets
from memory_env.query.index import DerivedIndex, MemoryIndex
from memory_env.query.protocol import Projection
from memory_env.query.terms import terms
from memory_env.records import GROUP


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
    return tuple(_row(owner, projection, index, budgets) for owner in rows)


def row_issue(projection: Projection, owner: str) -> str:
    """The issue inside one row: the question without the owner's name; other members named stay ("... promise Bob")."""
    others = [name for name in projection.names if name not in (owner, projection.source)]
    return " ".join([projection.issue, *others])


def _row(owner: str, projection: Projection, index: MemoryIndex, budgets: QueryBudgets) -> Row:
    derived, issue = index.derived, row_issue(projection, owner)
    heads = derived.owners.get(owner, [])
    constrained = bool(projection.source) and owner == projection.owner
    if constrained:
        heads = [head for head in heads if derived.records[head].source == projection.source]
    # A source-owner constraint is a match by itself, and an issue without terms matches all: then the floor does not apply.
    floor = -1.0 if constrained or not terms(issue) else budgets.s2_floor
    chains = _best_chains(derived, heads, issue, projection.mode, floor, budgets.s2_k)
    said = ()
    if owner != GROUP and not constrained:
        said = _best_chains(derived, derived.sayers.get(owner, []), issue, projection.mode, budgets.s2_floor, budgets.source_k)
    fallback = None
    if not chains and budgets.s1:
        fallback = _best_message(index, projection.source if constrained else owner, issue, budgets.fallback_floor)
    return Row(owner, chains, said, fallback)


def _best_chains(
    derived: DerivedIndex, heads: Sequence[int], issue: str, mode: str, floor: float, k: int
) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """The k best chains by similarity, newest first among equals; in head mode a chain is its head alone."""
    if not heads or not k:
        return ()
    scores = derived.similarity(issue)
    if mode == "full":
        found = [(float(max(scores[list(derived.chains[head])])), head) for head in heads]
    else:
        found = list(zip(scores[np.asarray(heads)].tolist(), heads, strict=True))
    found = sorted((pair for pair in found if pair[0] >= floor), key=lambda pair: (-pair[0], -pair[1]))
    return tuple((score, derived.chains[head] if mode == "full" else (head,)) for score, head in found[:k])


def _best_message(index: MemoryIndex, speaker: str, issue: str, floor: float) -> tuple[float, int] | None:
    """The speaker's message most similar to the issue, the newest among equals; None under the floor."""
    places = index.verbatim.by_speaker(speaker)
    if not places:
        return None
    scores = index.verbatim.similarity(issue)
    score, place = max((float(scores[place]), place) for place in places)
    return (score, place) if score >= floor and score > 0 else None
