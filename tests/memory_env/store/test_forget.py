import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from memory_env.store.chats import known_chats
from memory_env.store.drafts import note_unwritten
from memory_env.store.erase import is_due
from memory_env.store.forget import allow_again, forget_chat, forget_member, forget_messages, forget_records
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import admitted
from tests.conftest import PATIENCE, ROOT
from tests.memory_env.chats import add
from tests.memory_env.store.test_store import write

SECRETS = ["the cottage at Hvaler costs 412 kroner", "my blood pressure is far too high again", "Zoë's PIN is 9041"]


def said(speaker, content, minute, **fields):
    return ChatMessage(speaker, content, f"2024-05-01T10:{minute:02d}:00", **fields)


CHAT = [
    said("Ann", SECRETS[0], 0, speaker_id="u1"),
    said("Bob", "nice, I bake bread on Sundays", 1),
    said("Ann", SECRETS[1], 2, speaker_id="u1"),
    said("Bob", f'you wrote "{SECRETS[1]}", take care', 3),
    said("Cem", "Ann should see a doctor", 4),
    said("Ann", SECRETS[2], 5, speaker_id="u1"),
]


def outputs():
    def by(owner, source, content, layer="per_speaker_core"):
        return add(content, owner=owner, source=source, layer=layer)

    return {
        0: lambda state: [by("Ann", "Ann", "rents a cottage at Hvaler for 412 kroner"), by("Bob", "Bob", "bakes bread")],
        1: lambda state: [by("Ann", "Bob", "has high blood pressure"), by("Bob", "Ann", "is told things")],
        2: lambda state: [
            by("GROUP", "Cem", "worries about health", layer="group_insight"),
            {"action": "UPDATE", "entry_id": state.heads("Bob")[0].entry_id, "content": "bakes rye bread"},
        ],
    }


@pytest.fixture
def memory(tmp_path):
    """A memory whose raw outputs hold what its records say."""
    path = tmp_path / "m.db"
    with MemoryStore(path) as store:
        write(store, CHAT, outputs())
        with store.changing() as db:
            for position, made in outputs().items():
                completion = json.dumps({"actions": made(store.state())})
                db.execute("UPDATE segments SET completion = ? WHERE position = ?", (completion, position))
    return path


def bytes_on_disk(path):
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def rows(path):
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {table: sorted(db.execute(f"SELECT * FROM {table}"), key=repr) for table in tables if table != "meta"}


def unkeyed(tables):
    """Without the hashes, whose key is another for every file: their number alone."""
    return {name: len(table) if name in ("tombstones", "forgotten_runs") else table for name, table in tables.items()}


def traces():
    words = ["Hvaler", "412 kroner", "blood pressure", "9041", "Zo\u00eb", "is told things", '"u1"']
    return [form for word in words for form in (word.encode(), json.dumps(word).strip('"').encode())]


def test_no_byte_of_a_member_is_left(memory):
    before = bytes_on_disk(memory)
    assert all(word.encode() in before for word in ("Hvaler", "blood pressure", "9041"))
    with MemoryStore(memory) as store:
        gone = forget_member(store, "Ann")
        assert (gone.messages, gone.records, gone.quotations) == (3, 3, 1)
        # While the file is still open: neither it nor its log nor any file beside it.
        assert [word for word in traces() if word in bytes_on_disk(memory)] == []
    assert [word for word in traces() if word in bytes_on_disk(memory)] == []


def test_what_others_said_stays_with_its_ids(memory):
    with MemoryStore(memory) as store:
        before = store.state()
        forget_member(store, "Ann")
        after = store.state()
    assert after.roster == ("Bob", "Cem")
    assert [record.content for record in after.verbatim()] == [
        "nice, I bake bread on Sundays", 'you wrote "[forgotten]", take care', "Ann should see a doctor",
    ]  # fmt: skip
    kept = [record for record in before.verbatim() if record.source != "Ann"]
    assert [record.entry_id for record in after.verbatim()] == [record.entry_id for record in kept]
    chain = after.chain(after.heads("Bob")[0].entry_id)
    assert [record.content for record in chain] == ["bakes bread", "bakes rye bread"]
    assert [record.content for record in after.heads("GROUP")] == ["worries about health"]
    assert {message for record in after.derived() for message in record.from_ids} <= {r.entry_id for r in after.verbatim()}


