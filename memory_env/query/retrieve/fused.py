"""Search over a memory file: words and meaning fused, nothing read but what a question needs.

The frozen evaluation searches a state in working memory (`index`); an application asks a file of any size, whose word index and
vectors stand in it (memory_env.store.search). Both go through the same System 1, System 2 and Compose.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_env.query.retrieve.bm25 import best
from memory_env.query.retrieve.dense import Embedder
from memory_env.query.retrieve.index import DerivedIndex, Memory
from memory_env.query.retrieve.similarity import TermSimilarity
from memory_env.query.retrieve.system1 import Candidate
from memory_env.query.retrieve.terms import terms
from memory_env.query.synonyms import search_terms
from memory_env.records import VERBATIM_CONFIDENCE, VERBATIM_LAYER, VERBATIM_UTYPE, Record
from memory_env.store.search import MESSAGES, RECORDS, Search

RECALL, WORD_HITS = 200, 2000
_RANK = 10.0
_DENSE_FLOOR = 0.05
# A reply is worth this share of the question it follows: the question has the words, the reply the answer.
_REPLY_SHARE = 0.8
_ASKS = re.compile(r"[?？؟](?:\s|$)")

_INTRODUCING = ("%I am %", "%I'm %", "%I’m %", "%my name is%", "%this is %")

Ranking = tuple[np.ndarray, np.ndarray]
"""(rows int64 [M], scores float64 [M]), best first."""


def fuse(rankings: Sequence[Ranking], size: int) -> np.ndarray:
    """Reciprocal rank fusion (Cormack et al. 2009): float64 [size] in [0, 1], sum over rankings of (k + 1) / (k + rank), divided
    by their number; k = 10, ranks from 1. Equal scores share a rank. 0 for what no ranking holds.

    Example: fuse([(np.array([2, 0]), np.array([9.0, 3.0]))], 3) -> [11 / 12, 0, 1].
    """
    fused = np.zeros(size)
    for rows, scores in rankings:
        if len(rows):
            rank = np.concatenate([[0], np.cumsum(scores[1:] < scores[:-1])])
            fused[rows] += (_RANK + 1) / (_RANK + 1 + rank) / len(rankings)
    return fused


@dataclass(frozen=True, slots=True)
class Vectors:
    """A track's unit vectors: float32 [M, D], and the row of each among all its texts, int64 [M]."""

    rows: np.ndarray
    matrix: np.ndarray

    def rankings(self, query: np.ndarray, most: int, *among: np.ndarray) -> list[Ranking]:
        """For each of `among` (bool over all texts) the `most` texts it admits that are nearest to a unit vector."""
        if not len(self.rows):
            return [(self.rows, np.array([])) for _ in among]
        cosines = (self.matrix @ query).astype(np.float64)
        found = []
        for admitted in among:
            kept = np.where(admitted[self.rows], cosines, -1.0)
            top = [place for place in best(kept, most) if kept[place] > _DENSE_FLOOR]
            found.append((self.rows[top], kept[top]))
        return found


class StoredMessages:
    """System 1 of a memory file, with the methods of `VerbatimIndex`; a row is a message's number in file order.

    `embedder` None: words alone. `words` False: meaning alone. `visible`: bool [N], the messages of the time asked about.
    """

    def __init__(self, search: Search, db: sqlite3.Connection, embedder: Embedder | None, words: bool = True):
        self._search, self._db, self._embedder, self._words = search, db, embedder, words
        self.where = search.places()
        self.visible = np.ones(len(self.where.place), dtype=bool)
        self.people: tuple[str, ...] = ()
        self.records = _StoredRecords(db, self.where.place)
        self._numbers = {name: number for number, name in enumerate(self.where.speakers)}
        self._vectors: Vectors | None = None
        self._asked: dict[str, np.ndarray] = {}
        # Now and not at a question: its view of the messages would keep them for itself.
        if embedder is not None:
            places, matrix = search.vectors(MESSAGES)
            rows = np.searchsorted(self.where.place, places)
            known = rows < len(self.where.place)
            self._vectors = Vectors(rows[known], matrix[known])

    def for_question(self, people: tuple[str, ...], visible: np.ndarray | None = None) -> StoredMessages:
        """The same messages, with those of `people` sought apart too, and only the `visible` ones."""
        view = object.__new__(StoredMessages)
        view.__dict__.update(self.__dict__)
        view.people, view._asked = people, {}
        view.visible = self.visible if visible is None else visible
        return view

    def relevance(self, query: str) -> np.ndarray:
        """Fused scores of all messages, float64 [N] in [0, 1]; positive exactly where a message can be recalled."""
        if query not in self._asked:
            size = len(self.where.place)
            self._asked[query] = np.where(self.visible, fuse(self._rankings(query), size), 0.0)
        return self._asked[query]

    def _rankings(self, query: str) -> list[Ranking]:
        own = np.isin(self.where.speaker, [self._numbers[name] for name in self.people if name in self._numbers])
        found: list[Ranking] = []
        if self._words:
            hits, scores = self._search.word_scores(search_terms(query), WORD_HITS)
            rows = np.searchsorted(self.where.place, hits)
            kept = self.visible[rows]
            found.append((rows[kept][:RECALL], scores[kept][:RECALL]))
            if own.any():
                names = {term for name in self.people for term in search_terms(name)}
                told = set(search_terms(query)) <= names
                kept &= own[rows]
                found.append(self._introductions(own & self.visible) if told else (rows[kept][:RECALL], scores[kept][:RECALL]))
        if self._embedder is not None:
            assert self._vectors is not None
            among = [self.visible, self.visible & own] if own.any() else [self.visible]
            found += self._vectors.rankings(self._embedder.encode([query])[0], RECALL, *among)
        return found

    def _introductions(self, own: np.ndarray) -> Ranking:
        """Where members say who they are, then their first messages: for "Who is Dave?", which has no word to search."""
        says = " OR ".join("content LIKE ?" for _ in _INTRODUCING)
        told = {place for (place,) in self._db.execute(f"SELECT place FROM messages WHERE {says}", _INTRODUCING)}
        rows = np.flatnonzero(own)
        order = sorted(rows.tolist(), key=lambda row: (int(self.where.place[row]) not in told, row))[:RECALL]
        return np.array(order, dtype=np.int64), np.linspace(1.0, 0.5, len(order))

    def similarity(self, query: str, places: np.ndarray | None = None) -> np.ndarray:
        """Fused scores of the messages at `places`: what a row's fallback is chosen by."""
        scores = self.relevance(query)
        return scores if places is None else scores[places]

    def by_speaker(self, speaker: str) -> np.ndarray:
        """Rows of a speaker's visible messages, in order."""
        number = self._numbers.get(speaker, -1)
        return np.flatnonzero((self.where.speaker == number) & self.visible)

    def neighbours(self, index: int, window: int) -> list[tuple[int, int]]:
        """(row, distance) of the messages at most `window` turns away in the same session."""
        near = np.flatnonzero(
            (self.where.session == self.where.session[index])
            & (abs(self.where.turn - self.where.turn[index]) <= window)
            & self.visible
        )
        return [(int(row), int(abs(self.where.turn[row] - self.where.turn[index]))) for row in near if row != index]


