"""Dates whose day and month a phone leaves open: read one way, known better later, put right everywhere."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from memory_env.ingest.chat import ChatMessage
from memory_env.ingest.times import instant
from memory_env.store.keys import message_keys


def swapped(ts: str) -> str:
    """A time with day and month exchanged; unchanged where that is no date.

    Example:
        swapped("2025-03-04T10:00:00") == "2025-04-03T10:00:00"; swapped("2025-03-14T10:00:00") is unchanged
    """
    try:
        moment = datetime.fromisoformat(ts)
        return moment.replace(month=moment.day, day=moment.month).isoformat() if moment.day <= 12 else ts
    except ValueError:
        return ts


def swap_held(db: sqlite3.Connection, channel: str, channel_id: str) -> int:
    """Exchange day and month in everything that a memory holds of a chat, inside a transaction; how many messages.

    Records take their time from their segment, so they follow. Messages with ids keep their keys.
    """
    rows = db.execute(
        "SELECT m.place, m.position, m.ts, m.content, m.message_id, n.speaker, n.speaker_id"
        " FROM messages m LEFT JOIN members n ON n.name = m.speaker WHERE m.channel = ? ORDER BY m.place",
        (channel,),
    ).fetchall()
    messages = [
        ChatMessage(row[5] or "", row[3], swapped(row[2]), row[6] or "", row[4], channel, channel_id=channel_id) for row in rows
    ]
    keys = message_keys(messages)
    # Keys are unique, and a new one may be the old one of a message that is still to come.
    db.executemany("UPDATE messages SET key = ? WHERE place = ?", [(f"moving {row[0]}".encode(), row[0]) for row in rows])
    db.executemany(
        "UPDATE messages SET ts = ?, at = ?, key = ? WHERE place = ?",
        [(m.ts, instant(m.ts), key, row[0]) for m, key, row in zip(messages, keys, rows, strict=True)],
    )
    positions = json.dumps(sorted({row[1] for row in rows}))
    db.execute(
        "UPDATE segments SET ends = (SELECT max(at) FROM messages m WHERE m.position = segments.position),"
        " ts = coalesce((SELECT ts FROM messages m WHERE m.position = segments.position ORDER BY place LIMIT 1), ts)"
        " WHERE position IN (SELECT value FROM json_each(?))",
        (positions,),
    )
    return len(rows)
