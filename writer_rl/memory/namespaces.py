"""Many chats, each a memory file of its own, used by many callers at once: what the memory server does, without a protocol.

A chat is a namespace: nothing of one file is ever read for a question to another. Of each file there is one writer (segments,
forgetting) and there are several readers; a message is in the file's inbox when `remember` returns, whatever the writer does.
SQLite and the models work in threads, so the event loop never waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from memory_env.datafile import DataError
from memory_env.store.deletion import Forgotten
from writer_rl.memory.live import SILENCE
from writer_rl.memory.open_chat import OpenChat, SharedWriter
from writer_rl.memory.plain_text import person_lines
from writer_rl.memory.sources import as_message
from writer_rl.memory.views import member_view

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes that a caller may not exceed, and how many calls to one chat may wait at once.

    Example:
        Limits(text=4000, waiting=16)
    """

    name: int = 100
    text: int = 16_000
    question: int = 2_000
    waiting: int = 64
    chats: int = 1_000


@dataclass(frozen=True, slots=True)
class Recalled:
    """An answer from one chat: its evidence as lines, and what was said since and is not written yet."""

    chat: str
    answer: str
    evidence: tuple[str, ...]
    unwritten: tuple[str, ...]


class Namespaces:
    """The chats of a folder (or the one of a single file).

    Example:
        async with Namespaces("memories") as chats:
            await chats.remember("family", {"speaker": "Alice", "content": "hello", "ts": "2025-03-01T10:00"})
            (await chats.recall("family", "Who said hello?")).answer
    """

    def __init__(
        self,
        place: str | Path,
        *,
        open_writer: Callable[[], Any] | None = None,
        only: Sequence[str] = (),
        silence: float = SILENCE,
        size: int = 25,
        readers: int = 2,
        retrieval: str = "auto",
        limits: Limits | None = None,
    ):
        """place: a folder, made if it is not there, or a memory file. only: the chats that may be named. retrieval: as in
        `Memory`."""
        self.place = Path(place)
        self._single = self.place.is_file()
        if not self._single:
            self.place.mkdir(parents=True, exist_ok=True)
        self._writer = SharedWriter(open_writer) if open_writer else None
        self._only, self._silence, self._size, self._readers = set(only), silence, size, readers
        self.limits = limits or Limits()
        self._retrieval = retrieval
        self._open: dict[str, OpenChat] = {}
        self._opening = asyncio.Lock()
        self._flusher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Namespaces:
        self._flusher = asyncio.create_task(self._flush_in_time())
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Write what waits, unless a Writer would have to (it waits in the file then), and close every file."""
        if self._flusher is not None:
            self._flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flusher
            self._flusher = None
        for chat in list(self._open.values()):
            async with chat.writing, chat.putting:
                if self._writer is None and chat.count:
                    await asyncio.to_thread(chat.flush_now)
                await asyncio.to_thread(chat.close_now)
        self._open.clear()
        if self._writer is not None:
            await asyncio.to_thread(self._writer.end)

    def names(self) -> list[str]:
        """The chats that there are and may be named."""
        if self._single:
            return [self.place.stem]
        there = sorted(unquote(file.stem) for file in self.place.glob("*.db"))
        return [name for name in there if not self._only or name in self._only]

    async def remember(self, chat: str, message: Any) -> bool:
        """Keep one message (writer_rl.memory.sources says how it is written); it is in the file when this returns.

        False if it is known, or was forgotten. DataError for what is no message, is too long, or comes too fast.
        """
        kept = as_message(message, "message", chat)
        self._within("text", kept.content, self.limits.text)
        for name in ("speaker", "speaker_id", "message_id", "reply_to", "ts"):
            self._within(name, getattr(kept, name), self.limits.name)
        async with self._used(chat, make=True) as opened, opened.putting:
            new = await asyncio.to_thread(opened.put_now, kept)
            opened.count += new
            opened.last_put = time.time()
        return new

    async def recall(self, chat: str, question: str, as_of: str | None = None) -> Recalled:
        """What one chat says about a question."""
        self._within("question", question, self.limits.question)
        async with self._used(chat) as opened:
            if opened.count and self._writer is None:
                await self._flush(opened)
            async with opened.reader() as memory:
                answered = await asyncio.to_thread(opened.ask_now, memory, question, as_of, self._busy())
                waiting = await asyncio.to_thread(memory.live.waiting) if opened.count else []
        unwritten = tuple(f"{message.speaker} @ {message.ts}: {message.content}" for message in waiting[-10:])
        return Recalled(chat, answered.text, tuple(map(str, answered.evidence)), unwritten)

    async def rows(self, chat: str, member: str) -> str:
        """What a chat's memory holds about a member (or GROUP), as lines."""
        async with self._used(chat) as opened, opened.reader() as memory:

            def read() -> str:
                memory.chains(member)  # says who is there if this is nobody
                return "\n".join(person_lines(member_view(memory.state(), member)))

            return await asyncio.to_thread(read)

    async def forget(self, chat: str, member: str = "", message: str = "", record: str = "") -> Forgotten:
        """Forget a member, a message or a record of one chat."""
        async with self._used(chat) as opened, opened.writing, opened.putting, opened.alone():
            forgotten = await asyncio.to_thread(opened.pen.forget, member, message=message, record=record)
            opened.count = len(opened.pen.live.waiting())
            return forgotten

    def _busy(self) -> bool:
        """Whether other calls are going on than the one that asks."""
        return sum(chat.calls for chat in self._open.values()) > 1

    async def _flush(self, chat: OpenChat) -> None:
        async with chat.writing:
            before = chat.count
            await asyncio.to_thread(chat.flush_now)
            # What came in meanwhile waits for the next segment.
            chat.count = max(0, chat.count - before)

    async def _flush_in_time(self) -> None:
        """Write segments when they are due; first what a process before this one left."""
        for name in self.names():
            with contextlib.suppress(DataError):
                async with self._used(name):
                    pass
        turn = 0
        while True:
            for chat in [each for each in self._open.values() if each.is_due()]:
                # A Writer that fails now is asked again next time; the messages are in the file.
                with contextlib.suppress(Exception):
                    await self._flush(chat)
            # One chat at a time, so that vectors never take the machine from questions.
            due = [each for each in self._open.values() if each.vectors_due]
            for chat in due[turn % len(due) :][:1] if due else ():
                with contextlib.suppress(Exception):
                    async with chat.reader() as memory:
                        await asyncio.to_thread(chat.make_vectors_now, memory)
            turn += 1
            await asyncio.sleep(1.0)

    @contextlib.asynccontextmanager
    async def _used(self, name: str, make: bool = False) -> AsyncIterator[OpenChat]:
        chat = self._open.get(name) or await self._opened(name, make)
        if chat.calls >= self.limits.waiting:
            raise DataError(f"chat {name!r}: {chat.calls} calls wait already; try again in a moment")
        chat.calls += 1
        try:
            yield chat
        finally:
            chat.calls -= 1

    async def _opened(self, name: str, make: bool) -> OpenChat:
        path = self._path(name)
        async with self._opening:
            if name not in self._open:
                if not path.is_file():
                    if not make:
                        raise DataError(f"there is no chat {name!r}; there are {', '.join(map(repr, self.names())) or 'none'}")
                    if len(self.names()) >= self.limits.chats:
                        raise DataError(f"chat {name!r}: there are {self.limits.chats} chats already; no more are made")
                arguments = (path, self._writer, self._readers, self._silence, self._size, self._retrieval)
                self._open[name] = await asyncio.to_thread(OpenChat, *arguments)
            return self._open[name]

    def _path(self, name: str) -> Path:
        if not name.strip():
            raise DataError("chat: is empty; name the chat")
        self._within("chat", name, self.limits.name)
        if self._only and name not in self._only:
            raise DataError(f"there is no chat {name!r}; there are {', '.join(map(repr, sorted(self._only)))}")
        if self._single:
            if name != self.place.stem:
                raise DataError(f"there is no chat {name!r}; there is {self.place.stem!r} alone")
            return self.place
        # Every chat has a file of its own, and no name leads out of the folder.
        file = quote(name, safe="").replace(".", "%2E")
        if len(file) > 200:
            raise DataError("chat: the name is too long for a file; give a shorter one")
        return self.place / f"{file}.db"

    @staticmethod
    def _within(what: str, text: str, most: int) -> None:
        if len(text) > most:
            raise DataError(f"{what}: has {len(text)} characters, at most {most} are taken")
