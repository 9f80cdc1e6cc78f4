"""Retrieval for what an application asks: a memory file searched by words, by meaning, or by both.

It shares System 1, System 2, Compose and the budgets' k with the frozen evaluation; what differs is the search (`fused`), the
names (`people`) and the floors: a member's row holds their best records whenever there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from memory_env.datafile import DataError
from memory_env.query.budgets import QueryBudgets
from memory_env.query.compose import compose
from memory_env.query.members import Members, former_of
from memory_env.query.people import PeopleProjector
from memory_env.query.project import Projector
from memory_env.query.protocol import Evidence, EvidenceItem
from memory_env.query.retrieve import system1, system2
from memory_env.query.retrieve.dense import Embedder, SentenceEmbedder, minilm_installed
from memory_env.query.retrieve.fused import FusedRecords, ReplySelector, StoredMessages
from memory_env.query.retrieve.index import MemoryIndex
from memory_env.query.retrieve.minilm import MiniLM, minilm_here, shared_minilm
from memory_env.query.synonyms import search_terms
from memory_env.store.changes import former_names
from memory_env.store.search import MESSAGES, RECORDS, Search
from memory_env.store.store import MemoryStore

AUTO, LEXICAL, DENSE, FUSED = "auto", "lexical", "dense", "fused"
RETRIEVALS = (AUTO, LEXICAL, DENSE, FUSED)
LIVING_BUDGETS = QueryBudgets(s2_floor=0.0, fallback_floor=0.0)
"""The paper's k, without floors."""

AT_ONCE = 1000
"""So many missing vectors are made before a question is answered (see `LivingRetrieval.at_once`); others wait for
`make_vectors`."""
_BY_TORCH = 2000