class _StoredRecords(Sequence):
    """Messages as records, read when they are asked for."""

    def __init__(self, db: sqlite3.Connection, places: np.ndarray):
        self._db, self._places = db, places
        self._known: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row):  # type: ignore[no-untyped-def]
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        if row not in self._known:
            found = self._db.execute(
                "SELECT entry_id, content, speaker, session, turn, position, ts FROM messages WHERE place = ?",
                (int(self._places[row]),),
            ).fetchone()
            entry, content, speaker, *place = found
            at = dict(zip(("session", "turn", "turn_created", "ts"), place, strict=True))
            self._known[row] = Record(
                entry, content, speaker, speaker, VERBATIM_LAYER, VERBATIM_UTYPE, **at, confidence=VERBATIM_CONFIDENCE
            )
        return self._known[row]


class FusedRecords(DerivedIndex):
    """System 2 of a memory file: a record's similarity is the mean of the cosine of its words and that of its meaning."""

    def __init__(self, memory: Memory, places: dict[str, int], search: Search, embedder: Embedder | None, words: bool = True):
        super().__init__(memory, None)
        self._meaning, self._by_words = embedder, words
        self._file_places = np.array([places[record.entry_id] for record in self.records], dtype=np.int64)
        self._search = search
        self._word_similarity = TermSimilarity([" ".join(search_terms(record.content)) for record in self.records])
        self._vectors: Vectors | None = None
        self._asked: dict[str, np.ndarray] = {}

    def load_vectors(self) -> None:
        """Read the vectors again: some were added."""
        self._asked.clear()
        if self._meaning is not None:
            held, matrix = self._search.vectors(RECORDS)
            order = {int(place): row for row, place in enumerate(self._file_places)}
            kept = np.array([row for row, place in enumerate(held) if int(place) in order], dtype=np.int64)
            rows = np.array([order[int(place)] for place in held if int(place) in order], dtype=np.int64)
            self._vectors = Vectors(rows, matrix[kept])

    def similarity(self, query: str) -> np.ndarray:
        """float64 [N] in [0, 1]; never below 0, so that a member's row is as full as the budget allows."""
        if query not in self._asked:
            plain = " ".join(search_terms(query))
            parts = [self._word_similarity.scores(plain)] if self._by_words or self._meaning is None else []
            if self._meaning is not None and len(self.records):
                if self._vectors is None:
                    self.load_vectors()
                assert self._vectors is not None
                meaning = np.zeros(len(self.records))
                if len(self._vectors.rows):
                    meaning[self._vectors.rows] = self._vectors.matrix @ self._meaning.encode([query])[0]
                parts.append(np.maximum(meaning, 0.0))
            parts = parts or [np.zeros(len(self.records))]
            self._asked = (
                {query: np.mean(parts, axis=0)} if len(self._asked) > 64 else self._asked | {query: np.mean(parts, axis=0)}
            )
        return self._asked[query]


class ReplySelector:
    """Ranks by score; a question's replies rank just behind it, and the neighbours of questions and short messages are
    fetched."""

    name = "replies"

    def select(self, question: str, candidates: Sequence[Candidate], k: int, anchors: int) -> tuple[list[int], list[int]]:
        """See `Selector`."""
        at = {(found.record.session, found.record.turn): place for place, found in enumerate(candidates)}
        scores = [found.score for found in candidates]
        asking = [place for place, found in enumerate(candidates) if _ASKS.search(found.record.content)]
        for place in asking:
            record = candidates[place].record
            for turn in (1, 2):
                reply = at.get((record.session, record.turn + turn))
                if reply is not None and candidates[reply].record.source != record.source:
                    scores[reply] = max(scores[reply], candidates[place].score * _REPLY_SHARE**turn)
        order = sorted(range(len(candidates)), key=lambda place: (-scores[place], candidates[place].index))
        leaning = [place for place in order[:k] if place in set(asking) or len(set(terms(candidates[place].record.content))) < 4]
        return order, sorted(leaning, key=lambda place: place not in set(asking))[:anchors]
