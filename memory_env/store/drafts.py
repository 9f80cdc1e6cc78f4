"""Segments that a Writer has still to write, and outputs that wait until a whole derived track is there to be put in place."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from memory_env.conversation import Message, Segment
from memory_env.ingest.text_stream import well_formed
from memory_env.records import Edge, Record
from memory_env.step import Report
from memory_env.store.rows import insert_derived
from memory_env.store.store import MemoryStore

NOBODY = "none"
"""The Writer of segments that are kept word for word only."""

@dataclass(frozen=True, slots=True)
class WriterOutput:
    """A Writer's output on a segment. `refused` is why there is none ("" where there is one).

    Example: WriterOutput('{"actions":[{"action":"NOOP"}]}')
    """

    completion: str
    hit_length_limit: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A segment's new derived records: who wrote it, the output, its report, and what came of it."""

    position: int
    writer: str
    draft: WriterOutput
    report: Report
    records: tuple[Record, ...]
    edges: tuple[Edge, ...]


def note_unwritten(store: MemoryStore, reasons: Iterable[tuple[int, str]]) -> None:
    """Note why the Writer wrote nothing on segments: (position, reason)."""
    with store.changing() as db:
        db.executemany("INSERT OR REPLACE INTO unwritten VALUES (?, ?)", list(reasons))


def unwritten(store: MemoryStore) -> list[tuple[int, str]]:
    """(position, reason) of the segments that no Writer has written; "" where none was asked."""
    query = (
        "SELECT segments.position, coalesce(reason, '') FROM segments LEFT JOIN unwritten USING (position)"
        " WHERE writer = ? ORDER BY segments.position"
    )
    return list(store.connection.execute(query, (NOBODY,)))


def segments_in_time(store: MemoryStore) -> list[int]:
    """Positions of all segments in the order in which they were said."""
    query = (
        "SELECT segments.position FROM segments LEFT JOIN (SELECT position, min(at) AS begins FROM messages GROUP BY position)"
        " USING (position) ORDER BY begins IS NULL, begins, segments.position"
    )
    return [position for (position,) in store.connection.execute(query)]


def segment_at(store: MemoryStore, position: int) -> Segment:
    """A segment of the memory, as it was given to the Writer."""
    query = "SELECT session, ts FROM segments WHERE position = ?"
    session, ts = store.connection.execute(query, (position,)).fetchone()
    rows = store.connection.execute(
        "SELECT speaker, content, ts, message_id, session, turn, reply_to FROM messages WHERE position = ? ORDER BY turn, place",
        (position,),
    )
    messages = tuple(
        Message(speaker, content, at, message_id or f"{of}_t{turn:03d}", of, turn, "", reply_to)
        for speaker, content, at, message_id, of, turn, reply_to in rows
    )
    return Segment(position, session, ts, messages)


def message_ids(store: MemoryStore, position: int) -> list[str]:
    """Entry ids of a segment's messages, in their order."""
    query = "SELECT entry_id FROM messages WHERE position = ? ORDER BY turn, place"
    return [entry_id for (entry_id,) in store.connection.execute(query, (position,))]


def draft(store: MemoryStore, writer: str, position: int) -> WriterOutput | None:
    """What a Writer has written already, in an attempt that did not come to its end."""
    query = "SELECT completion, hit_length_limit, refused FROM drafts WHERE writer = ? AND position = ?"
    row = store.connection.execute(query, (writer, position)).fetchone()
    return WriterOutput(row[0], bool(row[1]), row[2]) if row else None


def keep_draft(store: MemoryStore, writer: str, position: int, made: WriterOutput) -> None:
    """Keep an output at once: it may have been paid for."""
    with store.changing() as db:
        values = (writer, position, well_formed(made.completion), int(made.hit_length_limit), made.refused)
        db.execute("INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?)", values)


def put_in_place(store: MemoryStore, rewritten: Iterable[Rewritten], writer: str, anew: bool) -> None:
    """Make outputs part of the memory, in one transaction; with `anew` the derived track there was goes."""
    with store.changing() as db:
        if anew:
            for table in ("records", "edges", "unwritten"):
                db.execute(f"DELETE FROM {table}")
        for each in rewritten:
            _insert(db, each)
        db.execute("DELETE FROM drafts WHERE writer = ?", (writer,))


def _insert(db: sqlite3.Connection, each: Rewritten) -> None:
    report = well_formed(json.dumps(each.report.to_dict(), ensure_ascii=False))
    db.execute(
        "UPDATE segments SET writer = ?, completion = ?, report = ? WHERE position = ?",
        (each.writer, well_formed(each.draft.completion), report, each.position),
    )
    db.execute("DELETE FROM unwritten WHERE position = ?", (each.position,))
    if each.draft.refused:
        db.execute("INSERT INTO unwritten VALUES (?, ?)", (each.position, each.draft.refused))
    insert_derived(db, each.position, each.records, each.edges)
