"""Provenance: which messages of the segment support a derived record (`from_ids`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from memory_env.conversation import Segment
from memory_env.datafile import DataError
from memory_env.text import squared_norm, word_counts, words

MAX_SUPPORT = 3
MIN_COSINE = 0.25
PROVENANCES = ("lexical", "minilm")


class Provenance(Protocol):
    """Finds support: for each content the indices of up to 3 messages, most similar first, ties by position."""

    def __call__(self, contents: Sequence[str], segment: Segment) -> list[tuple[int, ...]]: ...


class _SegmentIndex:
    """Inverted index of a segment's words: word -> [(message, count)], and each message's squared norm."""

    def __init__(self, segment: Segment) -> None:
        self.postings: dict[str, list[tuple[int, int]]] = {}
        self.norms: list[int] = []
        for index, message in enumerate(segment.messages):
            counts = word_counts(message.content)
            self.norms.append(squared_norm(counts))
            for word, count in counts.items():
                self.postings.setdefault(word, []).append((index, count))


_index_of = lru_cache(maxsize=1024)(_SegmentIndex)


def lexical_provenance(contents: Sequence[str], segment: Segment) -> list[tuple[int, ...]]:
    """Support by the cosine of word counts, in integer arithmetic: the same on every machine."""
    index = _index_of(segment)
    return [_lexical_support(content, index) for content in contents]


def _lexical_support(content: str, index: _SegmentIndex) -> tuple[int, ...]:
    occurring = words(content)
    dots: dict[int, int] = {}
    for word in occurring:
        for message, occurrences in index.postings.get(word, ()):
            dots[message] = dots.get(message, 0) + occurrences
    if not dots:
        return ()
    norm = len(occurring) if len(set(occurring)) == len(occurring) else squared_norm(Counter(occurring))
    # cosine >= 1/4 without a square root: 16 dot^2 >= |a|^2 |b|^2
    near = [
        (-dot * dot / index.norms[message], message)
        for message, dot in dots.items()
        if 16 * dot * dot >= norm * index.norms[message]
    ]
    return tuple([message for _, message in sorted(near)[:MAX_SUPPORT]])


def named_provenance(name: str) -> Provenance:
    """`lexical`: the cosine of word counts, the default because it is the same on every machine; `minilm`: embeddings of
    all-MiniLM-L6-v2, as in the paper. Raises DataError where that is not installed.
    """
    if name not in PROVENANCES:
        raise DataError(f"provenance {name!r} is not one of {', '.join(PROVENANCES)}")
    if name == "lexical":
        return lexical_provenance
    from memory_env.query.retrieve.dense import minilm

    return EmbeddingProvenance(minilm().encode)


class EmbeddingProvenance:
    """Support by the cosine of embeddings. `embed` maps n texts to an [n, d] array; a segment is embedded once.

    Example:
        step(state, segment, completion, provenance=EmbeddingProvenance(model.encode))
    """

    def __init__(self, embed: Callable[[list[str]], np.ndarray]) -> None:
        self._embed = embed
        self._segment_vectors = lru_cache(maxsize=256)(self._embed_segment)

    def __call__(self, contents: Sequence[str], segment: Segment) -> list[tuple[int, ...]]:
        if not contents or not segment.messages:
            return [() for _ in contents]
        cosines = self._unit_vectors(list(contents)) @ self._segment_vectors(segment).T
        support = []
        for row in cosines:
            ranked = np.argsort(-row, kind="stable")[:MAX_SUPPORT]
            support.append(tuple(int(message) for message in ranked if row[message] >= MIN_COSINE))
        return support

    def _embed_segment(self, segment: Segment) -> np.ndarray:
        return self._unit_vectors([message.content for message in segment.messages])

    def _unit_vectors(self, texts: list[str]) -> np.ndarray:
        vectors = np.asarray(self._embed(texts), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ValueError(f"the embedder returned shape {vectors.shape} for {len(texts)} texts; expected [n, d]")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
