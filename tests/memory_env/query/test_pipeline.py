"""The pipeline as a whole: provenance, sharing within a group, determinism, fingerprints."""

from hypothesis import given
from hypothesis import strategies as st

from memory_env.query.budgets import UNLIMITED, QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.source_digest import significant
from memory_env.state import MemoryState
from tests.memory_env.query.memories import CLUB, evidence_of, memory, message, record

QUESTIONS = ("What does every member think of the pool plan?", "What was Alice's favourite snack before?", "Bob's view of Carol?")


def test_every_piece_of_evidence_keeps_owner_source_time_layer_and_its_messages():
    evidence = evidence_of("What is Bob's view of Carol?", CLUB)
    item = evidence.rows[0].chains[0][0]
    assert (item.owner, item.source, item.layer, item.ts) == ("Carol", "Bob", "per_speaker_profile", "2025-01-01")
    assert item.messages == ("m3",) and CLUB.get("m3").content == "nobody beats Carol at chess"
    assert all(each.messages == (each.entry_id,) for each in evidence.messages)


def test_a_group_shares_its_system_1_search():
    searched = []

    class Counting:
        name = "counting"

        def select(self, question, candidates, k, anchors):
            searched.append(question)
            return list(range(len(candidates))), []

    messages = CLUB.verbatim()
    forks = [memory(*messages, record(90 + g, "Bob", f"Bob variant {g}")) for g in range(8)]
    pipeline = QueryPipeline(selector=Counting())
    indexes = pipeline.index_group(forks)
    evidences = [pipeline.evidence("What about chess?", index) for index in indexes]
    assert len(searched) == 1
    assert len({each.messages for each in evidences}) == 1
    assert all(index.verbatim is indexes[0].verbatim for index in indexes)


def test_other_messages_are_not_shared():
    pipeline = QueryPipeline()
    first, second = pipeline.index_group([CLUB, memory(message(0, "Alice", "something else about chess"))])
    assert first.verbatim is not second.verbatim
    assert pipeline.evidence("chess?", second).messages[0].content == "something else about chess"


def test_the_same_state_gives_the_same_evidence_however_it_was_built():
    again = MemoryState.from_records([*CLUB.verbatim(), *CLUB.derived()], CLUB.roster)
    for question in QUESTIONS:
        assert evidence_of(question, CLUB) == evidence_of(question, again)
        assert evidence_of(question, CLUB).key == evidence_of(question, again).key


def test_the_key_sees_what_an_answerer_sees():
    base = evidence_of(QUESTIONS[0], CLUB)
    others = [each for each in CLUB.derived() if each.entry_id != "d7"]
    changed = memory(*CLUB.verbatim(), *others, record(7, "Bob", "Bob doubts the pool plan"))
    assert base.key != evidence_of(QUESTIONS[0], changed).key
    assert base.key != base.verbatim_only().key
    unrelated = memory(*CLUB.verbatim(), *CLUB.derived(), record(99, "Bob", "Bob owns a kayak"))
    assert base.key == evidence_of(QUESTIONS[0], unrelated).key


def test_unlimited_budgets_hold_everything_of_the_named_rows():
    evidence = evidence_of("What does every member and the group know?", CLUB, QueryPipeline(UNLIMITED))
    shown = {item.entry_id for row in evidence.rows for chain in row.chains for item in chain}
    assert shown == {each.entry_id for each in CLUB.heads()}
    assert len(evidence.messages) == len(CLUB.verbatim())


def test_an_empty_memory_answers_with_empty_rows():
    evidence = evidence_of("What does every member think?", memory(roster=("Alice",)))
    assert [row.empty for row in evidence.rows] == [True] and evidence.messages == ()


def test_budgets_are_checked_and_hashed():
    assert QueryBudgets().digest == QueryBudgets().digest != QueryBudgets(s2_k=4).digest
    for wrong in ({"s1_k": -1}, {"s2_floor": 1.5}):
        try:
            QueryBudgets(**wrong)
        except ValueError as error:
            assert next(iter(wrong)) in str(error)
        else:
            raise AssertionError(wrong)


def test_the_fingerprint_names_budgets_and_rules():
    plain, ask = QueryPipeline().fingerprint, QueryPipeline(QueryBudgets(ask=True)).fingerprint
    assert plain["budgets"] != ask["budgets"] and plain["sufficiency"] == "off" and plain["retrieval"].startswith("terms:")


def test_a_source_digest_ignores_comments_docstrings_and_layout_only():
    code = 'def f(x):\n    """Doc."""\n    # why\n    return x + 1  # end\n'
    assert significant(code) == significant("def f(x):\n\n    return (x) + 1\n".replace("(x) +", "x +"))
    assert significant(code) != significant(code.replace("+ 1", "+ 2"))
    assert "kept" in significant('y = "kept"\n')


names = st.sampled_from(["Alice", "Bob", "Carol"])
words = st.sampled_from(["likes", "pool", "plan", "tea", "rain", "chess", "Bob", "Alice", "the", "not"])
contents = st.lists(words, min_size=1, max_size=6).map(" ".join)


@given(
    st.lists(st.tuples(names, contents), max_size=8),
    st.lists(st.tuples(st.sampled_from(["Alice", "Bob", "GROUP"]), names, contents), max_size=8),
    contents,
)
def test_any_memory_and_question_keep_the_structure(messages, records, question):
    state = memory(
        *(message(i, who, text) for i, (who, text) in enumerate(messages)),
        *(record(i, owner, text, source=source) for i, (owner, source, text) in enumerate(records)),
    )
    evidence = evidence_of(f"What does everyone say of {question}?", state)
    assert [row.owner for row in evidence.rows][: len(state.roster)] == list(state.roster)
    for row in evidence.rows:
        assert len(row.chains) <= 2 and len(row.said) <= 1
        assert all(item.owner == row.owner for chain in row.chains for item in chain)
        assert all(item.source == row.owner != item.owner for item in row.said)
        assert row.fallback is None or (not row.chains and row.fallback.source == row.owner)
    assert len(evidence.messages) <= 10 and len({item.entry_id for item in evidence.messages}) == len(evidence.messages)
