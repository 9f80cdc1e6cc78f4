"""Whom a clause is about, by its words: its speaker, a member, somebody of theirs, or nobody in particular."""

import pytest

from memory_env.query.answer.clauses import addressed, called_upon, clauses

ROSTER = ("Ann", "Bob", "Carol")


def about(text, speaker="Ann"):
    return [(each.subject, each.other, each.of, each.own) for each in clauses(text, speaker, ROSTER)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Rome", ("Ann", "", "", True)),
        ("Moved to Rome", ("Ann", "", "", True)),
        ("Me and Bob went to Rome", ("Ann", "", "", True)),
        ("Bob and I went to Rome", ("Ann", "", "", True)),
        ("Bob lives in Rome", ("Bob", "", "", True)),
        ("Well, Bob lives in Rome", ("Bob", "", "", True)),
        ("My brother lives in Rome", ("", "brother", "Ann", True)),
        ("Bob's cat lives in Rome", ("", "cat", "Bob", True)),
        ("She lives in Rome", ("", "they", "", True)),
        ("lives in Rome", ("", "left out", "", True)),
        ("Tom lives in Rome", ("", "Tom", "", True)),
        ("It is in Rome", ("", "", "", True)),
        ("Bob, you live in Rome", ("Bob", "", "", True)),
        ("[forwarded from Bob] I live in Rome", ("Bob", "", "", False)),
        ("[forwarded] I live in Rome", ("", "", "", False)),
        ("> I live in Rome", ("", "", "", False)),
        ("Bob: I live in Rome", ("Bob", "", "", False)),
    ],
)
def test_the_subject_of_a_clause(text, expected):
    assert about(text) == [expected]


def test_quoted_words_belong_to_whoever_said_them():
    spoken, quoted = clauses('Bob said "I live in Rome" again', "Ann", ROSTER)
    assert (spoken.subject, quoted.subject, quoted.own) == ("Bob", "Bob", False)
    assert clauses('They say "I live in Rome" a lot', "Ann", ROSTER)[-1].subject == ""


def test_clauses_of_one_sentence_have_their_own_subjects():
    assert [subject for subject, *_ in about("He lives in Leeds and I live in York")] == ["", "Ann"]


@pytest.mark.parametrize(
    ("text", "question", "unreal", "negated"),
    [
        ("Where does Bob live", True, False, False),
        ("I wonder where Bob lives", True, False, False),
        ("Bob lives in Rome?", True, False, False),
        ("I wish I lived in Rome", False, True, False),
        ("If I lived in Rome I would swim", False, True, False),
        ("I don't live in Rome", False, False, True),
        ("I live in Rome", False, False, False),
    ],
)
def test_the_kind_of_a_clause(text, question, unreal, negated):
    (found,) = clauses(text, "Ann", ROSTER)
    assert (found.question, found.unreal, found.negated) == (question, unreal, negated)


def test_whom_a_question_is_about_and_whom_it_calls():
    assert addressed(clauses("Bob, do you live in Rome?", "Ann", ROSTER), "Ann", ROSTER) == ("Bob", False)
    assert addressed(clauses("Do you live in Rome?", "Ann", ROSTER), "Ann", ROSTER) == ("", True)
    assert addressed(clauses("Where does Carol live?", "Ann", ROSTER), "Ann", ROSTER) == ("Carol", False)
    assert addressed(clauses("When is the party?", "Ann", ROSTER), "Ann", ROSTER) == ("", False)
    assert called_upon("Hi! Bob, are you there?", ROSTER) == "Bob"