def test_the_name_in_others_sentences_goes_where_that_is_asked_for(memory):
    with MemoryStore(memory) as store:
        forget_member(store, "Ann", redact=True)
        assert store.state().verbatim()[-1].content == "[someone] should see a doctor"
    assert b"Ann" not in bytes_on_disk(memory)


def test_tombstones_hold_no_name_and_keep_the_member_out(memory):
    with MemoryStore(memory) as store:
        forget_member(store, "Ann")
        later = [
            *CHAT,
            said("Ann", "hello again, it is me", 9, speaker_id="u1"),
            said("ann", "from a phone that knows no ids", 10),
            said("Ann", "another Ann, who has another id", 11, speaker_id="u2"),
            said("Dan", "hi", 12),
        ]
        allowed, held = admitted(store.connection, later)
        assert {message.content for message in allowed} >= {"another Ann, who has another id", "hi"}
        assert not any(message.speaker.lower() == "ann" and message.speaker_id != "u2" for message in allowed)
        assert b"Ann" not in b"".join(digest for row in store.connection.execute("SELECT * FROM tombstones") for digest in row)
        # Bob's quotation is not read again as an edit of what is left of it.
        assert held == 6
        write(store, allowed)
        assert not any("blood pressure" in record.content for record in store.state().verbatim())


def test_a_member_can_be_let_in_again(memory):
    with MemoryStore(memory) as store:
        forget_member(store, "Ann")
        assert allow_again(store, "ann") and not allow_again(store, "Ann")
        assert len(admitted(store.connection, CHAT)[0]) == len(CHAT) - 1


def test_one_message(memory):
    with MemoryStore(memory) as store:
        (target,) = [record for record in store.state().verbatim() if record.content == SECRETS[1]]
        gone = forget_messages(store, [target.entry_id])
        assert (gone.messages, gone.quotations) == (1, 1)
        state = store.state()
        assert len(state.verbatim()) == 5 and "Ann" in state.roster
        assert not any(target.entry_id in record.from_ids for record in state.derived())
        with pytest.raises(DataError, match="holds no message 'nosuch'"):
            forget_messages(store, ["nosuch"])
    assert b"far too high again" not in bytes_on_disk(memory)


def test_a_record_goes_with_its_chain_so_that_no_older_version_becomes_current(memory):
    with MemoryStore(memory) as store:
        head = store.state().heads("Bob")[-1]
        assert head.content == "bakes rye bread"
        assert forget_records(store, [head.entry_id]).records == 2
        assert not any("bread" in record.content for record in store.state().derived())
        assert any("bread" in record.content for record in store.state().verbatim())
        with pytest.raises(DataError, match="holds no record"):
            forget_records(store, [store.state().verbatim()[0].entry_id])
    assert b"rye" not in bytes_on_disk(memory)


def test_a_version_between_two_others_leaves_its_chain_joined(tmp_path):
    """The middle version rests on a forgotten message alone."""
    moves = {
        0: lambda state: [add("lives in Leeds", owner="Bob", source="Bob")],
        1: lambda state: [{"action": "UPDATE", "entry_id": state.heads("Bob")[0].entry_id, "content": "Bob moved to York"}],
        2: lambda state: [{"action": "UPDATE", "entry_id": state.heads("Bob")[0].entry_id, "content": "lives in Bath"}],
    }
    chat = [
        said("Bob", "I live in Leeds", 0), said("Bob", "it rains here", 1), said("Ann", "Bob moved to York, everybody", 2),
        said("Cem", "oh", 3), said("Bob", "I live in Bath now", 4), said("Bob", "yes", 5),
    ]  # fmt: skip
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, chat, moves)
        forget_member(store, "Ann")
        state = store.state()
        chain = state.chain(state.heads("Bob")[0].entry_id)
        assert [record.content for record in chain] == ["lives in Leeds", "lives in Bath"]
        assert [(edge.old, edge.new) for edge in state.edges()] == [(chain[0].entry_id, chain[1].entry_id)]


def test_a_chat_goes_and_does_not_come_back(tmp_path):
    family = [said("Ann", "grandma is in hospital", 0, channel="family"), said("Bob", "oh no", 1, channel="family")]
    work = [said("Bob", "the release is on Friday", 2, channel="work")]
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, [*family, *work])
        assert forget_chat(store, "family").messages == 2
        assert [record.content for record in store.state().verbatim()] == ["the release is on Friday"]
        assert store.state().roster == ("Bob",)
        allowed, held = admitted(store.connection, [*family, *work])
        assert (allowed, held) == (work, 2)
        # A new session takes no name that a forgotten one had.
        write(store, [said("Bob", "months later", 3, channel="new")])
        assert [record.session for record in store.state().verbatim()] == ["s00002", "s00003"]
        with pytest.raises(DataError, match="knows no chat 'family'; it has 'new', 'work'"):
            forget_chat(store, "family")


