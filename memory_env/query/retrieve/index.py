"""Search structures over one memory state: System 1 (shared by every trajectory of a group) and System 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from memory_env.query.retrieve.bm25 import BM25
from memory_env.query.retrieve.dense import Embedder
from memory_env.query.retrieve.similarity import build_similarity
from memory_env.query.retrieve.terms import terms
from memory_env.records import Edge, Record

_LEAST = 1e-6
_NONE = np.array([], dtype=np.int64)


class Memory(Protocol):
    """What retrieval reads of a memory state."""

    @property
    def roster(self) -> tuple[str, ...]: ...
    def verbatim(self) -> tuple[Record, ...]: ...
    def derived(self) -> tuple[Record, ...]: ...
    def edges(self) -> tuple[Edge, ...]: ...


class VerbatimIndex:
    """System 1: messages by relevance, by speaker and by place in their session.

    With an embedder, recall ranks by cosine, else by BM25. A message is searched together with its speaker's name.
    """

    def __init__(self, records: Sequence[Record], embedder: Embedder | None = None):
        self.records = tuple(records)
        self._embedder = embedder
        self._places: dict[str, list[int]] = {}
        speakers: dict[str, list[int]] = {}
        for index, record in enumerate(self.records):
            self._places.setdefault(record.session, []).append(index)
            speakers.setdefault(record.source, []).append(index)
        self._speakers = _arrays(speakers)
        for places in self._places.values():
            places.sort(key=lambda index: (self.records[index].turn, index))
        self._order = {index: place for places in self._places.values() for place, index in enumerate(places)}

    @cached_property
    def _texts(self) -> list[str]:
        return [f"{record.source}: {record.content}" for record in self.records]

    @cached_property
    def _bm25(self) -> BM25:
        return BM25([terms(text) for text in self._texts])

    @cached_property
    def _similarity(self):
        return build_similarity(self._texts, self._embedder)

    def relevance(self, query: str) -> np.ndarray:
        """Recall scores of all messages, float64 [N]; positive exactly where a message can be recalled.

        BM25 can be 0 or negative for a term of half the messages (certain in a chat of two): such messages follow the others,
        by term overlap. A message that shares no term has 0.
        """
        overlap = self._similarity.scores(query)
        if self._embedder is not None:
            return overlap
        return np.where(overlap > 0, np.maximum(self._bm25.scores(terms(query)), _LEAST * overlap), 0.0)

    def similarity(self, query: str, places: np.ndarray | None = None) -> np.ndarray:
        """Cosines with the query of the messages at `places` (None: of all), float64: what the fallback's floor is about."""
        return self._similarity.scores(query, places)

    def by_speaker(self, speaker: str) -> np.ndarray:
        """Places of a speaker's messages, in order."""
        return self._speakers.get(speaker, _NONE)

    def neighbours(self, index: int, window: int) -> list[tuple[int, int]]:
        """(message, distance) of the messages at most `window` turns away in the same session."""
        places, place = self._places[self.records[index].session], self._order[index]
        first, last = max(0, place - window), min(len(places), place + window + 1)
        return [(places[other], abs(other - place)) for other in range(first, last) if other != place]

    def prepare(self) -> VerbatimIndex:
        """Build now what is otherwise built at the first question."""
        self.relevance("prepare"), self.similarity("prepare")
        return self


class DerivedIndex:
    """System 2: derived records by owner and by source, with their UPDATE chains."""

    def __init__(self, memory: Memory, embedder: Embedder | None = None):
        self.records = tuple(memory.derived())
        self._embedder = embedder
        place = {record.entry_id: index for index, record in enumerate(self.records)}
        older: dict[int, int] = {}
        newer: dict[int, int] = {}
        for edge in memory.edges():
            if edge.old in place and edge.new in place:
                older[place[edge.new]], newer[place[edge.old]] = place[edge.old], place[edge.new]
        self.heads = [index for index in range(len(self.records)) if index not in newer]
        self.chains: dict[int, tuple[int, ...]] = {}
        self._head_of = np.arange(len(self.records))
        for head in self.heads:
            chain = {head: None}  # ordered; a file whose edges run in a circle must not hang the reader
            while (old := older.get(next(reversed(chain)))) is not None and old not in chain:
                chain[old] = None
            self.chains[head] = tuple(reversed(chain))
            self._head_of[list(chain)] = head
        owners: dict[str, list[int]] = {}
        sayers: dict[str, list[int]] = {}
        for head in self.heads:
            record = self.records[head]
            owners.setdefault(record.owner, []).append(head)
            if record.source != record.owner:
                sayers.setdefault(record.source, []).append(head)
        self._owners, self._sayers = _arrays(owners), _arrays(sayers)

    @cached_property
    def _similarity(self):
        return build_similarity([record.content for record in self.records], self._embedder)

    def of_owner(self, owner: str) -> np.ndarray:
        """Places of the heads about an owner, in creation order."""
        return self._owners.get(owner, _NONE)

    def said_by(self, source: str) -> np.ndarray:
        """Places of the heads that a member said about others, in creation order."""
        return self._sayers.get(source, _NONE)

    def best_of_chain(self, scores: np.ndarray) -> np.ndarray:
        """At every head the best score of its chain, float64 [N]."""
        best = scores.copy()
        np.maximum.at(best, self._head_of, scores)
        return best

    def similarity(self, query: str) -> np.ndarray:
        """Cosines of all derived records with the query, float64 [N]."""
        return self._similarity.scores(query)

    def prepare(self) -> DerivedIndex:
        self.similarity("prepare")
        return self


@dataclass(frozen=True, slots=True)
class MemoryIndex:
    """Both tracks of one state, ready to be queried."""

    roster: tuple[str, ...]
    verbatim: VerbatimIndex
    derived: DerivedIndex

    @classmethod
    def build(cls, memory: Memory, embedder: Embedder | None = None, share: MemoryIndex | None = None) -> MemoryIndex:
        """Index a state; with `share`, System 1 is taken from an index over the same messages (a fork's sibling)."""
        messages = tuple(memory.verbatim())
        if share is not None and _same_messages(share.verbatim.records, messages):
            verbatim = share.verbatim
        else:
            verbatim = VerbatimIndex(messages, embedder)
        return cls(tuple(memory.roster), verbatim, DerivedIndex(memory, embedder))


def _same_messages(mine: tuple[Record, ...], others: tuple[Record, ...]) -> bool:
    return mine is others or (len(mine) == len(others) and all(a is b or a == b for a, b in zip(mine, others, strict=True)))


def _arrays(places: dict[str, list[int]]) -> dict[str, np.ndarray]:
    return {name: np.array(found, dtype=np.int64) for name, found in places.items()}
