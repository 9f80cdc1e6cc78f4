from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.datafile import DataError
from memory_env.provenance import EmbeddingProvenance, lexical_provenance, named_provenance
from memory_env.query.retrieve import dense
from memory_env.state import MemoryState
from memory_env.step import step
from memory_env.text import words
from tests.memory_env.chats import add, segment


def squared_cosine(a, b):
    """Of word counts, by its definition and exactly: of two equal cosines no rounding makes one the larger."""
    left, right = Counter(words(a)), Counter(words(b))
    norms = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    return Fraction(sum(left[word] * right[word] for word in left) ** 2, norms or 1)


SENTENCES = st.lists(st.sampled_from(["tea", "Tea", "pot", "my", "dog", "is", "很", "好", "Ünal", "2"]), max_size=7).map(" ".join)


def test_the_most_similar_messages_support_a_record():
    current = segment(0, "dogs are fine", "I moved to Leeds in May", "ok", "Leeds, in May?")
    assert lexical_provenance(["Alice moved to Leeds in May"], current) == [(1, 3)]


def test_at_most_three_and_none_below_a_quarter():
    current = segment(0, "tea", "tea", "tea please", "tea")
    assert lexical_provenance(["tea"], current) == [(0, 1, 3)]
    # cosine exactly 1/4: one word of 16 in common with a single word
    sixteen = " ".join(["tea", *(f"w{number}" for number in range(15))])
    assert lexical_provenance([sixteen], segment(0, "tea")) == [(0,)]
    assert lexical_provenance([sixteen + " w15"], segment(0, "tea")) == [()]
    assert lexical_provenance(["", "!!", "coffee"], current) == [(), (), ()]


@given(st.lists(SENTENCES, max_size=4), st.lists(SENTENCES, min_size=1, max_size=5))
def test_it_is_the_cosine_of_word_counts(contents, texts):
    for content, support in zip(contents, lexical_provenance(contents, segment(0, *texts)), strict=True):
        cosines = [squared_cosine(content, text) for text in texts]
        ranked = sorted(range(len(texts)), key=lambda index: (-cosines[index], index))
        assert list(support) == [index for index in ranked if cosines[index] >= Fraction(1, 16)][:3]


class Embedder:
    """Texts about tea point one way, all others another; counts what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        return np.array([[2.0, 0.0] if "tea" in text else [0.0, 3.0] for text in texts])


def test_an_embedder_is_used_where_it_is_given_and_sees_a_segment_once():
    embed = Embedder()
    provenance = EmbeddingProvenance(embed)
    current = segment(0, "green tea", "a dog", "black tea")
    for fork in range(8):
        state, report = step(MemoryState.empty(), current, [add("tea for two"), add(f"cat {fork}")], provenance=provenance)
        support = [[state.get(source).content for source in state.get(entry_id).from_ids] for entry_id in report.created_ids]
        assert support == [["green tea", "black tea"], ["a dog"]]
    assert embed.asked.count(["green tea", "a dog", "black tea"]) == 1
    assert len(embed.asked) == 9


def test_a_provenance_is_chosen_by_name(monkeypatch):
    assert named_provenance("lexical") is lexical_provenance
    with pytest.raises(DataError, match="lexical, minilm"):
        named_provenance("bert")
    monkeypatch.setattr(dense, "MINILM_PACKAGE", "no_such_package")
    with pytest.raises(DataError, match="not installed"):
        named_provenance("minilm")


@pytest.mark.skipif(not dense.minilm_installed(), reason="all-MiniLM-L6-v2 is not installed (extra embed)")
def test_embeddings_find_a_message_that_shares_no_word():
    current = segment(0, "my physician cured me", "the ferry leaves at noon")
    assert named_provenance("minilm")(["visits a doctor"], current) == [(0,)]
    assert lexical_provenance(["visits a doctor"], current) == [()]


def test_ties_go_to_the_earliest_message_however_many_there_are():
    current = segment(0, *["dog", "cat", "tea"] * 40)
    assert EmbeddingProvenance(Embedder())(["tea"], current) == lexical_provenance(["tea"], current) == [(2, 5, 8)]


def test_nothing_is_embedded_for_an_output_that_writes_nothing():
    embed = Embedder()
    for completion in ("garbage", '{"actions": [{"action": "NOOP"}]}', '{"actions": [{"action": "ADD"}]}'):
        step(MemoryState.empty(), segment(0), completion, provenance=EmbeddingProvenance(embed))
    assert embed.asked == []


def test_a_zero_vector_supports_nothing_and_a_wrong_shape_is_named():
    assert EmbeddingProvenance(lambda texts: np.zeros((len(texts), 4)))(["x"], segment(0, "y")) == [()]
    with pytest.raises(ValueError, match="embedder returned shape"):
        EmbeddingProvenance(lambda texts: np.zeros(4))(["x"], segment(0, "y"))
