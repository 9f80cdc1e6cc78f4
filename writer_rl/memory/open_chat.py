"""The open file of one chat in a server: one memory that takes messages in, one that writes, several that read."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from memory_env.conversation import Segment
from memory_env.replay import Completion
from memory_env.state import MemoryState
from writer_rl.memory.answers import Answered
from writer_rl.memory.live import keep
from writer_rl.memory.memory import Memory

VECTORS_AT_A_TIME = 32


class SharedWriter:
    """One Writer for all chats: opened when first used, one segment at a time."""

    def __init__(self, open_writer: Callable[[], Any]):
        self._open, self._lock = open_writer, threading.Lock()
        self._writer: Any = None

    @property
    def identity(self) -> str:
        """What determines its outputs."""
        return str(self._opened().identity)

    def write(self, state: MemoryState, segment: Segment, network_id: str = "") -> Completion:
        """The Writer's output."""
        writer = self._opened()
        with self._lock:
            return writer.write(state, segment, network_id)

    def close(self) -> None:
        """Of one chat: the others go on with it."""

    def end(self) -> None:
        """Free the Writer."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()

    def _opened(self) -> Any:
        with self._lock:
            if self._writer is None:
                self._writer = self._open()
            return self._writer


class OpenChat:
    """The open file of one chat. Methods that end in `_now` work in a thread."""

    def __init__(self, path: Path, writer: SharedWriter | None, readers: int, silence: float, size: int, retrieval: str):
        self.path, self._writer, self._readers, self._retrieval = path, writer, readers, retrieval
        self._silence, self._size = silence, size
        self.door = Memory(path)
        self.pen = Memory(path, writer or "none")
        self.vectors_due = True
        self.pen.live.silence, self.pen.live.size = silence, size
        self.writing, self.putting = asyncio.Lock(), asyncio.Lock()
        self.free: asyncio.Queue[Memory] = asyncio.Queue()
        for _ in range(readers):
            self.free.put_nowait(self._new_reader())
        self.calls = 0
        self.last_put = time.time()
        self.count = len(self.pen.live.waiting())

    def _new_reader(self) -> Memory:
        return Memory(self.path, create=False, retrieval=self._retrieval)

    def put_now(self, message: Any) -> bool:
        return keep(self.door.store, message, time.time())

    def flush_now(self) -> None:
        self.pen.flush()
        self.vectors_due = True

    def ask_now(self, memory: Memory, question: str, as_of: str | None, busy: bool) -> Answered:
        # On a busy server new messages are found by their words until `make_vectors_now` comes to them.
        memory.retrieval.at_once = 0 if busy else VECTORS_AT_A_TIME
        return memory.ask(question, as_of)

    def make_vectors_now(self, memory: Memory) -> None:
        """Some of the vectors that are missing."""
        self.vectors_due = memory.retrieval.make_vectors(VECTORS_AT_A_TIME) == VECTORS_AT_A_TIME

    def is_due(self) -> bool:
        """Whether what waits makes a segment."""
        return self.count >= self._size or (self.count > 0 and time.time() - self.last_put > self._silence)

    @contextlib.asynccontextmanager
    async def reader(self) -> AsyncIterator[Memory]:
        """A reader that nobody else uses meanwhile."""
        memory = await self.free.get()
        try:
            yield memory
        finally:
            self.free.put_nowait(memory)

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """No reader, and afterwards new ones, which have read nothing yet."""
        taken = [await self.free.get() for _ in range(self._readers)]
        try:
            for memory in taken:
                memory.close()
            yield
        finally:
            for _ in taken:
                self.free.put_nowait(self._new_reader())

    def close_now(self) -> None:
        while not self.free.empty():
            self.free.get_nowait().close()
        self.pen.close()
        self.door.close()
