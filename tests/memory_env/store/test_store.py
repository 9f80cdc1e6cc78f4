import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env import MemoryState, step
from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from memory_env.ingest.times import instant
from memory_env.store.intake import arrive
from memory_env.store.keys import message_keys
from memory_env.store.rows import WrittenSegment
from memory_env.store.store import MemoryStore
from tests.memory_env.chats import NOOP, add

START = datetime(2024, 5, 1, 10)


def told(texts, speaker="Ann", minutes=1, start=START, **fields):
    return [
        ChatMessage(speaker, text, (start + timedelta(minutes=minutes * i)).isoformat(), **fields) for i, text in enumerate(texts)
    ]


def write(store, messages, outputs=None, window=2):
    """Write what is new, `outputs[position](state)` or a NOOP at each position; the state after it."""
    state = store.state()
    for part in arrive(store, messages, window):
        before = store.counts()
        actions = outputs[part.segment.position](state) if outputs and part.segment.position in outputs else [NOOP]
        after, report = step(state, part.segment, actions)
        assert not report.errors
        records, edges = after.derived(before["records"]), after.edges(before["edges"])
        store.append([WrittenSegment(part, "test", "{}", report, after.verbatim(before["messages"]), records, edges)])
        state = after
    return state


def ann(content):
    return add(content, owner="Ann", source="Ann")


def changed(content):
    return lambda state: [{"action": "UPDATE", "entry_id": state.heads("Ann")[0].entry_id, "content": content}]


MOVES = {0: lambda state: [ann("lives in Leeds")], 1: changed("lives in York"), 2: changed("lives in Bath")}


def test_what_is_read_is_what_was_written(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        state = write(store, told(["I live in Leeds", "b", "moved to York", "d", "now Bath", "f"]), MOVES)
    with MemoryStore(tmp_path / "m.db") as store:
        again = store.state()
    assert again.to_dict() == state.to_dict() and again.verbatim() == state.verbatim()
    assert [record.content for record in again.chain(again.heads("Ann")[0].entry_id)] == [
        "lives in Leeds", "lives in York", "lives in Bath",
    ]  # fmt: skip


def test_a_memory_that_is_continued_equals_one_written_at_once(tmp_path):
    texts = ["I live in Leeds", "b", "moved to York", "d", "now Bath", "f"]
    with MemoryStore(tmp_path / "whole.db") as whole, MemoryStore(tmp_path / "parts.db") as parts:
        at_once = write(whole, told(texts), MOVES)
        write(parts, told(texts)[:4], MOVES)
        continued = write(parts, told(texts), MOVES)
    assert continued.to_dict() == at_once.to_dict() and continued.verbatim() == at_once.verbatim()


def test_the_same_messages_again_change_nothing(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(["ok", "ok", "hello"], minutes=0))
        before = store.counts()
        assert before["messages"] == 3
        assert arrive(store, told(["ok", "ok", "hello"], minutes=0)) == []
        assert store.counts() == before
        (new,) = arrive(store, told(["ok", "ok", "ok", "hello"], minutes=0))
        assert [message.content for message in new.segment.messages] == ["ok"]


def test_the_tables_keep_what_the_export_says_of_a_message(tmp_path):
    told_in_zone = ChatMessage("Ann", "a", "2024-05-01T12:00:00+02:00", "u1", "7", "plans", reply_to="3")
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, [told_in_zone])
    columns = "speaker, ts, at, content, message_id, reply_to, channel, session, turn, position"
    (row,) = sqlite3.connect(tmp_path / "m.db").execute(f"SELECT {columns} FROM messages")
    at = instant("2024-05-01T10:00:00Z")
    assert row == ("Ann", "2024-05-01T12:00:00+02:00", at, "a", "7", "3", "plans", "s00001", 0, 0)


def test_a_message_that_comes_twice_at_once_is_held_once(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, [*told(["a"], message_id="7"), *told(["b"]), *told(["a"], message_id="7")])
        assert [record.content for record in store.state().verbatim()] == ["a", "b"]


