"""The rows that a written segment becomes: its messages and their speakers, the Writer's output, records and edges."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory_env.conversation import Segment
from memory_env.ingest.chat import ChatMessage
from memory_env.ingest.text_stream import well_formed
from memory_env.ingest.times import instant
from memory_env.records import Edge, Record
from memory_env.step import Report


@dataclass(frozen=True, slots=True)
class Arrived:
    """A segment of new messages: as the environment reads it, as the export told it, and the messages' keys."""

    segment: Segment
    sources: tuple[ChatMessage, ...]
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """What became of an arrived segment: the Writer's output and the records of both tracks that came of it.

    Example:
        WrittenSegment(arrived, "none", '{"actions":[{"action":"NOOP"}]}', report, messages, records=(), edges=())
    """

    arrived: Arrived
    writer: str
    completion: str
    report: Report
    messages: tuple[Record, ...]
    records: tuple[Record, ...]
    edges: tuple[Edge, ...]


def insert_segment(db: sqlite3.Connection, written: WrittenSegment) -> None:
    """Add a segment with all that came of it, inside a transaction."""
    segment, position = written.arrived.segment, written.arrived.segment.position
    times = [at for message in segment.messages if (at := instant(message.ts)) is not None]
    report = json.dumps(written.report.to_dict(), ensure_ascii=False)
    db.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            position, segment.session_id, segment.ts, max(times, default=None), written.writer,
            well_formed(written.completion), well_formed(report),
        ),
    )  # fmt: skip
    db.executemany(
        "INSERT INTO members (name, speaker, speaker_id, named_at) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET named_at = max(coalesce(named_at, excluded.named_at), coalesce(excluded.named_at, named_at))",
        _last_heard(written.arrived),
    )
    db.executemany(
        "INSERT OR IGNORE INTO chats VALUES (?, ?, ?, '', 0)",
        {(source.channel, source.channel_id, source.channel) for source in written.arrived.sources},
    )
    db.executemany(
        "INSERT INTO messages"
        " (position, entry_id, session, turn, speaker, ts, at, content, message_id, reply_to, channel, key, edited)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                position, record.entry_id, record.session, record.turn, record.source, record.ts, instant(record.ts),
                well_formed(record.content), source.message_id, source.reply_to, source.channel, key, edit_of(source),
            )
            for record, source, key in zip(written.messages, written.arrived.sources, written.arrived.keys, strict=True)
        ],
    )  # fmt: skip
    insert_derived(db, position, written.records, written.edges)


def insert_derived(db: sqlite3.Connection, position: int, records: Sequence[Record], edges: Sequence[Edge]) -> None:
    """Add what a Writer derived from a segment, inside a transaction."""
    db.executemany(
        "INSERT INTO records (position, entry_id, owner, source, layer, utype, content, confidence, from_ids, links)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                position, record.entry_id, record.owner, record.source, record.layer, record.utype,
                well_formed(record.content),  # a Writer can write half of an emoji as an escape
                record.confidence, json.dumps(record.from_ids), json.dumps(record.links),
            )
            for record in records
        ],
    )  # fmt: skip
    db.executemany("INSERT INTO edges (position, old, new) VALUES (?, ?, ?)", [(position, edge.old, edge.new) for edge in edges])


def edit_of(message: ChatMessage) -> str:
    """When a message was edited, "edited" where only that is known, "" where it was not."""
    return message.edited_at or ("edited" if message.edited else "")


def _last_heard(arrived: Arrived) -> list[tuple[str, str, str, float | None]]:
    """(canonical name, name in the export, speaker id, time of the last message) of a segment's speakers."""
    latest: dict[tuple[str, str, str], float | None] = {}
    for message, source in zip(arrived.segment.messages, arrived.sources, strict=True):
        member, at = (message.speaker, source.speaker, source.speaker_id), instant(message.ts)
        before = latest.get(member)
        latest[member] = at if before is None else before if at is None else max(before, at)
    return [(*member, at) for member, at in latest.items()]
