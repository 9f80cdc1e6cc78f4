import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.observation import LINE_OVERHEAD, ObservationLimits, observe
from memory_env.records import Record
from memory_env.state import MemoryState
from memory_env.step import step
from tests.memory_env.chats import add, segment, update


def record(number, owner="Alice", content=None):
    layer = "group_insight" if owner == "GROUP" else "per_speaker_core"
    return Record(f"{number:08x}", content or f"fact {number}", owner, "Bob", layer)


def memory(*records, roster=("Alice", "Bob", "Carol")):
    return MemoryState.from_records(records, roster)


def length(head):
    return len(head.owner + head.source + head.layer + head.content) + LINE_OVERHEAD


def test_what_the_writer_sees():
    state, report = step(
        MemoryState.empty(),
        segment(0, speakers=("Zoe", "Bob")),
        [add("g", "GROUP", "Bob", "group_insight"), add("z", "Zoe", "Bob"), add("b1", "Bob", "Bob"), add("b2", "Bob", "Bob")],
    )
    state, _ = step(state, segment(1, speakers=("Bob",)), [update(report.created_ids[2], "b1, newer")])
    current = segment(2, "hi", speakers=("Alice",))
    seen = observe(state, current)
    assert seen.roster == ("Alice", "Bob", "Zoe")
    assert [head.content for head in seen.heads] == ["g", "z", "b2", "b1, newer"]
    assert (seen.messages, seen.budget, seen.omitted_heads) == (current.messages, 8, 0)
    assert json.loads(json.dumps(seen.to_dict()))["heads"][0]["entry_id"] == seen.heads[0].entry_id
    assert "Alice" not in state.roster


def test_over_the_limit_the_most_similar_heads_of_each_owner_stay_in_creation_order():
    heads = [record(0, content="tea pot"), record(1), record(2, content="tea"), record(3), record(4, owner="Bob")]
    seen = observe(memory(*heads), segment(0, "who drinks tea?"), ObservationLimits(heads_per_owner=2))
    assert [head.entry_id[-1] for head in seen.heads] == ["0", "2", "4"] and seen.omitted_heads == 2


def test_ties_go_to_the_most_recent():
    heads = [record(number, content=f"word{number}") for number in range(5)]
    seen = observe(memory(*heads), segment(0, "nothing alike"), ObservationLimits(heads_per_owner=2))
    assert [head.entry_id[-1] for head in seen.heads] == ["3", "4"]


def test_a_talkative_member_cannot_push_out_the_others():
    chatty = [record(number, content=f"tea {number} " * 50) for number in range(100)]
    quiet = [record(1000, "Carol", "likes dogs"), record(1001, "GROUP", "meets on Mondays")]
    limits = ObservationLimits(max_chars=1500)
    seen = observe(memory(*chatty, *quiet), segment(0, "tea tea"), limits)
    assert {head.owner for head in seen.heads} == {"Alice", "Carol", "GROUP"}
    assert sum(map(length, seen.heads)) <= 1500
    assert seen.omitted_heads == 102 - len(seen.heads)


def test_an_owner_whose_best_head_is_too_long_is_shown_by_a_shorter_one():
    heads = [record(0, content="tea " * 500), record(1, content="x"), record(2, "Bob", "y")]
    seen = observe(memory(*heads), segment(0, "tea"), ObservationLimits(max_chars=300))
    assert [head.content for head in seen.heads] == ["x", "y"]


def test_where_there_is_just_room_for_one_short_head_each_everyone_gets_it():
    heads = [record(0, content="tea " * 8), record(1, content="x"), record(2, "Bob", "y"), record(3, "GROUP", "tea")]
    room = sum(length(head) for head in heads[1:])
    seen = observe(memory(*heads), segment(0, "tea"), ObservationLimits(max_chars=room))
    assert [head.content for head in seen.heads] == ["x", "y", "tea"]


@pytest.mark.parametrize("limits", [ObservationLimits(heads_per_owner=0), ObservationLimits(max_chars=0)])
def test_limits_go_down_to_no_memory_at_all(limits):
    seen = observe(memory(record(0), record(1, "Bob")), segment(0), limits)
    assert seen.heads == () and seen.omitted_heads == 2 and seen.roster == ("Alice", "Bob", "Carol")


def test_negative_limits_are_refused():
    with pytest.raises(ValueError, match="negative"):
        ObservationLimits(heads_per_owner=-1)
    with pytest.raises(ValueError, match="negative"):
        ObservationLimits(max_chars=-1)


OWNERS = st.sampled_from(["Alice", "Bob", "Carol", "GROUP"])
CONTENTS = st.lists(st.sampled_from(["tea", "pot", "dog", "cat", "x" * 80]), min_size=1, max_size=6).map(" ".join)


@given(st.lists(st.tuples(OWNERS, CONTENTS), max_size=25), st.integers(0, 6), st.integers(0, 2000), CONTENTS)
def test_limits_hold_and_every_owner_appears_where_there_is_room(heads, per_owner, chars, text):
    records = [record(number, owner, content) for number, (owner, content) in enumerate(heads)]
    state = memory(*records)
    seen = observe(state, segment(0, text), ObservationLimits(per_owner, chars))
    assert len(seen.heads) + seen.omitted_heads == len(records)
    assert sum(map(length, seen.heads)) <= chars
    owners = list(dict.fromkeys(head.owner for head in seen.heads))
    assert list(seen.heads) == [head for head in state.heads() if head in seen.heads]
    for owner in owners:
        assert len([head for head in seen.heads if head.owner == owner]) <= per_owner
    shortest = [min(map(length, state.heads(owner))) for owner in {head.owner for head in records}]
    if per_owner >= len(records) and sum(shortest) <= chars:
        assert set(owners) == {head.owner for head in records}
    if all(len(state.heads(owner)) <= per_owner for owner in ("Alice", "Bob", "Carol", "GROUP")) and chars >= sum(
        map(length, records)
    ):
        assert seen.omitted_heads == 0
