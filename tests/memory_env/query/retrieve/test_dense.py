"""Dense retrieval with an injected embedder, and with all-MiniLM-L6-v2 where it is installed."""

import subprocess
import sys

import numpy as np
import pytest

from memory_env.datafile import DataError
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.retrieve.dense import CachingEmbedder, minilm, minilm_installed
from memory_env.query.retrieve.similarity import DenseSimilarity
from tests.memory_env.query.memories import evidence_of, memory, message, record


class Planted:
    """Texts on a plane: the first of `angles` whose word is in the text gives the angle in degrees (default 90)."""

    name = "planted"

    def __init__(self, **angles):
        self.angles, self.encoded = angles, []

    def encode(self, texts):
        self.encoded += texts
        turned = [np.deg2rad(next((a for word, a in self.angles.items() if word in text), 90)) for text in texts]
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


def test_scores_are_cosines():
    similarity = DenseSimilarity(["near", "far", "opposite"], Planted(near=60, far=90, opposite=180, query=0))
    assert similarity.scores("query") == pytest.approx([0.5, 0.0, -1.0], abs=1e-6)
    assert similarity.scores("query", np.array([0])) == pytest.approx([0.5], abs=1e-6)
    assert similarity.scores("what is the?").tolist() == [0, 0, 0]  # nothing is asked about
    assert DenseSimilarity([], Planted()).scores("query").tolist() == []


def test_the_floors_of_rows_and_fallback_are_cosines():
    """72 degrees is a cosine of 0.309, 73 of 0.292 (floor 0.30); 75 of 0.259, 76 of 0.242 (floor 0.25)."""
    embedder = Planted(inside=72, outside=73, kept=75, dropped=76, ferry=0)
    state = memory(
        record(0, "Alice", "inside"), record(1, "Bob", "outside"), message(0, "Bob", "kept"), record(2, "Carol", "outside"),
        message(1, "Carol", "dropped"),
    )  # fmt: skip
    evidence = evidence_of("What does every member say of the ferry?", state, QueryPipeline(embedder=embedder))
    alice, bob, carol, zoe = evidence.rows
    assert [item.content for chain in alice.chains for item in chain] == ["inside"]
    assert bob.chains == () and bob.fallback.content == "kept"
    assert carol.empty and zoe.empty


def test_recall_ranks_by_cosine():
    embedder = Planted(first=10, second=20, third=100, ferry=0)
    state = memory(message(0, "Bob", "second"), message(1, "Bob", "third"), message(2, "Bob", "first"))
    evidence = evidence_of("the ferry?", state, QueryPipeline(QueryBudgets(expand_rounds=0), embedder))
    assert [item.content for item in evidence.messages] == ["second", "first"]  # in order; the third points away
    assert evidence.messages[1].score > evidence.messages[0].score


def test_every_text_is_encoded_once():
    inner = Planted(a=10)
    cached = CachingEmbedder(inner)
    assert np.array_equal(cached.encode(["a", "b", "a"]), Planted(a=10).encode(["a", "b", "a"]))
    cached.encode(["b", "c"])
    assert inner.encoded == ["a", "b", "c"]
    small = CachingEmbedder(Planted(a=10), capacity=2)
    for texts in (["a", "b"], ["c"], ["a", "b", "c"]):
        assert small.encode(texts).shape == (len(texts), 2)


def test_a_missing_model_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="no such embedding model"):
        minilm(tmp_path / "nowhere")


def test_retrieval_imports_no_torch(repository):
    code = (
        "import sys, memory_env.query.pipeline, memory_env.query.retrieve.dense, memory_env.query.answer.endpoint, memory_env.query.answer.backends; "
        "print([name for name in ('torch', 'sentence_transformers', 'transformers', 'openai') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]", shown.stderr


@pytest.mark.skipif(not minilm_installed(), reason="all-MiniLM-L6-v2 is not installed (extra embed)")
def test_minilm_finds_what_no_word_shares():
    embedder = minilm()
    state = memory(
        record(0, "Bob", "Bob is employed as a physician"),
        record(1, "Bob", "Bob owns a sailing boat"),
        message(0, "Bob", "I cured a patient"),
    )
    question = "What is the doctor Bob's job?"
    assert evidence_of(question, state).rows[0].chains == ()  # no shared word
    dense = evidence_of(question, state, QueryPipeline(embedder=embedder))
    assert dense.rows[0].chains[0][0].content == "Bob is employed as a physician"
    assert np.linalg.norm(embedder.encode(["any text"])[0]) == pytest.approx(1.0, abs=1e-5)
