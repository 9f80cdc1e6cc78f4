"""Retrieval that finds: questions in other words, full rows, the file's own index, and the same evidence however it was built."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from memory_env.query.budgets import QueryBudgets
from memory_env.query.living import LIVING_BUDGETS, LivingRetrieval
from memory_env.query.retrieve.fused import fuse
from memory_env.query.retrieve.minilm import MiniLM, minilm_here
from memory_env.query.retrieve.terms import terms
from memory_env.store.search import MESSAGES, RECORDS
from tests.memory_env.query.answer.test_attribution import Scripted
from writer_rl import Memory

ROOT = Path(__file__).resolve().parents[3]
CASE, BARE = (
    yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    for name in ("paraphrases.yaml", "paraphrases_without_writer.yaml")
)


def messages_of(case):
    lines = [line.split(": ", 1) for line in case["chat"].splitlines()]
    return [
        ChatMessage(speaker, text, f"2025-03-{1 + minute // 60:02d}T10:{minute % 60:02d}:00")
        for minute, (speaker, text) in enumerate(lines)
    ]


CHAT = messages_of(CASE)
dense = pytest.mark.skipif(not minilm_here(), reason="all-MiniLM-L6-v2 is not installed")


class Words:
    """An embedder without a model: hashed bags of words, the same for every process."""

    name = "words"

    def __init__(self):
        self.encoded = 0

    def encode(self, texts):
        self.encoded += len(texts)
        made = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in terms(text):
                made[row, sum(term.encode()) % 64] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("allotment") / "m.db"
    with Memory(file, Scripted(CASE["records"]), retrieval="lexical") as memory:
        memory.remember(CHAT, window=len(CHAT))
        assert len(memory.state().derived()) == len(CASE["records"])
    return file


def holding(evidence, words):
    texts = [item.content for item in evidence.messages]
    texts += [item.content for row in evidence.rows for chain in row.chains for item in chain]
    texts += [item.content for row in evidence.rows for item in row.said]
    return any(all(word in text for word in words) for text in texts)


def missed(memory, case=CASE):
    return [question for question, words in case["ask"].items() if not holding(memory.retrieval.evidence(question), words)]


@dense
def test_the_fact_is_in_the_evidence_for_fifteen_paraphrases_of_sixteen(path):
    with Memory(path, retrieval="fused") as memory:
        assert len(CASE["ask"]) >= 16
        assert len(missed(memory)) <= len(CASE["ask"]) / 16
        assert LIVING_BUDGETS.s1_k == QueryBudgets().s1_k and LIVING_BUDGETS.s2_k == QueryBudgets().s2_k
        for question in CASE["ask"]:
            evidence = memory.retrieval.evidence(question)
            assert len(evidence.messages) <= 10 and all(len(row.chains) <= 2 and len(row.said) <= 1 for row in evidence.rows)


@dense
def test_the_fact_is_in_the_evidence_for_fifteen_of_sixteen_also_where_no_writer_wrote_records(tmp_path):
    with Memory(tmp_path / "m.db", retrieval="fused") as memory:
        memory.remember(messages_of(BARE))
        assert len(BARE["ask"]) == 16
        assert len(missed(memory, BARE)) <= 1, missed(memory, BARE)


def test_a_members_row_is_never_empty_while_they_have_records(path):
    with Memory(path, retrieval="lexical") as memory:
        for question in ("What is Piet's zodiac sign?", "Where was Greta born?", "Does anybody play the tuba?"):
            rows = memory.retrieval.evidence(question).rows
            assert rows and all(row.chains for row in rows)


@pytest.mark.parametrize("how", ["lexical", "dense", "fused"])
def test_the_evidence_is_the_same_whether_the_index_grew_or_was_made_at_once(tmp_path, how):
    with Memory(tmp_path / "a.db", retrieval=how, embedder=Words()) as grown:
        for start in range(0, len(CHAT), 7):
            grown.remember(CHAT[start : start + 7], gap_hours=1e6)
            grown.retrieval.evidence("Who has the wheelbarrow?")
        with Memory(tmp_path / "b.db", retrieval=how, embedder=Words()) as whole:
            whole.remember(CHAT, window=7, gap_hours=1e6)
            for question in CASE["ask"]:
                mine, theirs = (memory.retrieval.evidence(question).messages for memory in (grown, whole))
                assert [item.content for item in mine] == [item.content for item in theirs]


def test_vectors_are_made_once_and_kept_in_the_file(tmp_path):
    first, again = Words(), Words()
    with Memory(tmp_path / "m.db", retrieval="dense", embedder=first) as memory:
        memory.remember(CHAT)
        memory.retrieval.evidence("Who has the wheelbarrow?")
    with Memory(tmp_path / "m.db", retrieval="dense", embedder=again) as memory:
        memory.retrieval.evidence("Who has the wheelbarrow?")
        assert memory.retrieval.missing() == 0
    assert first.encoded == len(CHAT) + 1 and again.encoded == 1  # the question


def test_vectors_of_another_embedder_are_made_anew(tmp_path):
    class Other(Words):
        name = "other"

    with Memory(tmp_path / "m.db", retrieval="dense", embedder=Words()) as memory:
        memory.remember(CHAT)
        memory.retrieval.evidence("x")
    other = Other()
    with Memory(tmp_path / "m.db", retrieval="dense", embedder=other) as memory:
        memory.retrieval.evidence("wheelbarrow")
    assert other.encoded == len(CHAT) + 1


def test_many_missing_vectors_wait_until_they_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("memory_env.query.living.AT_ONCE", 10)
    with Memory(tmp_path / "m.db", retrieval="fused", embedder=Words()) as memory:
        memory.remember(CHAT)
        assert holding(memory.retrieval.evidence("Who has the wheelbarrow?"), ["wheelbarrow"])  # by its words
        assert memory.retrieval.missing() == len(CHAT) - 10
        seen = []
        assert memory.retrieval.make_vectors(progress=lambda done, of: seen.append((done, of))) == len(CHAT) - 10
        assert seen[-1] == (len(CHAT) - 10, len(CHAT) - 10) and memory.retrieval.missing() == 0


def test_a_file_that_may_only_be_read_is_searched_all_the_same(tmp_path, path):
    copy = tmp_path / "m.db"
    copy.write_bytes(path.read_bytes())
    with Memory(path, retrieval="fused", embedder=Words()) as memory:
        wanted = [memory.retrieval.evidence(question) for question in CASE["ask"]]
    copy.chmod(0o444)
    from memory_env.store import store as store_module

    original = store_module.os.access
    store_module.os.access = lambda file, mode: False if mode == store_module.os.W_OK else original(file, mode)
    try:
        before = copy.read_bytes()
        with Memory(copy, create=False, retrieval="fused", embedder=Words()) as memory:
            assert [memory.retrieval.evidence(question) for question in CASE["ask"]] == wanted
        assert copy.read_bytes() == before
    finally:
        store_module.os.access = original


def test_as_of_a_time_only_what_was_said_by_then_is_found(tmp_path):
    with Memory(tmp_path / "m.db", retrieval="fused", embedder=Words()) as memory:
        memory.remember(CHAT)
        then = memory.retrieval.evidence("Where is the wheelbarrow?", memory_time(CHAT[4].ts))
        assert {item.content for item in then.messages} <= {message.content for message in CHAT[:5]}
        assert then.roster == ("Greta", "Hamid", "Lotte")
        assert "Piet" in memory.retrieval.evidence("Where is the wheelbarrow?").roster


def memory_time(ts):
    from memory_env.ingest.times import instant

    return instant(ts)


def test_fusion_is_the_reciprocal_rank_by_hand():
    rows, scores = np.array([2, 0, 1]), np.array([9.0, 3.0, 3.0])
    assert fuse([(rows, scores)], 4).tolist() == [11 / 12, 11 / 12, 1.0, 0.0]
    both = fuse([(rows, scores), (np.array([1]), np.array([0.5]))], 4)
    assert np.allclose(both, [11 / 24, 11 / 24 + 0.5, 0.5, 0.0])


def test_long_texts_are_cut_to_the_cap_of_characters(tmp_path):
    with Memory(tmp_path / "m.db", retrieval="lexical") as memory:
        memory.remember([ChatMessage("Ann", f"wheelbarrow {n} " + "word " * 5000, f"2025-01-01T10:{n:02d}:00") for n in range(20)])
        retrieval = LivingRetrieval(memory.store, "lexical", most_chars=2000)
        evidence = retrieval.evidence("Where is the wheelbarrow?")
        assert len(evidence.messages) == 10 and sum(len(item.content) for item in evidence.messages) <= 2000


def test_an_unknown_way_of_searching_is_refused(path):
    with Memory(path, retrieval="magic") as memory, pytest.raises(DataError, match="lexical, dense, fused"):
        memory.ask("Who has the wheelbarrow?")


@dense
def test_dense_retrieval_loads_no_torch(path):
    script = (
        "import sys, json\nfrom writer_rl import Memory\n"
        f"with Memory({str(path)!r}, retrieval='fused') as memory: memory.ask('Who has the wheelbarrow?')\n"
        "print(json.dumps(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert json.loads(done.stdout) == []


@dense
def test_minilm_gives_the_vectors_of_sentence_transformers():
    pytest.importorskip("sentence_transformers")
    from memory_env.query.retrieve.dense import minilm

    texts = ["What is Bob's profession?", "", "好", "émile ß", "long " * 400, *(message.content for message in CHAT)]
    mine, theirs = MiniLM().encode(texts), minilm().encode(texts)
    assert np.abs(mine - theirs).max() < 1e-5 and mine.dtype == np.float32
    assert np.allclose(np.linalg.norm(mine, axis=1), 1.0, atol=1e-5)


def test_forgetting_takes_words_and_vectors_too(tmp_path):
    path = tmp_path / "m.db"
    with Memory(path, Scripted(CASE["records"]), retrieval="fused", embedder=Words()) as memory:
        memory.remember(CHAT, window=len(CHAT))
        memory.ask("What does Piet eat?")
        search = memory.retrieval._search
        assert all(len(search.vectors(track)[0]) == memory.store.counts()[track] for track in (MESSAGES, RECORDS))
        assert b"texel" in path.read_bytes() + path.with_name("m.db-wal").read_bytes()
        memory.forget("Piet")
        for track in (MESSAGES, RECORDS):
            left = {place for (place,) in memory.store.connection.execute(f"SELECT place FROM {track}")}
            assert set(search.vectors(track)[0].tolist()) <= left
        assert "Piet" not in memory.retrieval.evidence("Where is Texel?").roster
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir()).lower()
    assert [word for word in (b"texel", b"caravan", b"utrecht") if word in left] == []
