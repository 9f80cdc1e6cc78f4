"""Live messages of a memory: kept one by one, written in segments by silence or size."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from memory_env.ingest.chat import ChatMessage
from memory_env.store.inbox import put, take_out, waiting
from memory_env.store.intake import WINDOW
from memory_env.store.keys import message_keys
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import Tombstones, without_quotations

SILENCE = 600.0
"""Seconds without a message that end a segment."""

ResultT_co = TypeVar("ResultT_co", covariant=True)


class Remembers(Protocol[ResultT_co]):
    """A memory: its file, and how messages are written into it."""

    store: MemoryStore

    def remember(self, source: Iterable[ChatMessage], *, window: int) -> ResultT_co: ...


class LiveMessages(Generic[ResultT_co]):
    """What was said and is not written yet; all of it is in the memory file.

    A segment ends when `size` messages wait, or before a message that comes after `silence` seconds without one. Nobody
    writes the last one unless asked: `is_due` says when it is time, `flush` does it.
    """

    def __init__(self, memory: Remembers[ResultT_co], silence: float = SILENCE, size: int = WINDOW):
        self._memory, self.silence, self.size = memory, silence, size

    def put(self, message: ChatMessage, received: float | None = None) -> bool:
        """Keep a message; False if the memory knows its id, or must not know it (it was forgotten)."""
        now = time.time() if received is None else received
        if self.is_due(now):
            self.flush()
        kept = keep(self._memory.store, message, now)
        if self.is_due(now):
            self.flush()
        return kept

    def is_due(self, now: float) -> bool:
        """Whether what waits makes a whole segment."""
        query = "SELECT count(*), max(received) FROM inbox"
        count, last = self._memory.store.connection.execute(query).fetchone()
        return count >= self.size or (count > 0 and now - last > self.silence)

    def waiting(self) -> list[ChatMessage]:
        """What waits, in the order in which it was said."""
        return [each.message for each in waiting(self._memory.store)]

    def flush(self) -> ResultT_co:
        """Write what waits.

        A process that dies in between writes nothing twice: the messages have ids, and those written already are known.
        """
        held = waiting(self._memory.store)
        result = self._memory.remember([each.message for each in held], window=self.size)
        take_out(self._memory.store, [each.place for each in held])
        return result


def keep(store: MemoryStore, message: ChatMessage, received: float) -> bool:
    """Put a message into the inbox, unless it is known or may not come in."""
    (key,) = message_keys([message])
    stones = Tombstones(store.connection)
    if not stones.allows(message, key):
        return False
    if message.message_id and store.connection.execute("SELECT 1 FROM messages WHERE key = ?", (key,)).fetchone():
        return False
    return put(store, without_quotations(message, stones, stones.runs()), received)
