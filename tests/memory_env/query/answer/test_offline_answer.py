"""The offline answerer: states what memory holds per row, never sees the gold answer."""

import pytest

from memory_env.query.answer.offline import OfflineAnswerer
from memory_env.query.budgets import UNLIMITED
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.protocol import blind
from tests.memory_env.query.memories import CLUB, asked, evidence_of, memory, message, record


def answer(text, state=CLUB, messages_only=False, **fields):
    evidence = evidence_of(text, state)
    return OfflineAnswerer().answer(asked(text, **fields), evidence.verbatim_only() if messages_only else evidence)


@pytest.mark.parametrize(
    "question, expected",
    [
        ("What is Alice's favourite snack?", "Alice: Alice's favourite snack is figs"),
        ("What was Alice's favourite snack before?", "Alice: Alice's favourite snack is olives"),
        ("What was Alice's favourite snack originally?", "Alice: Alice's favourite snack is olives"),
        ("What was Alice's snack before figs?", "Alice: Alice's favourite snack is olives"),
        (
            "How did Alice's favourite snack change?",
            "Alice: Alice's favourite snack is olives\nAlice: Alice's favourite snack is figs",
        ),
        ("What is Bob's view of Carol?", "Carol: Carol is good at chess"),
        ("What did the group decide about the picnic?", "GROUP: The picnic is on Monday at the harbor"),
        ("When is the picnic?", "GROUP: The picnic is on Monday at the harbor"),
        ("How are Alice and Bob related?", "GROUP: Alice and Bob are cousins"),
        (
            "What does every member think of the pool plan?",
            "Alice: Alice supports the pool plan\nBob: Bob opposes the pool plan\nCarol: the pool will cost too much\n"
            "Zoe: nothing recorded",
        ),
        ("What is Zoe's favourite snack?", "Zoe: nothing recorded"),
    ],
)
def test_rows_are_stated_with_the_version_asked_for(question, expected):
    assert answer(question).text == expected


@pytest.mark.parametrize(
    "question, person",
    [
        ("Who said that Carol is good at chess?", "Bob"),
        ("Who noticed that Carol is often late on Friday?", "Alice"),
        ("Who supports the pool plan?", "Alice"),
        ("Which member is good at chess?", "Carol"),
        ("To whom does the no phones rule not apply?", "Bob"),
        ("Who announced that the picnic is on Monday at the harbor?", "Bob"),
    ],
)
def test_a_question_for_a_person_is_answered_with_the_person(question, person):
    assert [line.split(":")[0] for line in answer(question).text.splitlines()] == [person]


def test_two_members_asked_for_are_both_named():
    text = answer("Which two members are cousins?").text
    assert sorted(line.split(":")[0] for line in text.splitlines()) == ["Alice", "Bob"]


def test_memory_is_read_before_messages_and_messages_where_it_is_empty():
    assert answer("Who said that Carol is good at chess?", messages_only=True).text == "Bob: nobody beats Carol at chess"
    assert answer("What is Alice's favourite snack?", messages_only=True).text == "Alice: nothing recorded"


def test_the_last_of_messages_that_fit_alike_holds():
    state = memory(message(0, "Bob", "my bike is blue"), message(1, "Bob", "my bike is green"))
    assert answer("Which colour is Bob's bike?", state).text == "Bob: my bike is green"
    assert answer("Which colour was Bob's bike before?", state, messages_only=True).text == "Bob: my bike is blue"


def test_two_current_records_that_fit_alike_are_both_stated_and_no_third():
    """A Writer that adds instead of updating leaves memory undecided; the reader can't decide for it."""
    state = memory(*(record(i, "Bob", f"Bob lives in {place}") for i, place in enumerate(("Oslo", "Lima", "Rome"))))
    assert answer("Where does Bob live?", state).text.count("\n") == 1
    everything = evidence_of("Where does Bob live?", state, QueryPipeline(UNLIMITED))
    assert len(everything.rows[0].chains) == 3
    assert OfflineAnswerer().answer(asked("Where does Bob live?"), everything).text.count("\n") == 1


@pytest.mark.parametrize(
    "question, options, option",
    [
        ("What is Alice's favourite snack?", {"A": "olives", "B": "figs", "C": "dates"}, "B"),
        ("What was Alice's favourite snack before?", {"A": "olives", "B": "figs", "C": "dates"}, "A"),
        ("Who said that Carol is good at chess?", {"A": "Alice", "B": "Bob", "C": "Carol"}, "B"),
        ("What is Bob's view of the pool?", ["Bob supports the pool plan", "Bob opposes the pool plan"], "B"),
        ("What is Zoe's favourite snack?", {"A": "olives", "B": "figs"}, ""),
        ("What is Alice's favourite snack?", {"A": "figs", "B": "favourite"}, ""),  # both stand in the record
    ],
)
def test_the_option_that_evidence_supports_is_chosen_and_none_is_guessed(question, options, option):
    assert answer(question, options=options).option == option


def test_the_gold_answer_rubric_and_anchors_are_never_seen():
    plain = answer("What is Alice's favourite snack?")
    told = answer(
        "What is Alice's favourite snack?",
        answer="olives",
        correct_option="A",
        evidence_anchors=({"turn_id": "m2"},),
        extra={"rubric": {"items": [{"who": "Alice", "text": "olives"}]}},
    )
    assert plain == told
    hidden = blind(asked("q", answer="olives", correct_option="A", extra={"rubric": 1}))
    assert (hidden.answer, hidden.correct_option, hidden.extra, hidden.category) == ("", "", {}, "")


def test_any_question_gets_an_answer():
    for question in ("", "?", "Who?", "What about GROUP: ALL?", "\n\n", "who who who", "Name the two members who"):
        assert answer(question).text
