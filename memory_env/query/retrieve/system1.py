"""System 1 at query time: recall, Select, Expand, and one optional Sufficiency/ASK round (Appendix A, B.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_env.query.budgets import QueryBudgets
from memory_env.query.retrieve.bm25 import best
from memory_env.query.retrieve.index import VerbatimIndex
from memory_env.query.retrieve.terms import terms
from memory_env.records import Record

# A neighbour is worth half of its anchor per turn of distance: it is context, not a hit of its own.
_NEIGHBOUR_DECAY = 0.5
# Shorter messages than this (in content terms) rarely stand without their context.
_SELF_CONTAINED_TERMS = 4
# Evidence is enough once it holds this share of the question's terms.
_ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recalled message and its relevance."""

    index: int
    record: Record
    score: float


class Selector(Protocol):
    """Select/Expand: ranks candidates by necessity and names messages whose neighbours are needed. Sees System 1 only."""

    name: str

    def select(self, question: str, candidates: Sequence[Candidate], k: int, anchors: int) -> tuple[list[int], list[int]]:
        """(places of `candidates` best first, places to expand around: at most `anchors`)."""
        ...


class Sufficiency(Protocol):
    """Whether the messages answer the question; if not, what to search for."""

    name: str

    def ask(self, question: str, messages: Sequence[Record]) -> str:
        """A search term, or "" when the evidence is enough."""
        ...


class ScoreSelector:
    """Ranks by score, ties by time. Expands around the best messages that lean on their context: questions and short ones."""

    name = "score"

    def select(self, question: str, candidates: Sequence[Candidate], k: int, anchors: int) -> tuple[list[int], list[int]]:
        order = sorted(range(len(candidates)), key=lambda place: (-candidates[place].score, candidates[place].index))
        leaning = [place for place in order[:k] if _leans_on_context(candidates[place].record.content)]
        return order, leaning[:anchors]


class TermSufficiency:
    """Enough when the selected messages hold half of the question's terms; else the missing terms are the search."""

    name = "terms"

    def ask(self, question: str, messages: Sequence[Record]) -> str:
        wanted = list(dict.fromkeys(terms(question)))
        present = {term for record in messages for term in terms(f"{record.source}: {record.content}")}
        missing = [term for term in wanted if term not in present]
        return " ".join(missing) if len(missing) > (1 - _ENOUGH) * len(wanted) else ""


def search(
    question: str,
    index: VerbatimIndex,
    budgets: QueryBudgets,
    selector: Selector,
    sufficiency: Sufficiency,
) -> tuple[Candidate, ...]:
    """The final `s1_k` messages, best first (all, in conversation order, with `s1_all`). System 2 has no part in it."""
    if not budgets.s1 or not budgets.s1_k:
        return ()
    scores = index.relevance(question)
    if budgets.s1_all:
        return tuple(Candidate(place, record, float(scores[place])) for place, record in enumerate(index.records))
    pool = {place: float(scores[place]) for place in best(scores, max(budgets.s1_recall, budgets.s1_k)) if scores[place] > 0}
    ranked = _select_and_expand(question, index, pool, budgets, selector)
    if budgets.ask:
        request = sufficiency.ask(question, [candidate.record for candidate in ranked[: budgets.s1_k]])
        if request:
            extra = index.relevance(request)
            for place in best(extra, budgets.ask_recall):
                if extra[place] > 0:
                    pool[place] = max(pool.get(place, 0.0), float(scores[place]), float(extra[place]))
            ranked = _ranked(question, index, pool, budgets, selector)[0]
    return tuple(ranked[: budgets.s1_k])


def _select_and_expand(
    question: str, index: VerbatimIndex, pool: dict[int, float], budgets: QueryBudgets, selector: Selector
) -> list[Candidate]:
    """Ranks the pool; up to `expand_rounds` times adds the neighbours of its anchors (into `pool`) and ranks again."""
    expanded: set[int] = set()
    ranked, anchors = _ranked(question, index, pool, budgets, selector)
    for _ in range(budgets.expand_rounds):
        anchors = [place for place in anchors if place not in expanded]
        if not anchors:
            break
        expanded.update(anchors)
        before = len(pool)
        for anchor in anchors:
            for place, distance in index.neighbours(anchor, budgets.expand_window):
                pool[place] = max(pool.get(place, 0.0), pool[anchor] * _NEIGHBOUR_DECAY**distance)
        if len(pool) == before:
            break
        ranked, anchors = _ranked(question, index, pool, budgets, selector)
    return ranked


def _ranked(
    question: str, index: VerbatimIndex, pool: dict[int, float], budgets: QueryBudgets, selector: Selector
) -> tuple[list[Candidate], list[int]]:
    candidates = [Candidate(place, index.records[place], pool[place]) for place in sorted(pool)]
    order, anchors = selector.select(question, candidates, budgets.s1_k, budgets.expand_anchors)
    return [candidates[place] for place in order], [candidates[place].index for place in anchors]


def _leans_on_context(content: str) -> bool:
    return content.rstrip().endswith("?") or len(set(terms(content))) < _SELF_CONTAINED_TERMS
