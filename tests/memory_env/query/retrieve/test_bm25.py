"""BM25 equals rank-bm25's BM25Okapi to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from memory_env.query.retrieve.bm25 import BM25, best

words = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h", "tea", "rain"])
corpora = st.lists(st.lists(words, max_size=8), min_size=1, max_size=12).filter(lambda corpus: any(corpus))


@settings(max_examples=300, deadline=None)
@given(corpora, st.lists(words | st.just("unseen"), max_size=6))
def test_scores_equal_rank_bm25_on_any_corpus(corpus, query):
    assert BM25(corpus).scores(query).tolist() == BM25Okapi(corpus).get_scores(query).tolist()


@pytest.mark.parametrize("k1, b, epsilon", [(1.2, 0.5, 0.1), (2.0, 1.0, 0.25), (1.5, 0.0, 0.0)])
def test_scores_equal_rank_bm25_with_other_parameters(k1, b, epsilon):
    random = np.random.default_rng(0)
    corpus = [[f"w{i}" for i in random.zipf(1.5, size=random.integers(1, 30))] for _ in range(200)]
    for query in corpus[:20]:
        theirs = BM25Okapi(corpus, k1=k1, b=b, epsilon=epsilon).get_scores(query)
        assert BM25(corpus, k1=k1, b=b, epsilon=epsilon).scores(query).tolist() == theirs.tolist()


def test_a_term_in_most_documents_gets_the_epsilon_floor():
    corpus = [["tea", "x"], ["tea", "y"], ["tea", "z"], ["w"]]
    scores = BM25(corpus).scores(["tea"])
    assert scores[0] > 0 and scores[3] == 0  # without the floor its idf, log(1.5 / 3.5), is negative
    assert scores.tolist() == BM25Okapi(corpus).get_scores(["tea"]).tolist()


def test_an_empty_corpus_and_empty_documents_score_nothing():
    assert BM25([]).scores(["tea"]).tolist() == []
    assert BM25([[], []]).scores(["tea"]).tolist() == [0.0, 0.0]


@given(st.lists(st.integers(0, 4), max_size=30), st.integers(0, 35))
def test_best_is_the_stable_descending_order(values, n):
    scores = np.array(values, dtype=float)
    assert best(scores, n) == sorted(range(len(values)), key=lambda i: (-values[i], i))[:n]