def test_a_table_with_a_row_per_record_loses_the_same_rows(memory):
    with MemoryStore(memory) as store:
        ids = [record.entry_id for record in (*store.state().verbatim(), *store.state().derived())]
        with store.changing() as db:
            db.execute("CREATE TABLE some_index (entry_id TEXT PRIMARY KEY, vector BLOB)")
            db.executemany("INSERT INTO some_index VALUES (?, ?)", [(entry_id, b"v") for entry_id in ids])
        forget_member(store, "Ann")
        left = {row[0] for row in store.connection.execute("SELECT entry_id FROM some_index")}
        assert left == {record.entry_id for record in (*store.state().verbatim(), *store.state().derived())}


def test_what_others_forward_of_a_member_goes_though_the_memory_never_held_it(tmp_path):
    path = tmp_path / "m.db"
    forwarded = said("Bob", "[forwarded from Ann] pregnant", 1)
    with MemoryStore(path) as store:
        write(store, [said("Ann", "hello", 0), forwarded, said("Bob", "[forwarded from Cem] pregnant too", 2)], {})
        forget_member(store, "Ann")
        kept = ["[forwarded from Ann] [forgotten]", "[forwarded from Cem] pregnant too"]
        assert [record.content for record in store.state().verbatim()] == kept
        later, held_back = admitted(store.connection, [said("Cem", "[Forwarded from ann] the baby is due", 9), forwarded])
        assert [message.content for message in later] == ["[Forwarded from ann] [forgotten]"] and held_back == 1


@pytest.mark.parametrize(("redact", "called"), [(True, "[someone]'s cake"), (False, "Ann's cake")])
def test_a_chat_that_is_called_after_a_member_loses_the_name_where_that_is_asked_for(tmp_path, redact, called):
    path = tmp_path / "m.db"
    chat = [
        said(speaker, "hello", minute, channel="Ann's cake", channel_id="c1", message_id=str(minute))
        for minute, speaker in enumerate(["Ann", "Bob"])
    ]
    with MemoryStore(path) as store:
        write(store, chat, {})
        with store.changing() as db:
            db.execute("INSERT OR REPLACE INTO chats VALUES (?, 'c1', ?, '', 0)", ("Ann's cake", "Ann's cake"))
        forget_member(store, "Ann", redact=redact)
        assert [(each.channel, each.name) for each in known_chats(store)] == [(called, called)]
        assert list(store.connection.execute("SELECT channel FROM messages")) == [(called,)]
        assert store.unseen(chat[1:]) == []
    assert (b"Ann" in bytes_on_disk(path)) is not redact


def test_reasons_of_refusals_go_since_they_may_quote_anything(tmp_path):
    """Also of a segment that the member said nothing in: what a Writer is shown holds their records."""
    path = tmp_path / "m.db"
    with MemoryStore(path) as store:
        write(store, [*CHAT, said("Bob", "so", 6), said("Cem", "well", 7)], {})
        note_unwritten(store, [(1, "I can't record that Ann has a cottage at Hvaler"), (3, "nor 412 kroner")])
        forget_member(store, "Ann")
    assert [word for word in traces() if word in bytes_on_disk(path)] == []


def test_a_raw_output_under_a_former_name_goes(memory):
    with MemoryStore(memory) as store:
        with store.changing() as db:
            db.execute("UPDATE members SET former = ? WHERE name = 'Ann'", (json.dumps(["Annika"]),))
            rejected = json.dumps({"actions": [add("owns a boat", owner="Annika", source="Bob", layer="per_speaker_core")]})
            db.execute("UPDATE segments SET completion = ? WHERE position = 2", (rejected,))
        forget_member(store, "Ann")
    assert b"owns a boat" not in bytes_on_disk(memory)


def test_an_unknown_member_changes_nothing(memory):
    before = rows(memory)
    with MemoryStore(memory) as store:
        with pytest.raises(DataError, match="'ann' is no member; did you mean 'Ann'"):
            forget_member(store, "ann")
        with pytest.raises(DataError, match="'Eve' is no member; it knows Ann, Bob, Cem"):
            forget_member(store, "Eve")
    assert rows(memory) == before


