"""Leaving no byte behind: after rows are deleted, the file is written anew and its log emptied.

Deleting is committed together with a note that the file is still to be rewritten. A process that dies in between leaves the note,
and whoever opens the file next goes on.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.store.search import scrub

_DUE = "rewrite_due"


def mark_due(db: sqlite3.Connection) -> None:
    """Note, in the transaction that deletes, that the file is to be rewritten."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", (_DUE,))


def is_due(db: sqlite3.Connection) -> bool:
    """Whether rows were deleted and the file was not rewritten since."""
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (_DUE,)).fetchone() is not None


def rewrite(db: sqlite3.Connection, path: Path) -> None:
    """Write the file anew without what was deleted, and empty its log.

    DataError while another process reads the memory: what it still reads can't be taken away from under it.
    """
    db.execute("PRAGMA secure_delete=ON")
    _empty_log(db, path)
    scrub(db)
    db.execute("VACUUM")
    _empty_log(db, path)
    db.execute("DELETE FROM meta WHERE key = ?", (_DUE,))
    _empty_log(db, path)


def _empty_log(db: sqlite3.Connection, path: Path) -> None:
    busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise DataError(
            f"{path}: another program has it open, so the file still holds bytes of what was forgotten; "
            "close that program and run the same command again"
        )
