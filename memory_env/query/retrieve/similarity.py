"""Similarity of one query to many texts: cosine of embeddings, or cosine of term sets where no embedder is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from memory_env.query.retrieve.dense import Embedder
from memory_env.query.retrieve.terms import ISSUE_TERMS, terms


class Similarity(Protocol):
    """`scores(query, places)`: cosines with the query of the texts at `places` (None: of all), float64 [N] in [-1, 1]; 0 for a
    query without terms.
    """

    def scores(self, query: str, places: np.ndarray | None = None) -> np.ndarray: ...


class TermSimilarity:
    """`terms.term_match` of a query with every text; the rule where no embedder is used.

    On the scale of a cosine of embeddings, so that the floors of `QueryBudgets` (0.30 and 0.25) apply to both.
    """

    def __init__(self, texts: Sequence[str]):
        postings: dict[str, list[int]] = {}
        sizes = np.ones(len(texts))
        for index, text in enumerate(texts):
            found = set(terms(text))
            sizes[index] = max(len(found), 1)
            for term in found:
                postings.setdefault(term, []).append(index)
        self._postings = {term: np.array(found, dtype=np.int64) for term, found in postings.items()}
        self._sizes = sizes

    def scores(self, query: str, places: np.ndarray | None = None) -> np.ndarray:
        wanted = set(terms(query))
        shared = np.zeros(len(self._sizes))
        for term in wanted & self._postings.keys():
            shared[self._postings[term]] += 1.0
        # One root of the product, as in `term_match`: two roots can miss a floor that the match ties.
        scores = np.minimum(1.0, shared / np.sqrt(self._sizes * max(min(len(wanted), ISSUE_TERMS), 1)))
        return scores if places is None else scores[places]


class DenseSimilarity:
    """Dot products of unit vectors."""

    def __init__(self, texts: Sequence[str], embedder: Embedder):
        self._embedder = embedder
        self._matrix = embedder.encode(list(texts)) if texts else np.zeros((0, 1), dtype=np.float32)

    def scores(self, query: str, places: np.ndarray | None = None) -> np.ndarray:
        matrix = self._matrix if places is None else self._matrix[places]
        if not len(matrix) or not terms(query):
            return np.zeros(len(matrix))
        return (matrix @ self._embedder.encode([query])[0]).astype(np.float64)


def build_similarity(texts: Sequence[str], embedder: Embedder | None) -> Similarity:
    return TermSimilarity(texts) if embedder is None else DenseSimilarity(texts, embedder)