class LivingRetrieval:
    """Finds the evidence for questions to one memory file. One thread at a time, like the file's connection.

    retrieval: "lexical", "dense", "fused" (both), or "auto": fused where all-MiniLM-L6-v2 is installed, else lexical.
    Raises DataError for dense or fused without the embedder.

    Example:
        retrieval = LivingRetrieval(store, "lexical")
        evidence = retrieval.evidence("Where does Bob live?")
    """

    def __init__(
        self,
        store: MemoryStore,
        retrieval: str = AUTO,
        embedder: Embedder | None = None,
        budgets: QueryBudgets = LIVING_BUDGETS,
        projector: Projector | None = None,
        most_chars: int = 12_000,
    ):
        if retrieval not in RETRIEVALS:
            raise DataError(f"retrieval {retrieval!r}: choose one of {', '.join(RETRIEVALS)}")
        if retrieval == AUTO:
            retrieval = FUSED if embedder is not None or minilm_here() else LEXICAL
        self.retrieval = retrieval
        self.at_once: int | None = None  # None: AT_ONCE
        self._store, self._budgets, self._most_chars = store, budgets, most_chars
        self._projector = projector or PeopleProjector()
        self._embedder = (embedder or shared_minilm()) if retrieval in (DENSE, FUSED) else None
        self._search = Search(store.connection, search_terms, store.writable)
        self._version: object = None
        self._messages: StoredMessages
        self._records: dict[float | None, MemoryIndex] = {}
        if self._embedder is not None:
            self._search.embedder(self._embedder.name)

    def missing(self) -> int:
        """How many texts have no vector yet; 0 where retrieval is lexical."""
        if self._embedder is None:
            return 0
        return self._search.missing_vectors(MESSAGES) + self._search.missing_vectors(RECORDS)

    def make_vectors(self, most: int | None = None, progress: Callable[[int, int], None] | None = None) -> int:
        """Make missing vectors, records first, then the newest messages, at most `most`; how many. `progress(done, of all)`."""
        if self._embedder is None:
            return 0
        waiting = {track: self._search.without_vector(track) for track in (RECORDS, MESSAGES)}
        total = sum(map(len, waiting.values()))
        total = total if most is None else min(most, total)
        # torch takes seconds to start and then is the faster; the vectors are the same.
        slow_start = total > _BY_TORCH and isinstance(self._embedder, MiniLM) and minilm_installed()
        encode = _sentence_embedder().encode if slow_start else self._embedder.encode
        done = 0
        for track, places in waiting.items():
            made = 0
            for made in self._search.add_vectors(track, places[: total - done], encode):
                if progress is not None:
                    progress(done + made, total)
            done += made
        self._version = None
        return done

    def evidence(self, question: str, as_of: float | None = None) -> Evidence:
        """Evidence of both tracks, now or as of a time (seconds since 1970)."""
        self._catch_up()
        with self._snapshot():
            index = self._index(as_of)
            projection = self._projector.project(question, index.roster)
            messages = index.verbatim.for_question(projection.names)  # type: ignore[attr-defined]
            index = replace(index, verbatim=messages)
            wanted = _with_all_names(question, projection.names, index.roster)
            found = system1.search(wanted, messages, self._budgets, ReplySelector(), system1.TermSufficiency())
            rows = system2.search(projection, index, self._budgets)
            return capped(compose(projection, index, found, rows), self._most_chars)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """What is read inside belongs together, whatever others write meanwhile."""
        self._store.connection.execute("BEGIN")
        try:
            yield
        finally:
            self._store.connection.execute("COMMIT")

    def _catch_up(self) -> None:
        if self._version is None or self._store.version() != self._version:
            self._search.catch_up()
            if self._embedder is not None and self.at_once != 0 and self.missing():
                self._search_vectors_at_once()

    def _index(self, as_of: float | None) -> MemoryIndex:
        version = self._store.version()
        if self._version is None or version != self._version:
            self._messages = StoredMessages(self._search, self._store.connection, self._embedder, self.retrieval != DENSE)
            self._records = {}
            self._version = version
        if as_of not in self._records:
            self._records = {None: self._records[None]} if None in self._records else {}
            self._records[as_of] = self._built(as_of)
        return self._records[as_of]

    def _search_vectors_at_once(self) -> None:
        self.make_vectors(AT_ONCE if self.at_once is None else self.at_once)

    def _built(self, as_of: float | None) -> MemoryIndex:
        state = self._store.state(as_of, messages=False)
        where = self._messages.where
        visible = np.ones(len(where.place), dtype=bool)
        if as_of is not None:
            visible = np.isin(where.position, self._store.ended_by(as_of)) | (where.at <= as_of)
        view = self._messages.for_question((), visible)
        spoken = {where.speakers[number] for number in np.unique(where.speaker[visible])}
        roster = Members.of(sorted(spoken | set(state.roster)), former_names(self._store))
        places = dict(self._store.connection.execute("SELECT entry_id, place FROM records"))
        return MemoryIndex(roster, view, FusedRecords(state, places, self._search, self._embedder, self.retrieval != DENSE))  # type: ignore[arg-type]


def _with_all_names(question: str, names: tuple[str, ...], roster: tuple[str, ...]) -> str:
    """A question with the names, old and new, by which the chat may call whom it names."""
    others = [other for old, name in former_of(roster) if name in names for other in (old, name) if other not in question]
    return " ".join([question, *dict.fromkeys(others)])


def capped(evidence: Evidence, most: int) -> Evidence:
    """The evidence in at most `most` characters of content: a long text is cut where it gets more than its share."""
    items = [*evidence.messages, *(item for row in evidence.rows for chain in row.chains for item in chain)]
    if sum(len(item.content) for item in items) <= most:
        return evidence
    share = max(80, most // max(1, len(items)))

    def cut(item: EvidenceItem) -> EvidenceItem:
        return item if len(item.content) <= share else replace(item, content=item.content[: share - 4].rsplit(" ", 1)[0] + " ...")

    rows = tuple(replace(row, chains=tuple(tuple(map(cut, chain)) for chain in row.chains)) for row in evidence.rows)
    return replace(evidence, messages=tuple(map(cut, evidence.messages)), rows=rows)


def _sentence_embedder() -> SentenceEmbedder:
    from memory_env.query.retrieve.minilm import installed_folder

    return SentenceEmbedder(installed_folder())
