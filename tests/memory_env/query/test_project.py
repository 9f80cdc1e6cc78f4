"""Project: rows, issue, mode and the source-owner constraint of a question."""

import pytest

from memory_env.query.project import RuleProjector

ROSTER = ("Alice", "Bob", "Carol", "Zoe")


def project(question, roster=ROSTER):
    return RuleProjector().project(question, roster)


@pytest.mark.parametrize(
    "question",
    [
        "What does every person drink?",
        "What is each member's stance on the pool?",
        "What does everyone think of the pool?",
        "What was each family member's position?",
        "All four collective members gave their positions. What was each person's stance?",
        "List, for all of the members, what they drink.",
    ],
)
def test_everyone_is_one_row_per_member(question):
    projection = project(question)
    assert projection.scope == "ALL"
    assert projection.rows[: len(ROSTER)] == ROSTER


@pytest.mark.parametrize(
    "question", ["What is the final decision?", "What did the group decide about the picnic?", "When does the rule apply?"]
)
def test_group_matters_are_the_group_row(question):
    assert project(question).rows == ("GROUP",)


@pytest.mark.parametrize(
    "question",
    [
        "What is Alice's view of Bob?",
        "What does Alice think of Bob?",
        "What did Alice tell the group about Bob?",
        "According to Alice, what is Bob's hobby?",
        "How does Alice describe Bob?",
        "What did Alice say that Bob likes?",
    ],
)
def test_a_view_fixes_source_and_owner(question):
    projection = project(question)
    assert (projection.source, projection.owner, projection.rows) == ("Alice", "Bob", ("Bob",))


@pytest.mark.parametrize("question", ["What does Alice drink with Bob?", "How are Alice and Bob related?", "What is Bob's job?"])
def test_naming_two_members_alone_is_no_view(question):
    assert project(question).source == ""


def test_two_members_also_read_the_group_row():
    assert project("How are Alice and Bob related?").rows == ("Alice", "Bob", "GROUP")


@pytest.mark.parametrize(
    "question, mode",
    [
        ("What did Alice think before?", "full"),
        ("What was Alice's pet before it changed?", "full"),
        ("Before the last change, what was Alice's pet?", "full"),
        ("What did Alice use to drink, and what did she previously eat?", "full"),
        ("How did Alice's view of the pool change?", "full"),
        ("How has Alice's job changed over time?", "full"),
        ("What does Alice drink now?", "head"),
        ("After all changes, what is Alice's pet?", "head"),
        ("What does Alice drink before the meeting starts at noon today in town?", "head"),
    ],
)
def test_time_is_head_unless_the_past_is_asked(question, mode):
    assert project(question).mode == mode


def test_the_issue_has_no_names_and_no_time_cues():
    projection = project("After all changes, what is Alice's favourite snack now?")
    assert "Alice" not in projection.issue and "now" not in projection.issue and "change" not in projection.issue
    assert "favourite snack" in projection.issue


def test_a_scene_before_a_colon_is_not_the_issue():
    projection = project("Bob left the group: where does Bob live?")
    assert projection.rows == ("Bob",) and "left" not in projection.issue


def test_a_question_that_names_nobody_reads_every_row():
    projection = project("Who drinks tea?")
    assert projection.scope == "ANY" and projection.rows == (*ROSTER, "GROUP")


def test_nothing_in_a_question_breaks_the_rules():
    for question in ("", "?", "Alice", "GROUP ALL", "\x00\ud800", "what " * 5000):
        assert project(question).rows
    assert project("What does every person drink?", ()).rows in ((), ("GROUP",))
