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

    Records take their time from their segment, so they follow.
    """
    rows = db.execute("SELECT place, position, ts FROM messages WHERE channel = ?", (channel,)).fetchall()
    times = [(ts, instant(ts), place) for place, ts in ((row[0], swapped(row[2])) for row in rows)]
    db.executemany("UPDATE messages SET ts = ?, at = ? WHERE place = ?", times)
    positions = json.dumps(sorted({row[1] for row in rows}))
    db.execute(
        "UPDATE segments SET ends = (SELECT max(at) FROM messages m WHERE m.position = segments.position),"
        " ts = coalesce((SELECT ts FROM messages m WHERE m.position = segments.position ORDER BY place LIMIT 1), ts)"
        " WHERE position IN (SELECT value FROM json_each(?))",
        (positions,),
    )
    renew_keys(db, channel, channel_id)
    return len(rows)


def renew_keys(db: sqlite3.Connection, channel: str, channel_id: str) -> None:
    """Make the keys of a chat's messages anew, after their times or their channel changed; an id keeps its key."""
    rows = db.execute(
        "SELECT m.place, n.speaker, m.content, m.ts, n.speaker_id FROM messages m LEFT JOIN members n ON n.name = m.speaker"
        " WHERE m.channel = ? AND m.message_id = '' ORDER BY m.place",
        (channel,),
    ).fetchall()
    keys = message_keys(
        [ChatMessage(row[1] or "", row[2], row[3], row[4] or "", channel=channel, channel_id=channel_id) for row in rows]
    )
    # Keys are unique, and a new one may be the old one of a message that is still to come.
    db.executemany("UPDATE messages SET key = ? WHERE place = ?", [(f"moving {row[0]}".encode(), row[0]) for row in rows])
    db.executemany("UPDATE messages SET key = ? WHERE place = ?", [(key, row[0]) for key, row in zip(keys, rows, strict=True)])
