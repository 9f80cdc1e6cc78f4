import difflib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards import text_similarity
from rewards.similarity import SequenceMatcher, SimilarityCache
from rewards.tokens import unicode_tokens
from rewards.weights import RewardWeights
from tests.rewards import plain
from tests.rewards.examples import contents

ALPHABETS = ("ab", "abc ", "abcdefghij ", "a", "\u4e00\u4e01\u4e02 a", "\U0001f600\U00020000é a\ud800", "ab\x00\n")


def hostile_pairs(count, seed):
    """Pairs of strings around the length (200) from which difflib ignores popular characters, related or not."""
    dice = random.Random(seed)
    lengths = (0, 1, 3, 20, 60, 199, 200, 201, 350)
    for _ in range(count):
        alphabet = dice.choice(ALPHABETS)
        a = "".join(dice.choices(alphabet, k=dice.choice(lengths)))
        b = "".join(dice.choices(alphabet, k=dice.choice(lengths)))
        if dice.random() < 0.5:
            edited = list(a)
            for _ in range(dice.randint(0, 6)):
                edited.insert(dice.randrange(len(edited) + 1), dice.choice(alphabet))
                del edited[dice.randrange(len(edited))]
            b = "".join(edited) * dice.choice((1, 1, 2))
        if dice.random() < 0.2:  # a few rare characters among popular ones
            b = "".join(c if dice.random() < 0.97 else chr(97 + dice.randrange(26)) for c in b)
        yield a, b


def test_the_matcher_in_use_is_difflib_to_the_last_bit():
    for a, b in hostile_pairs(5_000, seed=1):
        assert SequenceMatcher(None, a, b).ratio() == difflib.SequenceMatcher(None, a, b).ratio(), (a, b)


@given(st.text(), st.text())
def test_the_matcher_in_use_is_difflib_on_any_text(a, b):
    assert SequenceMatcher(None, a, b).ratio() == difflib.SequenceMatcher(None, a, b).ratio()


def test_equal_strings_have_ratio_one_in_difflib_whatever_is_popular():
    for a, _ in hostile_pairs(800, seed=2):
        assert difflib.SequenceMatcher(None, a, a).ratio() == 1.0


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ("", "", 0.0),
        ("!!", "!!", 0.0),  # no token on either side
        ("tea", "", 0.0),
        ("Bob likes tea", "bob LIKES, tea!", 1.0),
        ("a b", "a c", 0.60 * (2 * 0.5 * 0.5 / 1.0) + 0.40 * (2 * 2 / 6)),
        ("tea tea tea", "tea", 0.60 * 1.0 + 0.40 * (2 * 3 / 14)),  # F1 over sets, the ratio over the strings
        ("xyz", "abc", 0.0),
        ("Зоя", "Зоя", 0.0),  # the paper's rule sees no token
        ("李雷 tea", "tea 雷李", 0.60 * 1.0 + 0.40 * (2 * 5 / 14)),  # "tea " and one character of "李 雷" / "雷 李"
    ],
)
def test_values_by_hand(a, b, value):
    assert text_similarity(a, b) == value


def test_prediction_and_reference_are_not_interchangeable():
    a, b = "tide", "diet"  # the example in difflib's own documentation
    assert text_similarity(a, b) == 0.40 * 0.25
    assert text_similarity(b, a) == 0.40 * 0.5
    cache = SimilarityCache()
    assert cache.score(cache.text(b), cache.text(a)) != cache.score(cache.text(a), cache.text(b))


def test_unicode_tokenizer_compares_what_the_papers_rule_cannot_see():
    assert text_similarity("Зоя любит чай", "Зоя любит чай", tokenizer="unicode") == 1.0
    assert 0.5 < text_similarity("Зоя любит чай", "Зоя любит кофе", tokenizer="unicode") < 1.0
    assert text_similarity("Preferisce il caffè", "preferisce IL CAFFÈ", tokenizer="unicode") == 1.0


@given(contents | st.text(), contents | st.text())
def test_equals_the_plain_definition_under_both_tokenizers(a, b):
    assert text_similarity(a, b) == plain.similarity(a, b)
    assert text_similarity(a, b, "unicode") == plain.similarity(a, b, unicode_tokens)
    assert 0.0 <= text_similarity(a, b) <= 1.0


def test_long_contents_equal_the_plain_definition():
    dice = random.Random(3)
    words = [f"w{n}" for n in range(40)]
    cache = SimilarityCache()
    for _ in range(150):
        a, b = (" ".join(dice.choices(words, k=dice.choice((5, 60, 120)))) for _ in range(2))
        assert cache.score(cache.text(a), cache.text(b)) == plain.similarity(a, b)


@given(st.lists(st.tuples(contents, contents), min_size=1, max_size=8))
def test_a_cache_never_changes_a_value(pairs):
    cache = SimilarityCache()
    for a, b in pairs + pairs[::-1]:
        cache.bound(cache.text(a), cache.text(b))
        assert cache.score(cache.text(a), cache.text(b)) == plain.similarity(a, b)


def words_near(alphabet):
    return st.lists(st.text(alphabet=alphabet, min_size=1, max_size=3), min_size=1, max_size=6).map(" ".join)


@given(words_near("ab"), words_near("ab"), st.floats(0, 1))
def test_pruning_never_drops_a_pair_that_reaches_the_threshold(a, b, threshold):
    value = plain.similarity(a, b)
    for limit in (threshold, value, 0.50):  # `value` itself: the pair ties the threshold
        cache = SimilarityCache(weights=RewardWeights(threshold=limit))
        assert cache.kappa(cache.text(a), cache.text(b)) == (value if value >= limit else 0.0)


@given(words_near("abc"), words_near("abc"))
def test_the_bound_holds_to_the_last_bit(a, b):
    cache = SimilarityCache()
    assert cache.bound(cache.text(a), cache.text(b)) >= plain.similarity(a, b)


def test_a_pair_at_exactly_one_half_matches():
    found = 0
    words = ("a", "b", "ab", "ba", "aab", "abb", "c")
    sides = [f"{x} {y}" for x in words for y in words] + list(words)
    for a in sides:
        for b in sides:
            if plain.similarity(a, b) == 0.50:
                found += 1
                cache = SimilarityCache()
                assert cache.kappa(cache.text(a), cache.text(b)) == 0.50
    assert found >= 2


def test_each_ordered_pair_of_normal_forms_is_scored_once(monkeypatch):
    calls = []

    class Counting(difflib.SequenceMatcher):
        def ratio(self):
            calls.append((self.a, self.b))
            return super().ratio()

    monkeypatch.setattr("rewards.similarity.SequenceMatcher", Counting)
    cache = SimilarityCache()
    for _ in range(3):
        for a, b in (("Bob likes tea", "Bob likes green tea"), ("bob LIKES tea.", "bob likes green, tea")):
            cache.kappa(cache.text(a), cache.text(b))
    assert calls == [("bob likes tea", "bob likes green tea")]
    cache.kappa(cache.text("Bob likes tea"), cache.text("Bob is in the Berlin office until the end of the week"))
    assert len(calls) == 1  # its bound is under the threshold


def test_other_weights_are_used():
    cache = SimilarityCache(weights=RewardWeights(token=1.0, sequence=0.0))
    assert cache.score(cache.text("a b"), cache.text("b a")) == 1.0
