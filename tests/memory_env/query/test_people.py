"""Whom a question names: any part of a name, all of one name, English words that are names, and strangers."""

import pytest

from memory_env.query.people import PeopleProjector, find_people, readings

ROSTER = ("A", "Alice", "Alice (2)", "I", "May", "Sam Lee", "Sam Roy", "Smith, John", "Will", "Zoë K.", "group (member)", "李雷")


def named(question):
    return {each.text: each.members for each in find_people(question, ROSTER)}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does Sam live?", {"Sam": ("Sam Lee", "Sam Roy")}),
        ("Where does sam roy live?", {"sam roy": ("Sam Roy",)}),
        ("What did Lee say?", {"Lee": ("Sam Lee",)}),
        ("Does John know Zoë?", {"John": ("Smith, John",), "Zoë": ("Zoë K.",)}),
        ("What is Alice's job?", {"Alice": ("Alice", "Alice (2)")}),
        ("where does will live?", {"will": ("Will",)}),
        ("What will Will do in May?", {"Will": ("Will",)}),
        ("When will May move?", {"May": ("May",)}),
        ("Will there be cake?", {}),
        ("May I ask who will come?", {}),
        ("Will's birthday?", {"Will": ("Will",)}),
        ("What does A like?", {"A": ("A",)}),
        ("What is I's job?", {"I": ("I",)}),
        ("Do I need a coat?", {}),
        ("李雷喜欢什么", {"李雷": ("李雷",)}),
        ("Where does Peter Pan live?", {"Peter Pan": ()}),
        ("What is Peter's job?", {"Peter": ()}),
        ("Who lives in Oslo?", {}),
        ("What did the group decide?", {}),
    ],
)
def test_names(question, expected):
    assert named(question) == expected


def test_every_reading_of_an_ambiguous_name_is_projected_apart_and_their_rows_together():
    found = readings("What does Sam think of Zoë?", ROSTER)
    assert [(each.projection.source, each.projection.owner) for each in found] == [("Sam Lee", "Zoë K."), ("Sam Roy", "Zoë K.")]
    assert PeopleProjector().project("Where does Sam live?", ROSTER).rows == ("Sam Lee", "Sam Roy")


def test_one_word_means_one_member_throughout_a_question():
    found = readings("Does Sam like what Sam cooks?", ROSTER)
    assert [each.projection.names for each in found] == [("Sam Lee",), ("Sam Roy",)]


def test_names_are_taken_out_of_the_issue_whatever_words_they_are():
    assert readings("where does will live?", ROSTER)[0].projection.issue == "where does live?"
    assert readings("Where does Peter live?", ROSTER)[0].unknown == ("Peter",)
