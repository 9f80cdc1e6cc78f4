"""One memory in one SQLite file: both tracks, append-only, whole segments only, safe against a crash at any moment.

A segment (its messages, the Writer's output on it, the records and edges that came of it) is one transaction. Appending
changes and deletes nothing (forgetting does: memory_env.store.forget); whether a record is superseded follows from the edges. The
tables are those of memory_env.store.schema.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from memory_env.datafile import DataError
from memory_env.ingest.chat import ChatMessage
from memory_env.records import VERBATIM_CONFIDENCE, VERBATIM_LAYER, VERBATIM_UTYPE, Record
from memory_env.state import MemoryState
from memory_env.store.erase import is_due, rewrite
from memory_env.store.keys import message_keys
from memory_env.store.rows import WrittenSegment, insert_segment
from memory_env.store.schema import open_layout
from memory_env.store.timeline import in_time


class MemoryStore:
    """The file. One process writes at a time; others may read.

    Example:
        with MemoryStore("family.db") as store:
            state = store.state()
    """

    def __init__(self, path: str | Path, create: bool = True):
        """Open or create; a file of an older format is upgraded (memory_env.store.schema). DataError for a file that is no
        memory, is of a newer format, or is being written."""
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise DataError(f"{self.path}: no such memory; launch/remember.py makes one")
        try:
            self._db, self.writable = self._connect(create)
            try:
                open_layout(self._db, self.path, self.writable)
            except BaseException:
                self._db.close()
                raise
            # A power cut may lose the last commits, never parts of one.
            self._db.execute("PRAGMA synchronous=NORMAL")
            if self.writable and is_due(self._db):
                # A process died while it forgot something; where another one still reads, the next to open goes on.
                with contextlib.suppress(DataError):
                    rewrite(self._db, self.path)
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: {_reason(error)}") from None

    def _connect(self, create: bool) -> tuple[sqlite3.Connection, bool]:
        """The connection, and whether it may write."""
        path, uri = str(self.path), False
        if not create and not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            # SQLite would want to write beside a file that is only to be read.
            path, uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", True
        return sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False, uri=uri), not uri

    def close(self) -> None:
        """Fold the log into the file and close it."""
        # While another process reads, the log stays; the last one to close folds it.
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the other files of this package."""
        return self._db

    def version(self) -> tuple[int, int]:
        """A number that changes whenever the file's content does, by this process or by another."""
        return self._one("PRAGMA data_version"), self._db.total_changes

    def _rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[tuple]:
        try:
            # Not `yield from`: a generator that is given up would close the cursor, of a file that may be closed by then.
            for row in self._db.execute(query, values):  # noqa: UP028
                yield row
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: {_reason(error)}") from None

    def _one(self, query: str) -> int:
        return next(self._rows(query))[0]

    def meta(self, key: str) -> str:
        """A setting of the memory; "" if it has none of that name."""
        return next((value for (value,) in self._rows("SELECT value FROM meta WHERE key = ?", (key,))), "")

    def counts(self) -> dict[str, int]:
        """Rows per table."""
        tables = ("segments", "members", "messages", "records", "edges")
        return {table: self._one(f"SELECT count(*) FROM {table}") for table in tables}

    def next_position(self) -> int:
        """The writing position that comes next."""
        return self._one("SELECT coalesce(max(position), -1) + 1 FROM segments")

    def members(self) -> list[tuple[str, str, str]]:
        """(canonical name, name in the export, speaker id) of every member."""
        return list(self._rows("SELECT name, speaker, speaker_id FROM members ORDER BY name"))

    def unseen(self, messages: Sequence[ChatMessage]) -> list[tuple[ChatMessage, bytes]]:
        """The messages that the memory does not hold, with their keys, in their order; each key once."""
        keys = message_keys(messages)
        fresh: list[tuple[ChatMessage, bytes]] = []
        taken: set[bytes] = set()
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            known = {row[0] for row in self._rows(f"SELECT key FROM messages WHERE key IN ({marks})", part)}
            for place, key in enumerate(part, start):
                if key not in known and key not in taken:
                    taken.add(key)
                    fresh.append((messages[place], key))
        return fresh

    def last_message(self, channel: str) -> tuple[str, int, float | None] | None:
        """(session, turn, seconds since 1970) of a channel's last message; None for a new channel."""
        query = "SELECT session, turn, at FROM messages WHERE channel = ? ORDER BY place DESC LIMIT 1"
        return next(self._rows(query, (channel,)), None)

    def sessions(self) -> int:
        """The number of the last session, which is how many there were."""
        # The highest number, not a count: a session whose messages were all forgotten keeps its name.
        return self._one("SELECT coalesce(max(CAST(substr(session, 2) AS INTEGER)), 0) FROM messages")

    def append(self, segments: Iterable[WrittenSegment]) -> None:
        """Add segments in one transaction. DataError where the file can't take them, OSError for a full disk; then it holds
        none of them."""
        with self.changing() as db:
            for written in segments:
                insert_segment(db, written)

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that writes: all of it or, where anything is raised, nothing. Errors as for `append`."""
        with self.reporting():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk has rolled back by itself.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reporting(self) -> Iterator[None]:
        """SQLite's errors as DataError, or as OSError where the disk is full."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise DataError(f"{self.path}: another program wrote to it meanwhile; run again, it goes on from there") from None
        except sqlite3.Error as error:
            if "full" in str(error):
                reason = "the disk is full; what was written is kept: make room and run again, it goes on from there"
                raise OSError(errno.ENOSPC, f"{self.path}: {reason}") from None
            raise DataError(f"{self.path}: {_reason(error)}") from None

    def state(self, as_of: float | None = None, messages: bool = True) -> MemoryState:
        """The memory, or the memory as it was at `as_of` (seconds since 1970); without `messages` its derived track alone.

        As of a time: the messages sent until then, and what the Writer made of segments that had ended by then. Chains are
        in the order of time (memory_env.store.timeline).
        """
        everything = as_of is None
        until = float("inf") if everything else as_of
        segments = {
            position: (session, ts)
            for position, session, ts, ends in self._rows("SELECT position, session, ts, ends FROM segments")
            if everything or (ends is not None and ends <= until)
        }
        updates = list(self._rows("SELECT old, new FROM edges ORDER BY place"))
        spoken = [
            Record(
                row[1], row[5], row[4], row[4], VERBATIM_LAYER, VERBATIM_UTYPE, row[2], row[3], row[0], row[6],
                confidence=VERBATIM_CONFIDENCE,
            )
            for row in (
                self._rows("SELECT position, entry_id, session, turn, speaker, content, ts, at FROM messages ORDER BY place")
                if messages
                else ()
            )
            if row[0] in segments or (row[7] is not None and row[7] <= until)
        ]  # fmt: skip
        derived = [
            Record(
                entry_id=row[1], content=row[6], owner=row[2], source=row[3], layer=row[4], utype=row[5],
                session=segments[row[0]][0], turn=0, turn_created=row[0], ts=segments[row[0]][1],
                from_ids=tuple(json.loads(row[8])), links=tuple(json.loads(row[9])),
                confidence=row[7],
            )
            for row in self._rows(
                "SELECT position, entry_id, owner, source, layer, utype, content, confidence, from_ids, links"
                " FROM records ORDER BY place"
            )
            if row[0] in segments
        ]  # fmt: skip
        return MemoryState.from_records([*spoken, *in_time(derived, updates)], {record.source for record in spoken})

    def message(self, entry_id: str) -> Record | None:
        """A message by its id."""
        query = "SELECT entry_id, content, speaker, session, turn, position, ts FROM messages WHERE entry_id = ?"
        row = next(self._rows(query, (entry_id,)), None)
        if row is None:
            return None
        entry, content, speaker, *place = row
        at = dict(zip(("session", "turn", "turn_created", "ts"), place, strict=True))
        return Record(entry, content, speaker, speaker, VERBATIM_LAYER, VERBATIM_UTYPE, **at, confidence=VERBATIM_CONFIDENCE)

    def ended_by(self, as_of: float) -> list[int]:
        """Positions of the segments that had ended at `as_of` (seconds since 1970)."""
        return [position for (position,) in self._rows("SELECT position FROM segments WHERE ends <= ?", (as_of,))]

    def segments(self) -> Iterator[dict[str, Any]]:
        """Every segment: position, session, ts, writer, completion, report."""
        rows = self._rows("SELECT position, session, ts, writer, completion, report FROM segments ORDER BY position")
        for position, session, ts, writer, completion, report in rows:
            yield {
                "position": position,
                "session": session,
                "ts": ts,
                "writer": writer,
                "completion": completion,
                "report": json.loads(report),
            }


def _reason(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return "another program is writing to it; wait for it and run again"
    if "not a database" in text or "malformed" in text:
        return f"is no memory, or a damaged one ({text}); name another file, or restore a copy"
    if "readonly" in text:
        return "may only be read; change its permissions, or copy it"
    if "unable to open" in text:
        return "cannot be opened or made; does its folder exist, and may it be written?"
    return text
