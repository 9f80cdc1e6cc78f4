import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env.datafile import DataError
from memory_env.store.forget import forget_member
from memory_env.store.portable import TABLES, export_json, import_json
from memory_env.store.schema import MIGRATIONS, open_layout
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import admitted
from tests.memory_env.store.test_forget import CHAT, outputs, rows
from tests.memory_env.store.test_store import told, write

INDEXES = ("message_words", "message_vectors", "record_vectors", "drafts")


@pytest.fixture
def memory(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, CHAT, outputs())
        yield store


def document(store, member=""):
    return json.loads("".join(export_json(store, member)))


def test_a_memory_read_from_its_export_is_equal(memory, tmp_path):
    import_json(document(memory), tmp_path / "again.db")
    with MemoryStore(tmp_path / "again.db") as again:
        assert again.state() == memory.state()
        assert list(again.segments()) == list(memory.segments())
        assert document(again) == document(memory)
        # And it goes on as the first would: nothing that it has is new.
        assert write(again, CHAT).to_dict() == memory.state().to_dict()


def test_every_table_is_exported_or_an_index(memory):
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (name,) in memory.connection.execute(query):
        assert name in TABLES or name.startswith(INDEXES), f"{name}: export it, or name it among the indexes"


def test_what_was_forgotten_stays_out_of_the_copy_too(memory, tmp_path):
    forget_member(memory, "Ann")
    import_json(document(memory), tmp_path / "again.db")
    with MemoryStore(tmp_path / "again.db") as again:
        assert admitted(again.connection, CHAT) == admitted(memory.connection, CHAT)


def test_one_member_is_what_they_said_and_what_is_recorded_about_or_by_them(memory, tmp_path):
    exported = document(memory, "Ann")
    assert {row["speaker"] for row in exported["tables"]["messages"]} == {"Ann"}
    assert all("Ann" in (row["owner"], row["source"]) for row in exported["tables"]["records"])
    assert len(exported["tables"]["records"]) == 3
    text = json.dumps(exported)
    assert "bakes" not in text and "worries" not in text and "see a doctor" not in text
    import_json(exported, tmp_path / "ann.db")
    with MemoryStore(tmp_path / "ann.db") as alone:
        assert [record.content for record in alone.state().heads("Ann")] == [
            record.content for record in memory.state().heads("Ann")
        ]
    with pytest.raises(DataError, match="'Eve' is no member; it knows Ann, Bob, Cem"):
        document(memory, "Eve")


def test_an_export_of_an_older_layout_is_upgraded(tmp_path):
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as db:
        open_layout(db, tmp_path / "old.db", migrations=MIGRATIONS[:1])
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if name in TABLES]
    old = {"schema": "writer-rl-memory/1", "layout": 1, "member": None, "tables": {name: [] for name in names}}
    import_json(old, tmp_path / "new.db")
    with MemoryStore(tmp_path / "new.db") as store:
        assert store.meta("format") == str(len(MIGRATIONS))


def damaged(change):
    def make(whole):
        change(whole)
        return whole

    return make


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: [], "is no exported memory"),
        (damaged(lambda whole: whole.update(schema="x")), "is no exported memory"),
        (damaged(lambda whole: whole.update(layout=99)), "is of layout 99, this program knows"),
        (damaged(lambda whole: whole.update(layout=True)), "`layout` must be a whole number"),
        (damaged(lambda whole: whole["tables"].update(sqlite_master=[])), "'sqlite_master', which no memory has"),
        (damaged(lambda whole: whole["tables"].update(messages={})), r"`tables.messages` must be a list"),
        (damaged(lambda whole: whole["tables"]["messages"][1].pop("turn")), r"`tables.messages\[1\]`: must be an object with"),
        (damaged(lambda whole: whole["tables"]["messages"][0].update(turn="x")), r"messages\[0\]`.turn: must be integer, not str"),
        (damaged(lambda whole: whole["tables"]["messages"][0].update(key="zz")), "is not hexadecimal"),
        (damaged(lambda whole: whole["tables"]["messages"][0].update(content=None)), "does not fit together"),
        (damaged(lambda whole: whole["tables"]["messages"][0].update(entry_id=whole["tables"]["messages"][1]["entry_id"])), "does not fit"),
        (damaged(lambda whole: whole["tables"]["records"][0].update(from_ids="{")), "does not fit together"),
        (damaged(lambda whole: whole["tables"]["segments"][0].update(report="{")), "does not fit together"),
    ],
)  # fmt: skip
def test_a_damaged_document_is_named_and_leaves_no_file(memory, tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        import_json(change(document(memory)), tmp_path / "x.db", "export.json")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("x.db")) == []


def test_a_file_that_is_there_is_not_written_over(memory, tmp_path):
    before = rows(memory.path)
    with pytest.raises(DataError, match="is there already"):
        import_json(document(memory), memory.path)
    assert rows(memory.path) == before


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_any_text_survives(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("m")
    with MemoryStore(folder / "a.db") as store:
        write(store, told([text.encode("utf-8", "replace").decode() for text in texts]))
        import_json(document(store), folder / "b.db")
        with MemoryStore(folder / "b.db") as again:
            assert again.state() == store.state()
