"""What the rewards of one policy update share: weights, tokenizer, and everything compared so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from rewards.similarity import SimilarityCache
from rewards.terms import WeightedTerm
from rewards.weights import PAPER, RewardWeights

T = TypeVar("T")


class Scorer:
    """One per policy update (or evaluation): trajectories of a group repeat each other, and repeats are looked up.

    Values never depend on what was scored before. `clear()` frees the memory and keeps the settings.
    """

    def __init__(self, weights: RewardWeights = PAPER, tokenizer: str = "paper", terms: tuple[WeightedTerm, ...] = ()):
        self.weights = weights
        self.terms = terms
        self.tokenizer = tokenizer
        self.clear()

    def clear(self) -> None:
        self.similarity = SimilarityCache(self.tokenizer, self.weights)
        self._matched: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """`compute()` the first time `key` is seen, the same value afterwards."""
        value: T | None = self._matched.get(key)
        if value is None:
            value = self._matched[key] = compute()
        return value