def test_a_chat_that_was_renamed_is_known_and_chats_of_one_name_are_apart(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(["a"], message_id="7", channel="Friends", channel_id="c1"))
        assert arrive(store, told(["a"], message_id="7", channel="Old friends", channel_id="c1")) == []
        (new,) = arrive(store, told(["b"], message_id="7", channel="Friends", channel_id="c2"))
        assert [message.content for message in new.segment.messages] == ["b"]


def test_what_a_newer_export_holds_of_an_earlier_time_is_a_session_of_its_own(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        days = [told([text], start=START + timedelta(days=day))[0] for day, text in enumerate(["a", "b", "c"])]
        write(store, [days[0], days[2]])
        write(store, days)
        records = store.state().verbatim()
    assert [(record.content, record.session) for record in records] == [("a", "s00001"), ("c", "s00002"), ("b", "s00003")]


def test_a_full_disk_keeps_what_was_written_and_says_so(tmp_path):
    texts = [f"message {n} " * 50 for n in range(200)]
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(texts[:20]))
        before = store.counts()
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages + 2}")
        with pytest.raises(OSError, match="the disk is full.*run again"):
            write(store, told(texts), window=50)
        held = store.counts()
        assert before["messages"] <= held["messages"] < 200 and len(store.state().verbatim()) == held["messages"]
        store._db.execute("PRAGMA max_page_count=100000")
        write(store, told(texts), window=50)
        assert [record.content for record in store.state().verbatim()] == texts


def test_a_memory_that_may_only_be_read_is_read_and_nothing_is_put_beside_it(tmp_path, monkeypatch):
    import os

    path = tmp_path / "a b?#%.db"
    with MemoryStore(path) as store:
        write(store, told(["a"]))
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with MemoryStore(path, create=False) as store:
        assert [record.content for record in store.state().verbatim()] == ["a"]
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
        with pytest.raises(DataError, match="may only be read"):
            write(store, told(["a", "b"]))
    assert path.read_bytes() == before


def test_an_id_tells_a_message_however_it_was_edited(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(["helo"], message_id="7"))
        assert arrive(store, told(["hello"], message_id="7")) == []
        assert len(arrive(store, told(["hello"], message_id="8"))) == 1


@given(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from(["x", "y"]), st.sampled_from(["", "1"])), max_size=12))
def test_keys_of_a_list_are_distinct_and_stable_under_appending(rows):
    messages = [ChatMessage(speaker, text, "2024-05-01T10:00:00", channel=channel) for speaker, text, channel in rows]
    keys = message_keys(messages)
    assert len(set(keys)) == len(keys)
    assert message_keys(messages + messages)[: len(keys)] == keys


