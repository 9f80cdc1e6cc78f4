"""System 2's rows: one per member or GROUP, never crowding each other out."""

import pytest

from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from tests.memory_env.query.memories import CLUB, ROSTER, evidence_of, memory, message, record


def row(evidence, owner):
    return next(each for each in evidence.rows if each.owner == owner)


def contents(found):
    return [[item.content for item in chain] for chain in found.chains]


def test_every_person_gives_one_row_per_roster_member_and_a_silent_one_an_explicit_empty_row():
    evidence = evidence_of("What does every person think of the pool plan?", CLUB)
    assert [each.owner for each in evidence.rows] == list(ROSTER)
    assert row(evidence, "Zoe").empty
    assert contents(row(evidence, "Alice")) == [["Alice supports the pool plan"]]


def test_the_final_decision_is_the_group_row():
    evidence = evidence_of("What is the final decision about the picnic?", CLUB)
    assert [each.owner for each in evidence.rows] == ["GROUP"]
    assert contents(evidence.rows[0])[0] == ["The picnic is on Monday at the harbor"]


def test_a_view_reads_owner_and_source_alone():
    evidence = evidence_of("What is Bob's view of Carol?", CLUB)
    assert contents(row(evidence, "Carol")) == [["Carol is good at chess"]]  # Alice's record about Carol is not Bob's view
    assert all(item.source == "Bob" for each in evidence.rows for chain in each.chains for item in chain)


def test_before_reads_the_full_chain_and_now_its_head():
    before = evidence_of("What was Alice's favourite snack before?", CLUB)
    assert contents(row(before, "Alice"))[0] == ["Alice's favourite snack is olives", "Alice's favourite snack is figs"]
    assert [item.current for item in row(before, "Alice").chains[0]] == [False, True]
    now = evidence_of("What is Alice's favourite snack?", CLUB)
    assert contents(row(now, "Alice"))[0] == ["Alice's favourite snack is figs"]


def test_a_chain_found_by_its_old_version_is_shown_whole():
    state = memory(record(0, "Bob", "Bob drinks tea at breakfast", new=1), record(1, "Bob", "Bob orders juice", old=0))
    evidence = evidence_of("What about tea at breakfast did Bob previously say?", state)
    assert contents(row(evidence, "Bob")) == [["Bob drinks tea at breakfast", "Bob orders juice"]]


def test_a_rarely_heard_member_is_never_crowded_out():
    loud = [record(i, "Alice", f"Alice supports the pool plan for reason {i}") for i in range(50)]
    state = memory(*loud, record(50, "Zoe", "Zoe doubts the pool plan"))
    evidence = evidence_of("What does everyone think of the pool plan?", state)
    assert contents(row(evidence, "Zoe")) == [["Zoe doubts the pool plan"]]
    assert len(row(evidence, "Alice").chains) == 2


def test_a_row_does_not_depend_on_other_rows():
    alone = evidence_of("What does Bob think of the pool plan?", CLUB)
    together = evidence_of("What does everyone think of the pool plan?", CLUB)
    assert row(alone, "Bob").chains == row(together, "Bob").chains


def test_the_floor_keeps_unrelated_records_out():
    evidence = evidence_of("What is Alice's opinion on winter tyres?", CLUB)
    assert row(evidence, "Alice").chains == ()


def test_an_empty_row_falls_back_to_the_members_best_message_else_stays_empty():
    state = memory(
        message(0, "Zoe", "I fed my gecko crickets"), message(1, "Zoe", "nice weather"), message(2, "Bob", "gecko gecko")
    )
    fallback = row(evidence_of("Who owns a gecko, is it Zoe with her gecko?", state), "Zoe").fallback
    assert fallback is not None and fallback.content == "I fed my gecko crickets"
    assert row(evidence_of("What is Zoe's opinion on winter tyres?", state), "Zoe").empty


def test_what_a_member_says_of_others_supplements_its_row_without_using_its_budget():
    evidence = evidence_of("Is Bob good at chess?", CLUB)
    assert [item.content for item in row(evidence, "Bob").said] == ["Carol is good at chess"]
    none = QueryPipeline(QueryBudgets(source_k=0))
    assert row(evidence_of("Is Bob good at chess?", CLUB, none), "Bob").said == ()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_at_most_k_records_a_row_the_newest_among_equals(k):
    state = memory(*(record(i, "Bob", f"Bob likes tea number{i}") for i in range(5)))
    evidence = evidence_of("What tea does Bob like?", state, QueryPipeline(QueryBudgets(s2_k=k)))
    assert contents(row(evidence, "Bob")) == [[f"Bob likes tea number{4 - i}"] for i in range(k)]


def test_views_can_be_switched_off():
    question = "What does everyone think of the group's pool plan?"
    no_group = evidence_of(question, CLUB, QueryPipeline(QueryBudgets(s2_group=False)))
    assert [each.owner for each in no_group.rows] == list(ROSTER)
    no_person = evidence_of(question, CLUB, QueryPipeline(QueryBudgets(s2_person=False)))
    assert [each.owner for each in no_person.rows] == ["GROUP"]


def test_long_chains_and_circles_of_a_hostile_file_end():
    from memory_env.records import Edge
    from memory_env.trajectory import ReferenceState

    records = [record(i, "Bob", f"Bob likes tea number{i}", new=i + 1 if i < 3000 else None) for i in range(3001)]
    chain = row(evidence_of("How did the tea that Bob likes change?", memory(*records)), "Bob").chains[0]
    assert [item.content for item in chain][-1] == "Bob likes tea number3000" and len(chain) == 3001

    class Circle(ReferenceState):
        def verbatim(self):
            return ()

    edges = (Edge("d0", "d1"), Edge("d1", "d0"), Edge("d0", "d2"), Edge("gone", "d2"))
    state = Circle(tuple(record(i, "Bob", f"tea {i}") for i in range(3)), edges, ("Bob",))
    assert evidence_of("What tea did Bob like before?", state).rows[0].chains
