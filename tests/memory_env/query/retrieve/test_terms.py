"""Search terms and the lexical match."""

import math

from hypothesis import given
from hypothesis import strategies as st

from memory_env.query.retrieve.similarity import TermSimilarity
from memory_env.query.retrieve.terms import stem, term_match, terms


def test_inflections_meet_and_function_words_go():
    assert terms("What did Bob like about the parties?") == ("bob", "lik", "party")
    for family in (("like", "likes", "liked", "liking"), ("plan", "plans", "planned", "planning"), ("party", "parties")):
        assert len({stem(word) for word in family}) == 1, family


def test_every_script_has_terms():
    assert terms("Zoë liebt Käse") == ("zoë", "liebt", "käse")
    assert terms("我喜欢茶") == ("我", "喜", "欢", "茶")
    assert terms("Привет, мир") == ("привет", "мир")


def test_match_by_hand():
    assert term_match(["pool", "plan"], ["alice", "pool", "plan"]) == 2 / math.sqrt(2 * 3)
    long_question = [f"w{i}" for i in range(20)] + ["pool", "plan"]
    assert term_match(long_question, ["alice", "pool", "plan"]) == 2 / math.sqrt(4 * 3)
    assert term_match([], ["pool"]) == term_match(["pool"], []) == 0.0


texts = st.lists(st.sampled_from(["pool", "plan", "snack", "figs", "rain", "tea", "bob"]), max_size=6).map(" ".join)


WORDS = [f"w{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 5))
def test_a_match_that_ties_a_floor_is_the_same_for_index_and_pair(asked, held, shared):
    """Such as 1 / sqrt(2 * 8) == 0.25, which 1 / (sqrt(2) * sqrt(8)) misses."""
    shared = min(shared, asked, held)
    query, text = " ".join(WORDS[:asked]), " ".join(WORDS[asked - shared : asked - shared + held])
    assert TermSimilarity([text]).scores(query).tolist() == [term_match(terms(query), terms(text))]


@given(st.lists(texts, max_size=6), texts)
def test_the_index_scores_as_the_pairwise_definition(corpus, query):
    expected = [term_match(terms(query), terms(text)) for text in corpus]
    found = TermSimilarity(corpus).scores(query).tolist()
    assert found == expected  # to the last bit, so that both agree on what ties a floor
    assert all(0.0 <= score <= 1.0 for score in found)
