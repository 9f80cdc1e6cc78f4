from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env import MemoryState, step
from memory_env.ingest.chat import ChatMessage
from memory_env.ingest.times import instant
from memory_env.records import Record
from memory_env.store.intake import arrive
from memory_env.store.rows import WrittenSegment
from memory_env.store.store import MemoryStore
from memory_env.store.timeline import in_time, settled
from tests.memory_env.chats import add, update

HOMES = {"2023-01": "lives in Leeds", "2023-06": "lives in Bath", "2024-06": "lives in York"}


def write(store, month):
    """One message of that month; a Writer that adds a home where it knows none, and else updates the one that is current."""
    (part,) = arrive(store, [ChatMessage("Mia", HOMES[month], f"{month}-01T09:00:00")])
    state, counts = store.state(), store.counts()
    heads = state.heads("Mia")
    action = update(heads[0].entry_id, HOMES[month]) if heads else add(HOMES[month], "Mia", "Mia")
    after, report = step(state, part.segment, [action])
    assert report.applied == 1
    records, edges = after.derived(counts["records"]), after.edges(counts["edges"])
    store.append([WrittenSegment(part, "test", "{}", report, after.verbatim(counts["messages"]), records, edges)])
    return settled(after, report.created_ids)


@pytest.mark.parametrize("months", permutations(HOMES))
def test_whatever_the_order_of_imports_the_latest_time_is_now_and_each_time_has_its_own(tmp_path, months):
    with MemoryStore(tmp_path / "m.db") as store:
        for month in months:
            state, put_back = write(store, month)
            assert put_back == (month < max(months[: months.index(month) + 1]))
            # The state that goes on in memory is the one that the file gives.
            assert state.to_dict() == store.state().to_dict() and state.heads() == store.state().heads()
        (head,) = store.state().heads("Mia")
        assert [record.content for record in store.state().chain(head.entry_id)] == list(HOMES.values())
        for month, home in HOMES.items():
            then = store.state(as_of=1 + instant(f"{month}-01T09:00:00"))
            assert [record.content for record in then.heads("Mia")] == [home]


def record(entry_id, ts, links=()):
    return Record(entry_id, entry_id, "Mia", "Mia", "per_speaker_core", "fact", "s1", 0, 0, ts, links=links)


def chain(records):
    state = MemoryState.from_records(records)
    return [each.entry_id for each in state.chain(records[0].entry_id)]


def test_of_equal_times_the_later_made_is_later_and_without_a_time_the_order_of_making_holds():
    assert chain(in_time([record("a", "2024-01-01"), record("b", "2024-01-01", ("a",))], [("a", "b")])) == ["a", "b"]
    assert chain(in_time([record("a", ""), record("b", "", ("a",)), record("c", "", ("b",))], [("a", "b"), ("b", "c")])) == [
        "a", "b", "c",
    ]  # fmt: skip
    assert chain(in_time([record("a", "2024-02-01"), record("b", "", ("a",)), record("c", "2024-01-01", ("b",))],
                         [("a", "b"), ("b", "c")])) == ["c", "a", "b"]  # fmt: skip


def test_a_version_that_is_not_there_still_connects_its_chain():
    records = in_time([record("a", "2023-01-01"), record("c", "2024-01-01", ("b",))], [("a", "b"), ("b", "c")])
    assert [each.superseded_by for each in records] == ["c", ""] and chain(records) == ["a", "c"]


def test_what_no_update_connects_is_untouched():
    records = [record("a", "2024-01-01"), record("b", "2023-01-01")]
    assert in_time(records, []) == records


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_every_chain_runs_forwards_with_one_current_version(days, data):
    records, updates = [], []
    for place, day in enumerate(days):
        old = data.draw(st.integers(0, place - 1)) if place else None
        records.append(record(f"r{place}", f"2024-01-0{day}", () if old is None else (f"r{old}",)))
        updates += [] if old is None else [(f"r{old}", f"r{place}")]
    ordered = in_time(records, updates)
    state = MemoryState.from_records(ordered)
    (head,) = state.heads()
    whole = state.chain(head.entry_id)
    assert len(whole) == len(days) and [each.ts for each in whole] == sorted(each.ts for each in records)
    assert [(edge.old, edge.new) for edge in sorted(state.edges(), key=lambda edge: [r.entry_id for r in whole].index(edge.new))] == [
        (old.entry_id, new.entry_id) for old, new in zip(whole, whole[1:], strict=False)
    ]  # fmt: skip
    assert in_time(ordered, updates) == ordered
