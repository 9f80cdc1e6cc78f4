"""The layout of a memory file and how an older file becomes a newer one: one list of migrations, applied in order.

A file says in `meta.format` how many migrations it has had; so the format of a file is a number, and the newest is
`len(MIGRATIONS)`. To change the layout, append a `Migration`; one that was released is never edited.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.store.drafts_schema import DRAFTS_SCHEMA
from memory_env.store.forgotten_runs import RUNS_SCHEMA
from memory_env.store.search import SEARCH_SCHEMA

APPLICATION = 0x57524D45  # "WRME", SQLite's mark of whose file this is


@dataclass(frozen=True)
class Migration:
    """One change of the layout: a name for the log, SQL, and what SQL alone can't do to the rows that are there.

    Example:
        Migration("pets", "ALTER TABLE members ADD COLUMN pet TEXT NOT NULL DEFAULT '';")
    """

    name: str
    script: str
    then: Callable[[sqlite3.Connection], None] | None = None


_FIRST = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE segments (
    position INTEGER PRIMARY KEY, session TEXT NOT NULL, ts TEXT NOT NULL, ends REAL, writer TEXT NOT NULL,
    completion TEXT NOT NULL, report TEXT NOT NULL);
CREATE TABLE members (name TEXT PRIMARY KEY, speaker TEXT NOT NULL, speaker_id TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE messages (
    place INTEGER PRIMARY KEY, position INTEGER NOT NULL, entry_id TEXT NOT NULL UNIQUE, session TEXT NOT NULL,
    turn INTEGER NOT NULL, speaker TEXT NOT NULL, ts TEXT NOT NULL, at REAL, content TEXT NOT NULL,
    message_id TEXT NOT NULL, reply_to TEXT NOT NULL, channel TEXT NOT NULL, key BLOB NOT NULL UNIQUE);
CREATE TABLE records (
    place INTEGER PRIMARY KEY, position INTEGER NOT NULL, entry_id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL,
    source TEXT NOT NULL, layer TEXT NOT NULL, utype TEXT NOT NULL, content TEXT NOT NULL, confidence REAL NOT NULL,
    from_ids TEXT NOT NULL, links TEXT NOT NULL);
CREATE TABLE edges (place INTEGER PRIMARY KEY, position INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL);
CREATE INDEX messages_by_channel ON messages (channel, place);
"""

# How each chat is known and its dates are read; which messages were edited, under which names a member was known and
# until when.
_CHATS = """
CREATE TABLE chats (
    channel TEXT PRIMARY KEY, channel_id TEXT NOT NULL, name TEXT NOT NULL, date_order TEXT NOT NULL,
    certainty INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO chats SELECT DISTINCT channel, '', channel, '', 0 FROM messages;
CREATE INDEX messages_by_time ON messages (channel, at);
ALTER TABLE messages ADD COLUMN edited TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN named_at REAL;
ALTER TABLE members ADD COLUMN former TEXT NOT NULL DEFAULT '[]';
"""

# Live messages that belong to no segment yet (memory_env.store.inbox).
_INBOX = """
CREATE TABLE inbox (
    place INTEGER PRIMARY KEY, received REAL NOT NULL, speaker TEXT NOT NULL, speaker_id TEXT NOT NULL, content TEXT NOT NULL,
    ts TEXT NOT NULL, message_id TEXT NOT NULL, channel TEXT NOT NULL, channel_id TEXT NOT NULL, reply_to TEXT NOT NULL,
    UNIQUE (channel, message_id));
"""

MIGRATIONS: tuple[Migration, ...] = (
    Migration("both tracks", _FIRST),
    Migration("tombstones", "CREATE TABLE tombstones (digest BLOB PRIMARY KEY, of BLOB NOT NULL) WITHOUT ROWID;"),
    Migration("chats, edits and names", _CHATS),
    Migration("inbox", _INBOX),
    Migration("search", SEARCH_SCHEMA),
    Migration("drafts", DRAFTS_SCHEMA),
    Migration("forgotten runs", RUNS_SCHEMA),
)


def open_layout(
    db: sqlite3.Connection, path: Path, writable: bool = True, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Make a new file's tables, or bring an older file to the newest format, all of it in one transaction.

    DataError for a file of another program, of a newer format, or of an older one that may only be read.
    """
    wanted = len(migrations)
    tables = _number(db, "SELECT count(*) FROM sqlite_master")
    if tables and _number(db, "PRAGMA application_id") != APPLICATION:
        raise DataError(f"{path}: is a database of another program; name a new file")
    found = file_format(db, path) if tables else 0
    if found == wanted:
        return
    if found > wanted or not writable:
        raise _refused(path, found, wanted)
    if not tables:
        # WAL: a commit is one append, and a reader never waits. It can't be set inside a transaction.
        db.execute("PRAGMA journal_mode=WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        # Looked at again under the lock: another process may have made or upgraded the file meanwhile.
        found = file_format(db, path) if _number(db, "SELECT count(*) FROM sqlite_master") else 0
        if found > wanted:
            raise _refused(path, found, wanted)
        db.execute(f"PRAGMA application_id={APPLICATION}")
        for migration in migrations[found:]:
            for statement in statements(migration.script):
                db.execute(statement)
            if migration.then is not None:
                migration.then(db)
        db.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?)", (str(wanted),))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def file_format(db: sqlite3.Connection, path: Path) -> int:
    """How many migrations an existing file has had. DataError if it doesn't say so."""
    row = db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    if row is None or not row[0].isdecimal():
        raise DataError(f"{path}: is a damaged memory (its format is missing); restore a copy")
    return int(row[0])


def statements(script: str) -> Iterator[str]:
    """The statements of a SQL script, one by one (`executescript` would commit the transaction it runs in).

    Example:
        list(statements("CREATE TABLE a (x); DROP TABLE a;")) == ["CREATE TABLE a (x);", "DROP TABLE a;"]
    """
    begun = ""
    for part in script.split(";")[:-1]:
        begun += f"{part};"
        if sqlite3.complete_statement(begun):
            yield begun.strip()
            begun = ""


def _number(db: sqlite3.Connection, query: str) -> int:
    return int(db.execute(query).fetchone()[0])


def _refused(path: Path, found: int, wanted: int) -> DataError:
    if found > wanted:
        return DataError(f"{path}: is of format {found}, this program knows {wanted}; use a newer release")
    return DataError(
        f"{path}: is of the older format {found} and may only be read; copy it to where it may be written and open the copy, "
        "which upgrades it: launch/ask.py --memory COPY QUESTION"
    )
