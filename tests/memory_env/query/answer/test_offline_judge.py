"""The offline judge is strict: right person, right time, nothing wrong beside it, no list of everything."""

import os
import subprocess
import sys

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


@pytest.mark.parametrize(
    "names, text, speaker",
    [
        (("Jo", "John"), "John likes figs.", "John"),
        (("Jo", "John"), "Jo likes figs.", "Jo"),
        (("Jo", "Jo Ann"), "Jo Ann likes figs.", "Jo Ann"),
        (("Jo", "Jo Ann"), "So Jo likes figs.", "Jo"),
        (("Ann", "Jo Ann"), "Jo Ann likes figs.", "Jo Ann"),
        (("Jo", "Bob"), "Jo-Ann likes figs.", ""),  # somebody else
        (("O", "Bob"), "O'Hara likes figs.", ""),
        (("J", "J.R."), "J.R. likes figs.", "J.R."),
        (("J.R.", "Bob"), "J.R.'s snack is figs.", "J.R."),
        (("Bob", "D'Arcy"), "D'Arcy likes figs.", "D'Arcy"),
        (("Zoe\u0301", "Zoe"), "Zoé likes figs.", "Zoé"),
        (("王", "王明"), "王明喜欢figs。", "王明"),
        (("Jo", "John"), "Jo and John like figs.", ""),  # two persons: nobody's
    ],
)
def test_a_sentence_belongs_to_the_whole_name_it_holds(names, text, speaker):
    for who in names:
        rubric = {"items": [{"who": who, "text": "figs"}], "wrong": [{"who": other, "text": "x"} for other in names]}
        mine = bool(speaker) and len(who) == max(map(len, names)) if speaker == "Zoé" else who == speaker
        assert verdict(text, rubric).correct is mine, who


TWO = "John likes tea. Jo likes coffee."


@pytest.mark.parametrize(
    "gold, text, score",
    [
        (TWO, "John: likes tea\nJo: likes coffee", 1.0),
        (TWO, "Jo: likes coffee\nJohn: likes tea", 1.0),
        (TWO, "Jo: likes tea\nJohn: likes coffee", 0.0),
        ("Jo Ann likes tea. Jo likes coffee.", "Jo: likes coffee\nJo Ann: likes tea", 1.0),
        ("Jo Ann likes tea. Jo likes coffee.", "Jo: likes tea\nJo Ann: likes coffee", 0.0),
        ("Jo Ann likes tea.", "Jo: likes tea", 0.0),  # the question names Jo Ann whole
        ("Jo likes tea.", "Jo: likes tea", 1.0),
        ("J.R. likes tea. Jo likes coffee.", "J.R.: likes tea\nJo: likes coffee", 1.0),
        ("J.R. likes tea. Jo likes coffee.", "J.R.: likes coffee\nJo: likes tea", 0.0),
    ],
)
def test_a_gold_sentence_is_covered_by_the_one_it_opens_with(gold, text, score):
    question = asked("What do Jo Ann, Jo and John drink?", answer=gold)
    assert OfflineJudge().judge(question, Answer(text)).score == score


def test_no_verdict_depends_on_the_hash_seed(repository):
    """Names, reasons and scores, in processes that order sets differently."""
    script = """
from memory_env.query.answer.offline import OfflineJudge
from memory_env.query.protocol import Answer
from tests.memory_env.query.memories import asked
names = ["Jo", "John", "Jo Ann", "Johnny", "J", "J.R."]
for name in names:
    gold = asked("What does everyone drink?", answer=f"{name} likes tea. {name[::-1]} likes rum.")
    print(OfflineJudge().judge(gold, Answer("\\n".join(f"{who}: tea" for who in names))))
    wrong = [{"who": who, "text": "rum"} for who in names]
    rubric = asked("What?", extra={"rubric": {"items": [{"who": name, "text": "tea"}], "wrong": wrong}})
    print(OfflineJudge().judge(rubric, Answer(f"{name} likes tea. John and Jo like rum.")))
    print(OfflineJudge().judge(rubric, Answer("\\n".join(f"{who}: likes thing {i}" for who in names for i in range(5)))))
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", script], cwd=repository, env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "2", "3")
    }  # fmt: skip
    assert len(found) == 1 and found.pop().count("Verdict") == 18