def test_while_another_program_reads_the_file_it_says_so_and_the_next_to_open_goes_on(memory):
    reader = sqlite3.connect(memory)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchall()
    with MemoryStore(memory) as store:
        store.connection.execute("PRAGMA busy_timeout=1")
        with pytest.raises(DataError, match="another program has it open.*run the same command again"):
            forget_member(store, "Ann")
        assert "Ann" not in store.state().roster and is_due(store.connection)
    reader.close()
    with MemoryStore(memory) as store:
        assert not is_due(store.connection)
        assert [word for word in traces() if word in bytes_on_disk(memory)] == []


DYING = """
import os, signal, sys
from pathlib import Path
from memory_env.store.forget import forget_member
from memory_env.store.store import MemoryStore

path, event, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def passed(*ignored):
    global left
    left -= 1
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

store = MemoryStore(path)
if event == "statement":
    store.connection.set_trace_callback(passed)
else:
    store.connection.set_progress_handler(passed, 1)
forget_member(store, "Ann")
os._exit(0)
"""


def forget_and_die(path, event, number):
    """Forget Ann in a process of its own, killed at the number-th statement or instruction; whether it got that far."""
    command = [sys.executable, "-c", DYING, str(path), event, str(number)]
    code = subprocess.run(command, cwd=ROOT, timeout=PATIENCE).returncode
    assert code in (0, -signal.SIGKILL)
    return code != 0


def test_killed_at_any_statement_it_is_either_not_begun_or_finished_by_the_next_to_open(memory, tmp_path):
    whole = memory.read_bytes()
    untouched = rows(memory)
    with MemoryStore(memory) as store:
        forget_member(store, "Ann")
    finished = unkeyed(rows(memory))
    outcomes = []
    for number in range(1, 1000):
        folder = tmp_path / f"k{number}"
        folder.mkdir()
        copy = folder / "m.db"
        copy.write_bytes(whole)
        killed = forget_and_die(copy, "statement", number)
        with MemoryStore(copy) as store:
            assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert not is_due(store.connection)
            begun = "Ann" not in store.state().roster
            outcomes.append(begun)
        if begun:
            assert unkeyed(rows(copy)) == finished
            assert [word for word in traces() if word in bytes_on_disk(copy)] == []
        else:
            assert rows(copy) == untouched
        if not killed:
            break
    assert outcomes == sorted(outcomes) and {True, False} == set(outcomes) and len(outcomes) > 20


@pytest.mark.parametrize("steps", [50, 200, 800, 1600])
def test_killed_inside_a_statement_too(memory, tmp_path, steps):
    """The progress handler kills in the middle of one, the rewriting included."""
    forget_and_die(memory, "instruction", steps)
    with MemoryStore(memory) as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if "Ann" in store.state().roster:
            forget_member(store, "Ann")
    assert [word for word in traces() if word in bytes_on_disk(memory)] == []


names = st.sampled_from(["Ann", "Bob", "Cem"])
texts = st.text("abc de", min_size=1, max_size=30).filter(str.strip)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(names, texts), min_size=1, max_size=12), st.data())
def test_nothing_of_a_member_and_everything_else_is_left(tmp_path_factory, told, data):
    chat = [said(speaker, text, minute) for minute, (speaker, text) in enumerate(told)]
    moves = {}
    for position in range((len(chat) + 1) // 2):
        speakers = sorted({speaker for speaker, _ in told[: 2 * position + 2]})
        owner, source = data.draw(st.sampled_from(speakers)), data.draw(st.sampled_from(speakers))
        moves[position] = lambda state, o=owner, s=source, n=position: [add(f"fact number {n}", owner=o, source=s)]
    member = data.draw(st.sampled_from(sorted({speaker for speaker, _ in told})))
    path = tmp_path_factory.mktemp("m") / "m.db"
    with MemoryStore(path) as store:
        before = write(store, chat, moves)
        forget_member(store, member)
        after = store.state()
    everything = [*after.verbatim(), *after.derived()]
    assert not any(member in (record.owner, record.source) for record in everything) and member not in after.roster
    kept = [record for record in before.verbatim() if record.source != member]
    assert [record.entry_id for record in after.verbatim()] == [record.entry_id for record in kept]
    gone = {record.entry_id for record in before.verbatim()} - {record.entry_id for record in kept}
    stay = [
        record
        for record in before.derived()
        if member not in (record.owner, record.source) and not (record.from_ids and gone.issuperset(record.from_ids))
    ]
    assert [record.entry_id for record in after.derived()] == [record.entry_id for record in stay]
