"""Similarity of two contents (Eq. 13, 15), each ordered pair scored once."""

from __future__ import annotations

from collections import Counter

from rewards.tokens import tokenizer as tokenizer_named
from rewards.weights import PAPER, RewardWeights

try:  # compiled, equal to difflib (tests/rewards/test_similarity.py compares them on hostile input)
    from cydifflib import SequenceMatcher
except ImportError:
    from difflib import SequenceMatcher


class Text:
    """A content in normal form: its tokens joined by spaces, their set, and how often each character occurs."""

    __slots__ = ("joined", "tokens", "_characters")

    def __init__(self, tokens: list[str]):
        self.joined = " ".join(tokens)
        self.tokens = frozenset(tokens)
        self._characters: Counter[str] | None = None

    @property
    def characters(self) -> Counter[str]:
        if self._characters is None:
            self._characters = Counter(self.joined)
        return self._characters


class SimilarityCache:
    """Scores contents under one tokenizer and one pair of weights; meant to live as long as one update.

    `text(content)` gives the one `Text` of all contents with the same normal form, so `is` compares normal forms.
    """

    def __init__(self, tokenizer: str = "paper", weights: RewardWeights = PAPER):
        self._tokenize = tokenizer_named(tokenizer)
        self._token_weight, self._sequence_weight = weights.token, weights.sequence
        self._by_content: dict[str, Text] = {}
        self._by_joined: dict[str, Text] = {}
        self._scores: dict[tuple[Text, Text], float] = {}
        self._bounds: dict[tuple[Text, Text], float] = {}

    def text(self, content: str) -> Text:
        found = self._by_content.get(content)
        if found is None:
            fresh = Text(self._tokenize(content))
            found = self._by_content[content] = self._by_joined.setdefault(fresh.joined, fresh)
        return found

    def score(self, prediction: Text, reference: Text) -> float:
        """kbar of Eq. 13 in [0, 1]; 0 if either side has no token. The order of the two matters to Eq. 15."""
        pair = (prediction, reference)
        known = self._scores.get(pair)
        if known is None:
            known = self._scores[pair] = self._combine(prediction, reference, _ratio(prediction, reference))
        return known

    def bound(self, prediction: Text, reference: Text) -> float:
        """At least `score`, without a sequence match: Eq. 15 with the most characters that could match.

        Rounding keeps order (x <= y implies fl(x) <= fl(y) in every operation), so the bound holds to the last bit.
        """
        pair = (prediction, reference)
        known = self._scores.get(pair)
        if known is None:
            known = self._bounds.get(pair)
        if known is None:
            known = self._bounds[pair] = self._combine(prediction, reference, _ratio_bound(prediction, reference))
        return known

    def score_from(self, prediction: Text, reference: Text, threshold: float) -> float:
        """kappa of Eq. 14 for equal coordinates: `score` where it reaches `threshold`, else 0."""
        if prediction.tokens.isdisjoint(reference.tokens) and self._sequence_weight < threshold:
            return 0.0
        if self.bound(prediction, reference) < threshold:
            return 0.0
        score = self.score(prediction, reference)
        return score if score >= threshold else 0.0

    def _combine(self, prediction: Text, reference: Text, sequence: float) -> float:
        if not prediction.tokens or not reference.tokens:
            return 0.0
        return self._token_weight * _token_f1(prediction, reference) + self._sequence_weight * sequence


def text_similarity(a: str, b: str, tokenizer: str = "paper") -> float:
    """kbar of Eq. 13 between a predicted content `a` and a reference content `b`, in [0, 1].

    0.60 F1 over token sets + 0.40 `SequenceMatcher(None, a, b).ratio()` on the tokens joined by spaces.
    Example: text_similarity("Bob likes tea", "bob likes TEA!") == 1.0; text_similarity("", "") == 0.0.
    """
    cache = SimilarityCache(tokenizer)
    return cache.score(cache.text(a), cache.text(b))


def _token_f1(prediction: Text, reference: Text) -> float:
    shared = len(prediction.tokens & reference.tokens)
    if not shared:
        return 0.0
    precision, recall = shared / len(prediction.tokens), shared / len(reference.tokens)
    return 2 * precision * recall / (precision + recall)


def _ratio(prediction: Text, reference: Text) -> float:
    if prediction is reference:
        return 1.0  # as difflib, autojunk or not: of equal strings the first longest match lies on the diagonal
    return SequenceMatcher(None, prediction.joined, reference.joined).ratio()


def _ratio_bound(prediction: Text, reference: Text) -> float:
    if prediction is reference:
        return 1.0
    there = reference.characters
    matches = sum(min(count, there.get(character, 0)) for character, count in prediction.characters.items())
    return 2.0 * matches / (len(prediction.joined) + len(reference.joined) or 1)
