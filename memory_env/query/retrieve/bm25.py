"""BM25 over an inverted index, with exactly the scores of rank-bm25's BM25Okapi (Robertson & Zaragoza 2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np


class BM25:
    """Scores of every document for a query in time proportional to the postings of the query's terms.

    `BM25Okapi` visits every document for every term; this index holds per term the documents that contain it and each one's
    finished contribution, computed by the same floating-point expression, so that scores are equal to the last bit.

    Example: BM25([["tea", "bob"], ["rain"]]).scores(["tea"]) -> array of shape [2].
    """

    def __init__(self, corpus: Sequence[Sequence[str]], k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25):
        self.size = len(corpus)
        documents: dict[str, list[int]] = {}
        counts: dict[str, list[int]] = {}
        for index, document in enumerate(corpus):
            for term, count in Counter(document).items():
                documents.setdefault(term, []).append(index)
                counts.setdefault(term, []).append(count)
        lengths = np.array([len(document) for document in corpus], dtype=np.int64)
        average_length = int(lengths.sum()) / self.size if self.size else 0.0
        idf = _okapi_idf({term: len(found) for term, found in documents.items()}, self.size, epsilon)
        self._postings: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for term, found in documents.items():
            where = np.array(found, dtype=np.int64)
            frequency = np.array(counts[term], dtype=np.int64)
            gain = (idf[term] or 0) * (frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * lengths[where] / average_length)))
            self._postings[term] = (where, gain)

    def scores(self, query: Sequence[str]) -> np.ndarray:
        """Scores of all documents, float64 [N]; a repeated query term counts again, as in BM25Okapi."""
        scores = np.zeros(self.size)
        for term in query:
            if term in self._postings:
                where, gain = self._postings[term]
                scores[where] += gain
        return scores


def _okapi_idf(document_frequency: dict[str, int], size: int, epsilon: float) -> dict[str, float]:
    """Inverse document frequencies; a negative one (a term in most documents) becomes epsilon times the average."""
    idf = {term: math.log(size - n + 0.5) - math.log(n + 0.5) for term, n in document_frequency.items()}
    total = 0
    for value in idf.values():
        total += value  # type: ignore[assignment]
    floor = epsilon * (total / len(idf)) if idf else 0.0
    return {term: floor if value < 0 else value for term, value in idf.items()}


def best(scores: np.ndarray, n: int) -> list[int]:
    """Indices of the n highest scores, highest first; ties in index order."""
    n = min(n, len(scores))
    if n <= 0:
        return []
    if n < len(scores):
        threshold = np.partition(scores, len(scores) - n)[len(scores) - n]
        candidates = np.flatnonzero(scores >= threshold)
    else:
        candidates = np.arange(len(scores))
    order = np.argsort(-scores[candidates], kind="stable")
    return candidates[order[:n]].tolist()
