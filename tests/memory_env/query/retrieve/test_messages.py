"""System 1: recall, Select, Expand, Sufficiency/ASK and the final cut."""

from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.retrieve.system1 import TermSufficiency
from tests.memory_env.query.memories import CLUB, evidence_of, memory, message, record

PLAIN = {"expand_rounds": 0}


def found(question, state, **budgets):
    return [item.content for item in evidence_of(question, state, QueryPipeline(QueryBudgets(**budgets))).messages]


def test_the_best_messages_come_back_in_conversation_order():
    assert found("What about chess and the pool?", CLUB, s1_k=3, **PLAIN) == [
        "shall we build the pool?",
        "nobody beats Carol at chess",
        "the pool will cost too much",
    ]


def test_a_speakers_name_finds_what_the_speaker_said():
    assert "I could eat olives all day long" in found("What does Alice eat?", CLUB, s1_k=2, **PLAIN)


def test_never_more_than_k_and_nothing_without_a_shared_word():
    assert len(found("the pool picnic chess olives", CLUB, s1_k=2)) == 2
    assert found("zeppelins", CLUB) == []


def test_a_top_k_above_the_recall_pool_recalls_as_many():
    said = memory(*(message(i, "Zoe", f"tea number {i} is mine", turn=i) for i in range(60)))
    assert [len(found("Who drinks tea?", said, s1_k=k, **PLAIN)) for k in (10, 40, 50, 70)] == [10, 40, 50, 60]


def test_expand_adds_the_neighbours_of_a_question_in_its_session_only():
    state = memory(
        message(0, "Alice", "does the ferry run on Sunday?"),
        message(1, "Bob", "it does not"),
        message(2, "Carol", "other session", session="s2", turn=1),
        *(message(10 + i, "Zoe", f"later chatter {i}", turn=10 + i) for i in range(8)),
    )
    with_expand = found("When does the ferry run?", state)
    assert "it does not" in with_expand
    assert "other session" not in with_expand
    assert "later chatter 7" not in with_expand  # more than 5 turns away
    assert found("When does the ferry run?", state, **PLAIN) == ["does the ferry run on Sunday?"]


def test_expansion_is_bounded_by_rounds_and_anchors():
    calls = []

    class Greedy:
        name = "greedy"

        def select(self, question, candidates, k, anchors):
            calls.append(len(candidates))
            order = sorted(range(len(candidates)), key=lambda place: (-candidates[place].score, place))
            return order, order[:anchors]

    state = memory(*(message(i, "Alice", f"ferry {i}" if i == 30 else f"word{i}") for i in range(60)))
    QueryPipeline(selector=Greedy()).evidence("ferry?", QueryPipeline().index(state))
    assert calls == [1, 11, 12]  # 5 turns on both sides of the hit, then one more around its nearest neighbour


def test_ask_searches_once_more_for_what_is_missing_and_only_when_it_is():
    asks = []

    class Asking:
        name = "asking"

        def ask(self, question, messages):
            asks.append([record.content for record in messages])
            return "olives"

    state, question = CLUB, "What about chess?"
    off, on = QueryBudgets(expand_rounds=0), QueryBudgets(expand_rounds=0, ask=True)
    silent = QueryPipeline(off, sufficiency=Asking())
    assert [m.content for m in evidence_of(question, state, silent).messages] == ["nobody beats Carol at chess"] and not asks
    asking = QueryPipeline(on, sufficiency=Asking())
    assert [m.content for m in evidence_of(question, state, asking).messages] == [
        "I could eat olives all day long",
        "nobody beats Carol at chess",
    ]
    assert asks == [["nobody beats Carol at chess"]]


def test_enough_evidence_is_not_asked_about():
    same = [m.content for m in evidence_of("What about chess?", CLUB, QueryPipeline(QueryBudgets(ask=True))).messages]
    assert same == [m.content for m in evidence_of("What about chess?", CLUB).messages]


def test_half_of_the_terms_is_enough_and_less_is_not():
    messages = [message(0, "Bob", "chess and olives")]
    assert TermSufficiency().ask("chess, olives, ferries, geckos?", messages) == ""
    assert TermSufficiency().ask("chess, ferries, geckos?", messages) == "ferry gecko"


def test_full_context_is_every_message_in_order():
    contents = found("anything", CLUB, s1_all=True)
    assert contents == [each.content for each in CLUB.verbatim()]


def test_system_2_never_changes_system_1():
    bare = memory(*CLUB.verbatim())
    for question in ("What about the pool?", "What does Alice eat?", "How are Alice and Bob related?"):
        full, without = evidence_of(question, CLUB), evidence_of(question, bare)
        assert full.messages == without.messages
        assert full.verbatim_only() == without.verbatim_only()


def test_budgets_are_independent():
    question = "What does everyone think of the pool plan?"
    small, large = QueryPipeline(QueryBudgets(s1_k=1)), QueryPipeline(QueryBudgets(s1_k=10))
    assert evidence_of(question, CLUB, small).rows == evidence_of(question, CLUB, large).rows
    few, many = QueryPipeline(QueryBudgets(s2_k=1)), QueryPipeline(QueryBudgets(s2_k=6))
    assert evidence_of(question, CLUB, few).messages == evidence_of(question, CLUB, many).messages


def test_a_record_and_a_message_never_swap_tracks():
    state = memory(message(0, "Bob", "tea"), record(0, "Bob", "Bob drinks tea"))
    evidence = evidence_of("What about tea, Bob?", state)
    assert [item.entry_id for item in evidence.messages] == ["m0"]
    assert [item.entry_id for chain in evidence.rows[0].chains for item in chain] == ["d0"]


def test_a_chat_of_two_messages_is_searched_too():
    """BM25 scores 0 for a term of one message in two, and less for one of both: that is no reason to find nothing."""
    state = memory(message(0, "Bob", "tea please"), message(1, "Alice", "rain"))
    assert found("tea?", state, **PLAIN) == ["tea please"]
    both = memory(message(0, "Bob", "tea please"), message(1, "Alice", "tea and rain"))
    assert found("rain and tea?", both, s1_k=1, **PLAIN) == ["tea and rain"]
