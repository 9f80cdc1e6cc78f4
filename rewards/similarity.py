"""Similarity of two contents (Eq. 13, 15), each ordered pair scored once."""

from __future__ import annotations

from rewards.tokens import tokenizer as tokenizer_named
from rewards.weights import PAPER, RewardWeights

try:  # compiled, equal to difflib (tests/rewards/test_similarity.py compares them on hostile input)
    from cydifflib import SequenceMatcher
except ImportError:
    from difflib import SequenceMatcher


class Text:
    """A content in normal form: its tokens joined by spaces, and their set."""

    __slots__ = ("joined", "tokens", "_matcher")

    def __init__(self, tokens: list[str]):
        self.joined = " ".join(tokens)
        self.tokens = frozenset(tokens)
        self._matcher: SequenceMatcher | None = None

    def ratio_of(self, prediction: Text) -> float:
        """Eq. 15 of a prediction against this reference, whose side of the matcher is prepared once."""
        if prediction is self:
            return 1.0  # as difflib, autojunk or not: of equal strings the first longest match lies on the diagonal
        if self._matcher is None:
            self._matcher = SequenceMatcher(None, "", self.joined)
        self._matcher.set_seq1(prediction.joined)
        return self._matcher.ratio()


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
        self._kappas: dict[tuple[Text, Text], float] = {}
        self._threshold = weights.threshold

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
            known = self._scores[pair] = self._combine(prediction, reference, reference.ratio_of(prediction))
        return known

    def bound(self, prediction: Text, reference: Text) -> float:
        """At least `score`, without a sequence match: Eq. 15 with as many characters as could match.

        Rounding keeps order (x <= y implies fl(x) <= fl(y) in every operation), so the bound holds to the last bit.
        """
        pair = (prediction, reference)
        known = self._scores.get(pair)
        if known is None:
            known = self._bounds.get(pair)
        if known is None:
            known = self._bounds[pair] = self._combine(prediction, reference, _ratio_bound(prediction, reference))
        return known

    def kappa(self, prediction: Text, reference: Text) -> float:
        """kappa of Eq. 14 for equal coordinates: `score` where it reaches the threshold, else 0."""
        pair = (prediction, reference)
        known = self._kappas.get(pair)
        if known is None:
            known = self._kappas[pair] = self._score_from_threshold(prediction, reference)
        return known

    def _score_from_threshold(self, prediction: Text, reference: Text) -> float:
        if prediction.tokens.isdisjoint(reference.tokens) and self._sequence_weight < self._threshold:
            return 0.0
        if self.bound(prediction, reference) < self._threshold:
            return 0.0
        score = self.score(prediction, reference)
        return score if score >= self._threshold else 0.0

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


def _ratio_bound(prediction: Text, reference: Text) -> float:
    """Eq. 15 if the shorter of two strings were all in matching blocks."""
    a, b = len(prediction.joined), len(reference.joined)
    return 2.0 * min(a, b) / (a + b or 1)
