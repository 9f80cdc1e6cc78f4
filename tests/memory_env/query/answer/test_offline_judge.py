"""The offline judge is strict: right person, right time, nothing wrong beside it, no list of everything."""

import pytest

from memory_env.query.answer.offline import OfflineJudge
from memory_env.query.protocol import Answer, JudgeError
from tests.memory_env.query.memories import asked

SNACK = {"items": [{"who": "Alice", "text": "figs"}], "wrong": [{"who": "Alice", "text": "olives"}]}
STANCES = {
    "items": [
        {"who": "Alice", "text": "supports the pool"},
        {"who": "Bob", "text": "opposes the pool"},
        {"who": "Zoe", "text": "nothing"},
    ],
    "wrong": [],
}
SOURCE = {"items": [{"who": "Bob", "text": ""}], "wrong": []}
HISTORY = {"items": [{"who": "Alice", "text": "olives"}, {"who": "Alice", "text": "figs"}], "wrong": []}


def verdict(text, rubric=None, option="", **fields):
    extra = {"rubric": rubric} if rubric else {}
    return OfflineJudge().judge(asked("What?", extra=extra, **fields), Answer(text, option))


@pytest.mark.parametrize(
    "text, correct, score",
    [
        ("Alice: Alice's favourite snack is figs", True, 1.0),
        ("Alice's favourite snack is Figs.", True, 1.0),  # a sentence that names one person of the rubric
        ("Bob: figs", False, 0.0),  # right words, wrong person
        ("Alice: olives", False, 0.0),  # outdated
        ("Alice: figs\nAlice: olives", False, 0.0),  # right and wrong
        ("Alice: nothing recorded", False, 0.0),
        ("", False, 0.0),
        ("Alice: she likes to eat", False, 0.0),
    ],
)
def test_one_item(text, correct, score):
    found = verdict(text, SNACK)
    assert (found.correct, found.score) == (correct, score), found.reason


@pytest.mark.parametrize(
    "text, correct, score",
    [
        ("Alice: supports the pool plan\nBob: opposes the pool plan\nZoe: nothing recorded", True, 1.0),
        ("Alice: supports the pool plan\nBob: opposes the pool plan\nZoe: loves the pool", False, 2 / 3),
        ("Alice: supports the pool plan\nBob: opposes the pool plan", False, 2 / 3),  # the silent member is left out
        ("Alice: opposes the pool plan\nBob: supports the pool plan\nZoe: nothing recorded", False, 1 / 3),
        ("Alice: supports the pool plan", False, 1 / 3),
    ],
)
def test_stances_are_scored_by_the_fraction_of_members_right(text, correct, score):
    found = verdict(text, STANCES)
    assert (found.correct, found.score) == (correct, pytest.approx(score)), found.reason


def test_a_person_as_the_answer_admits_no_second_one():
    assert verdict("Bob: Carol is good at chess", SOURCE).correct
    assert not verdict("Bob: Carol is good at chess\nAlice: Carol is good at chess", SOURCE).correct
    assert not verdict("Carol: Bob said Carol is good at chess", SOURCE).correct


def test_an_answer_that_lists_everything_is_wrong():
    everything = "\n".join(f"Alice: likes {what}" for what in ("tea", "figs", "rain", "chess", "dates"))
    assert not verdict(everything, SNACK).correct
    long = "Alice: figs " + " ".join(f"word{i}" for i in range(60))
    assert not verdict(long, SNACK).correct


def test_order_counts_where_the_question_is_about_time():
    right, wrong = "Alice: first olives\nAlice: now figs", "Alice: figs\nAlice: olives"
    assert verdict(right, HISTORY, temporal_anchors=({"turn_id": "t"},)).correct
    assert not verdict(wrong, HISTORY, temporal_anchors=({"turn_id": "t"},)).correct
    assert verdict(wrong, HISTORY).correct
    assert verdict("Alice: first olives, then figs", HISTORY, temporal_anchors=({"turn_id": "t"},)).correct


@pytest.mark.parametrize(
    "answer, option, correct",
    [
        ("figs", "B", True),
        ("olives", "A", False),
        ("figs", "", True),
        ("B", "", True),
        ("(B) figs", "", True),
        ("B or A", "", False),
        ("", "", False),
    ],
)
def test_multiple_choice_is_the_exact_option(answer, option, correct):
    found = verdict(answer, option=option, options={"A": "olives", "B": "figs"}, correct_option="B")
    assert (found.correct, found.score) == (correct, float(correct))


@pytest.mark.parametrize(
    "gold, text, correct",
    [
        ("7 May 2023", "Caroline: I went there on 7 May 2023", True),
        ("7 May 2023", "Caroline: I went there in June", False),
        ("Caroline moved to Sweden.", "Caroline: moved to Sweden", True),
        ("Caroline moved to Sweden.", "Melanie: moved to Sweden", False),
        ("Not mentioned in the conversation", "Melanie: nothing recorded", True),
        ("Not mentioned in the conversation", "Melanie: she likes pottery", False),
        ("pottery", "Caroline: pottery " + " ".join(f"word{i}" for i in range(60)), False),
    ],
)
def test_without_a_rubric_the_gold_words_are_demanded_of_the_right_person(gold, text, correct):
    found = OfflineJudge().judge(asked("What did Caroline do?", answer=gold), Answer(text))
    assert found.correct is correct, found.reason


def test_partial_credit_without_a_rubric_is_the_share_of_gold_sentences():
    found = OfflineJudge().judge(asked("What?", answer="Bob runs marathons. Bob bakes bread."), Answer("Bob: runs marathons"))
    assert (found.correct, found.score) == (False, 0.5)


@pytest.mark.parametrize("rubric", [{"items": []}, {"items": ["figs"]}, ["figs"], "figs"])
def test_a_rubric_that_cannot_be_read_is_a_failure_not_a_score(rubric):
    with pytest.raises(JudgeError, match="rubric"):
        verdict("Alice: figs", rubric, id="q7")


def test_no_gold_answer_is_a_failure_not_a_score():
    with pytest.raises(JudgeError, match="q7"):
        verdict("Alice: figs", id="q7")