def test_as_of_a_time_is_the_memory_as_it_was(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        messages = told(["I live in Leeds", "b", "moved to York", "d", "now Bath", "f"])
        states = {0: MemoryState.empty()}
        for count in (2, 4, 6):
            states[count] = write(store, messages[:count], MOVES)
        for count in (2, 4, 6):
            then = store.state(instant(messages[count - 1].ts))
            assert then.to_dict() == states[count].to_dict() and then.verbatim() == states[count].verbatim()
        # Within a segment its messages are known one by one, what the Writer made of them only at its end.
        between = store.state(instant(messages[2].ts))
        assert [record.content for record in between.verbatim()] == [m.content for m in messages[:3]]
        assert between.to_dict()["entries"] == states[2].to_dict()["entries"]
        assert store.state(instant(messages[0].ts) - 1).verbatim() == ()


def test_sessions_go_on_and_end_by_silence_and_by_size(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(["a", "b", "c"]))
        write(store, told(["a", "b", "c", "d"]))
        later = told(["late"], start=START + timedelta(hours=9))
        write(store, [*told(["a", "b", "c", "d"]), *later])
        records = store.state().verbatim()
    assert [(record.session, record.turn) for record in records] == [
        ("s00001", 0), ("s00001", 1), ("s00001", 2), ("s00001", 3), ("s00002", 0),
    ]  # fmt: skip


def test_channels_are_written_in_the_order_of_time(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        late = told(["late"], start=START + timedelta(hours=1), channel="a")
        early = told(["early"], channel="b")
        parts = arrive(store, late + early)
    assert [part.segment.messages[0].content for part in parts] == ["early", "late"]
    assert [part.segment.position for part in parts] == [0, 1]


def test_a_clock_that_jumps_back_does_not_reorder_a_channel(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        messages = [*told(["a"], start=START + timedelta(hours=2)), *told(["b"]), *told(["c"], start=START + timedelta(hours=3))]
        write(store, messages, window=1)
        assert [record.content for record in store.state().verbatim()] == ["a", "b", "c"]


def test_names_stay_when_members_join(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, [*told(["a"], "Sam", speaker_id="1"), *told(["b"], "Sam", speaker_id="2")])
        first = store.state().roster
        write(store, [*told(["c"], "Sam (2)"), *told(["d"], "Samuel", speaker_id="1"), *told(["e"], "GROUP")])
        speakers = {record.content: record.source for record in store.state().verbatim()}
    assert first == ("Sam", "Sam (2)")
    assert speakers["a"] == speakers["d"] == "Sam" and speakers["b"] == "Sam (2)"
    assert len({speakers["a"], speakers["b"], speakers["c"], speakers["e"], "GROUP"}) == 5


def test_a_transaction_that_fails_leaves_nothing(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(["a", "b"]))
        before = store.counts()
        parts = arrive(store, told(["a", "b", "c", "d", "e", "f"]), 2)
        state, written = store.state(), []
        for part in parts:
            seen = len(state.verbatim())
            state, report = step(state, part.segment, [NOOP])
            written.append(WrittenSegment(part, "x", "", report, state.verbatim(seen), (), ()))
        broken = WrittenSegment(written[0].arrived, "x", "", written[0].report, written[0].messages, (), ())
        with pytest.raises(DataError, match="another program wrote"):
            store.append([*written, broken])
        assert store.counts() == before
        store.append(written)
        assert store.counts()["messages"] == 6


def test_files_that_are_no_memory(tmp_path):
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at " * 20)
    with pytest.raises(DataError, match="no memory, or a damaged one"):
        MemoryStore(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(DataError, match="another program"):
        MemoryStore(tmp_path / "other.db")
    with pytest.raises(DataError, match="no such memory"):
        MemoryStore(tmp_path / "absent.db", create=False)
    with pytest.raises(DataError, match="does its folder exist"):
        MemoryStore(tmp_path / "absent" / "m.db")
    MemoryStore(tmp_path / "new.db").close()
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("UPDATE meta SET value = '9' WHERE key = 'format'")
    with pytest.raises(DataError, match="format 9, this program knows [0-9]; use a newer release"):
        MemoryStore(tmp_path / "new.db")


def test_a_truncated_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "m.db"
    with MemoryStore(path) as store:
        write(store, told([f"message {n}" for n in range(200)]))
    path.write_bytes(path.read_bytes()[: 3 * 4096 + 100])
    with pytest.raises(DataError, match="m.db: is no memory, or a damaged one"), MemoryStore(path) as store:
        store.state()


def test_a_closed_memory_is_one_file(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, told(["a"]))
    assert [file.name for file in tmp_path.iterdir()] == ["m.db"]


@settings(max_examples=25)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 4))
def test_however_it_arrives_every_message_is_held_once_in_order(sizes, window):
    import tempfile
    from pathlib import Path

    texts = told([f"m{n}" for n in range(sum(sizes))])
    with tempfile.TemporaryDirectory() as folder, MemoryStore(Path(folder) / "m.db") as store:
        end = 0
        for size in sizes:
            end += size
            write(store, texts[:end], window=window)
        assert [record.content for record in store.state().verbatim()] == [message.content for message in texts]
        assert all(len(part) <= window for part in _by_position(store))


def _by_position(store):
    parts: dict[int, list] = {}
    for record in store.state().verbatim():
        parts.setdefault(record.turn_created, []).append(record)
    return parts.values()
