"""The frozen retrieval: question and memory in, evidence out."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping

from memory_env.query import compose as compose_module
from memory_env.query.budgets import QueryBudgets
from memory_env.query.project import Projector, RuleProjector
from memory_env.query.protocol import Evidence
from memory_env.query.retrieve import system1, system2
from memory_env.query.retrieve.dense import Embedder
from memory_env.query.retrieve.index import Memory, MemoryIndex, VerbatimIndex
from memory_env.query.retrieve.system1 import Candidate, ScoreSelector, Selector, Sufficiency, TermSufficiency
from memory_env.query.source_digest import source_digest

_RETRIEVAL_MODULES = ("bm25", "compose", "index", "similarity", "system1", "system2", "terms")


class QueryPipeline:
    """Project, System 1, System 2 and Compose under fixed budgets. Deterministic with its default parts; thread-safe.

    Example:
        pipeline = QueryPipeline(QueryBudgets())
        index = pipeline.index(state)
        evidence = pipeline.evidence("What does every member think of the pool?", index)
    """

    def __init__(
        self,
        budgets: QueryBudgets | None = None,
        embedder: Embedder | None = None,
        projector: Projector | None = None,
        selector: Selector | None = None,
        sufficiency: Sufficiency | None = None,
    ):
        self.budgets = budgets or QueryBudgets()
        self.embedder = embedder
        self.projector = projector or RuleProjector()
        self.selector = selector or ScoreSelector()
        self.sufficiency = sufficiency or TermSufficiency()
        self._found: weakref.WeakKeyDictionary[VerbatimIndex, dict[str, tuple[Candidate, ...]]] = weakref.WeakKeyDictionary()

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """What determines the evidence besides the memory."""
        return {
            "budgets": self.budgets.digest,
            "retrieval": f"{self.embedder.name if self.embedder else 'terms'}:{source_digest(*_RETRIEVAL_MODULES)}",
            "project": self.projector.name,
            "select": self.selector.name,
            "sufficiency": self.sufficiency.name if self.budgets.ask else "off",
        }

    def index(self, memory: Memory, share: MemoryIndex | None = None) -> MemoryIndex:
        """An index over one state; pass a sibling's index as `share` to reuse its System 1 side."""
        return MemoryIndex.build(memory, self.embedder, share)

    def index_group(self, memories: Iterable[Memory]) -> list[MemoryIndex]:
        """Indexes of a group's states; equal messages are indexed once, so System 1 is searched once per question."""
        indexes: list[MemoryIndex] = []
        for memory in memories:
            indexes.append(self.index(memory, indexes[0] if indexes else None))
        return indexes

    def evidence(self, question: str, index: MemoryIndex) -> Evidence:
        """Evidence of both tracks; `.verbatim_only()` of it is the same System 1 evidence alone (Eq. 8)."""
        projection = self.projector.project(question, index.roster)
        messages = self.messages(question, index.verbatim)
        rows = system2.search(projection, index, self.budgets) if self.budgets.s2_k or self.budgets.source_k else ()
        return compose_module.compose(projection, index, messages, rows)

    def messages(self, question: str, verbatim: VerbatimIndex) -> tuple[Candidate, ...]:
        """System 1's messages, searched once per question and conversation."""
        found = self._found.setdefault(verbatim, {})
        if question not in found:
            found[question] = system1.search(question, verbatim, self.budgets, self.selector, self.sufficiency)
        return found[question]
