import sqlite3
from pathlib import Path

import pytest

from memory_env import DataError
from memory_env.store.schema import MIGRATIONS, Migration, open_layout, statements
from memory_env.store.store import MemoryStore

PET = Migration("pets", "ALTER TABLE members ADD COLUMN pet TEXT NOT NULL DEFAULT 'none';")


def connection(path):
    return sqlite3.connect(path, isolation_level=None)


def layout(path):
    with connection(path) as db:
        return sorted(db.execute("SELECT type, name, sql FROM sqlite_master")), list(db.execute("SELECT * FROM meta"))


def made(path, migrations=MIGRATIONS):
    db = connection(path)
    open_layout(db, path, migrations=migrations)
    return db


@pytest.mark.parametrize("released", range(1, len(MIGRATIONS) + 1))
def test_a_file_of_every_older_format_becomes_what_a_new_file_is(tmp_path, released):
    made(tmp_path / "old.db", MIGRATIONS[:released]).close()
    MemoryStore(tmp_path / "old.db").close()
    MemoryStore(tmp_path / "new.db").close()
    assert layout(tmp_path / "old.db") == layout(tmp_path / "new.db")


def test_what_a_file_holds_survives_its_upgrade(tmp_path):
    path = tmp_path / "m.db"
    db = made(path)
    db.execute("INSERT INTO members (name, speaker, speaker_id) VALUES ('Ann', 'Ann', '')")

    def rename(db):
        db.execute("UPDATE members SET pet = 'cat'")

    open_layout(db, path, migrations=[*MIGRATIONS, PET, Migration("cats", "", rename)])
    assert list(db.execute("SELECT name, pet FROM members")) == [("Ann", "cat")]


@pytest.mark.parametrize("broken", [Migration("no table", "CREATE TABLE a (x); ALTER TABLE absent ADD COLUMN y;"), 7])
def test_an_upgrade_that_fails_leaves_the_file_as_it_was(tmp_path, broken):
    path = tmp_path / "m.db"
    db = made(path)
    before = layout(path)

    def fail(db):
        raise KeyboardInterrupt

    last = Migration("stopped", "CREATE TABLE a (x);", fail) if broken == 7 else broken
    with pytest.raises((sqlite3.Error, KeyboardInterrupt)):
        open_layout(db, path, migrations=[*MIGRATIONS, PET, last])
    assert layout(path) == before and not db.in_transaction
    assert [row[1] for row in db.execute("PRAGMA table_info(members)")].count("pet") == 0


def test_an_older_file_that_may_only_be_read_names_the_command_that_upgrades(tmp_path):
    path = tmp_path / "m.db"
    db = made(path)
    with pytest.raises(DataError, match=r"m.db: is of the older format .*copy.*launch/ask.py --memory COPY"):
        open_layout(db, path, writable=False, migrations=[*MIGRATIONS, PET])


def test_a_file_of_a_newer_format_is_not_touched(tmp_path):
    path = tmp_path / "m.db"
    made(path, [*MIGRATIONS, PET]).close()
    before = path.read_bytes()
    with pytest.raises(DataError, match="use a newer release"):
        MemoryStore(path)
    assert path.read_bytes() == before


def test_a_file_that_does_not_say_its_format_is_refused(tmp_path):
    db = made(tmp_path / "m.db")
    db.execute("UPDATE meta SET value = 'x' WHERE key = 'format'")
    with pytest.raises(DataError, match="damaged memory"):
        open_layout(db, Path("m.db"))


def test_a_script_is_cut_where_sqlite_ends_a_statement():
    script = "CREATE TABLE a (x TEXT DEFAULT ';');\nCREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; END;\n"
    assert [statement.split()[1] for statement in statements(script)] == ["TABLE", "TRIGGER"]
