"""Live messages that were said but belong to no segment yet, in the memory file: none is lost with the process.

A message is in the inbox as soon as `put` returns. A segment takes it (writer_rl.memory.live) and then `take_out` removes it; a
process that dies in between writes nothing twice, since every message has an id.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory_env.datafile import DataError
from memory_env.ingest.chat import ChatMessage
from memory_env.store.store import MemoryStore

MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message in the inbox, and when it was put there (seconds since 1970)."""

    place: int
    received: float
    message: ChatMessage


def put(store: MemoryStore, message: ChatMessage, received: float) -> bool:
    """Keep a message until a segment takes it; False if one with its id waits already.

    A message without an id is given one. DataError while `MOST_WAITING` messages wait.
    """
    if not message.message_id:
        message = replace(message, message_id=f"live-{uuid.uuid4().hex}")
    with store.changing() as db:
        if db.execute("SELECT count(*) FROM inbox").fetchone()[0] >= MOST_WAITING:
            raise DataError(f"{store.path}: {MOST_WAITING} messages wait to be written; wait until the Writer has caught up")
        row = (
            received, message.speaker, message.speaker_id, message.content, message.ts, message.message_id, message.channel,
            message.channel_id, message.reply_to,
        )  # fmt: skip
        marks = ", ".join("?" * len(row))
        added = db.execute(
            "INSERT OR IGNORE INTO inbox"
            f" (received, speaker, speaker_id, content, ts, message_id, channel, channel_id, reply_to) VALUES ({marks})",
            row,
        ).rowcount
    return added > 0


def waiting(store: MemoryStore) -> list[Waiting]:
    """What waits, in the order in which it was put."""
    columns = ("speaker", "content", "ts", "speaker_id", "message_id", "channel", "reply_to", "channel_id")
    rows = store.connection.execute(f"SELECT place, received, {', '.join(columns)} FROM inbox ORDER BY place").fetchall()
    return [Waiting(row[0], row[1], ChatMessage(**dict(zip(columns, row[2:], strict=True)))) for row in rows]


def take_out(store: MemoryStore, places: Iterable[int]) -> None:
    """Remove messages that a segment has taken."""
    with store.changing() as db:
        db.executemany("DELETE FROM inbox WHERE place = ?", [(place,) for place in places])
