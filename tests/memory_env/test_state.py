import copy
import dataclasses
import gc
import pickle

import pytest

from memory_env.records import Edge, Record
from memory_env.state import MemoryState
from memory_env.step import step
from tests.memory_env.chats import add, segment, update


def grown(n_updates: int = 0):
    """Alice and GROUP have a record each; Alice's is updated `n_updates` times."""
    state, report = step(
        MemoryState.empty(), segment(0), [add("a0"), add("g0", "GROUP", "Bob", "group_insight", "decision")]
    )
    ids = [report.created_ids[0]]
    for number in range(1, n_updates + 1):
        state, report = step(state, segment(number), [update(ids[-1], f"a{number}")])
        ids += report.created_ids
    return state, ids


def test_empty():
    state = MemoryState.empty()
    assert state.to_dict() == {"entries": [], "update_edges": [], "roster": []}
    assert state.get("00000000") is None
    with pytest.raises(KeyError):
        state.chain("00000000")


def test_heads_chain_and_edges_of_an_update_chain():
    state, ids = grown(3)
    assert [record.content for record in state.heads("Alice")] == ["a3"]
    assert [record.content for record in state.heads()] == ["g0", "a3"]
    assert [record.content for record in state.derived()] == ["a0", "g0", "a1", "a2", "a3"]
    assert state.edges() == tuple(Edge(old, new) for old, new in zip(ids, ids[1:], strict=False))
    for entry_id in ids:
        assert [record.content for record in state.chain(entry_id)] == ["a0", "a1", "a2", "a3"]
        assert state.head(entry_id).content == "a3"
    assert state.get(ids[0]).superseded_by == ids[1] and state.get(ids[1]).links == (ids[0],)


def test_edges_stand_in_creation_order_of_new():
    state, report = step(MemoryState.empty(), segment(0), [add("a"), add("b")])
    first, second = report.created_ids
    state, report = step(state, segment(1), [update(second, "b2"), update(first, "a2")])
    assert state.edges() == (Edge(second, report.created_ids[0]), Edge(first, report.created_ids[1]))


def test_what_is_new_since_a_count():
    state, ids = grown(2)
    assert [record.content for record in state.derived(since=2)] == ["a1", "a2"]
    assert len(state.verbatim(since=4)) == 5 and state.edges(since=1) == (Edge(ids[1], ids[2]),)
    assert state.derived(since=99) == ()


def test_a_holder_cannot_change_a_state():
    state, _ = grown()
    before = state.to_dict()
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.roster = ("Mallory",)
    with pytest.raises((AttributeError, TypeError)):
        state.other = 1
    state.to_dict()["entries"].clear()
    state.to_dict()["entries"][0]["links"].append("x")
    state.to_dict()["roster"].append("Mallory")
    assert state.to_dict() == before


def test_a_fork_leaves_its_siblings_and_its_past_alone():
    past, ids = grown(1)
    before = past.to_dict()
    forks = [step(past, segment(2), [update(ids[-1], f"fork {index}"), add(f"new {index}")])[0] for index in range(8)]
    assert past.to_dict() == before
    for index, fork in enumerate(forks):
        assert [record.content for record in fork.heads("Alice")] == [f"fork {index}", f"new {index}"]
        assert fork.derived()[0] is past.derived()[0]


def test_copies_are_free_and_pickles_are_equal():
    state, ids = grown(2)
    assert copy.deepcopy(state) is state and copy.copy(state) is state
    revived = pickle.loads(pickle.dumps(state))
    assert revived == state and revived.to_dict() == state.to_dict()
    after, report = step(state, segment(3), [update(ids[-1], "a3")])
    again, report_again = step(revived, segment(3), [update(ids[-1], "a3")])
    assert (after, report) == (again, report_again)


def test_from_records_rebuilds_a_state():
    state, ids = grown(3)
    state, _ = step(state, segment(4), [update(state.heads("GROUP")[0].entry_id, "g1"), update(ids[-1], "a4")])
    state, _ = step(state, segment(5), [update(head.entry_id, f"{head.content}!") for head in reversed(state.heads())])
    rebuilt = MemoryState.from_records([*state.verbatim(), *state.derived()])
    assert rebuilt == state
    assert rebuilt.to_dict() == state.to_dict()


def test_from_records_takes_what_a_file_may_hold():
    record = Record("aaaaaaaa", "x", "Alice", "Bob", "per_speaker_profile", superseded_by="gone")
    state = MemoryState.from_records([record])
    assert state.roster == ("Alice", "Bob") and state.edges() == () and state.heads() == ()
    assert state.chain("aaaaaaaa") == (record,)
    with pytest.raises(ValueError, match="share an entry id"):
        MemoryState.from_records([record, record])


def test_a_chain_that_loops_in_a_file_ends():
    one = Record("a", "1", "A", "A", "per_speaker_core", links=("b",), superseded_by="b")
    two = Record("b", "2", "A", "A", "per_speaker_core", links=("a",), superseded_by="a")
    assert {record.entry_id for record in MemoryState.from_records([one, two]).chain("a")} == {"a", "b"}


def test_a_memory_of_20000_records_and_a_chain_of_4000_versions():
    state, ids = grown(4000)
    for position in range(5000, 5400):
        state, report = step(state, segment(position), [add(f"fact {position} {index}") for index in range(8)])
        assert report.applied == 8
    assert len(state.derived()) + len(state.verbatim()) > 20_000
    assert len(state.chain(ids[2000])) == 4001 and state.head(ids[0]).content == "a4000"
    assert len(state.edges()) == 4000
    revived = pickle.loads(pickle.dumps(state))
    assert revived == state
    assert copy.deepcopy(state) is state
    del revived, state
    gc.collect()
