"""`Memory` for programs that run an event loop: the same calls, awaited; the work is done in a thread, one call at a time.

from writer_rl import AsyncMemory

async with AsyncMemory("family.db") as memory:
    await memory.say("Alice", "The new flat is tiny.")
    print((await memory.ask("What does Alice think of the new flat?")).text)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from memory_env.records import Record
from memory_env.state import MemoryState
from memory_env.store.deletion import Forgotten
from writer_rl.memory import rewriting
from writer_rl.memory.answers import Answered
from writer_rl.memory.memory import Memory
from writer_rl.memory.remembering import Remembered
from writer_rl.memory.sources import Message

T = TypeVar("T")


class AsyncMemory:
    """A memory whose calls don't hold up the event loop. Opened at the first call; takes what `Memory` takes."""

    def __init__(self, path: str | Path, *arguments: Any, **options: Any):
        self._open: Callable[[], Memory] = lambda: Memory(path, *arguments, **options)
        self._memory: Memory | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> AsyncMemory:
        await self._do(lambda memory: None)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the file and the Writer."""
        async with self._turn:
            if self._memory is not None:
                await asyncio.to_thread(self._memory.close)
                self._memory = None

    async def remember(self, source: str | Path | Iterable[Message], **options: Any) -> Remembered:
        """`Memory.remember`."""
        return await self._do(lambda memory: memory.remember(source, **options))

    async def say(self, speaker: str, content: str, ts: datetime | str | None = None, **more: str) -> bool:
        """`Memory.say`: one live message, in the file when this returns."""
        return await self._do(lambda memory: memory.say(speaker, content, ts, **more))

    async def flush(self) -> Remembered:
        """`Memory.flush`."""
        return await self._do(lambda memory: memory.flush())

    async def retry(self) -> rewriting.WritingSummary:
        """`Memory.retry`."""
        return await self._do(lambda memory: memory.retry())

    async def rewrite(self) -> rewriting.WritingSummary:
        """`Memory.rewrite`."""
        return await self._do(lambda memory: memory.rewrite())

    async def ask(self, question: str, as_of: str | date | None = None) -> Answered:
        """`Memory.ask`."""
        return await self._do(lambda memory: memory.ask(question, as_of))

    async def forget(self, member: str = "", **what: Any) -> Forgotten:
        """`Memory.forget`."""
        return await self._do(lambda memory: memory.forget(member, **what))

    async def allow(self, name: str) -> bool:
        """`Memory.allow`."""
        return await self._do(lambda memory: memory.allow(name))

    async def state(self, as_of: str | date | None = None) -> MemoryState:
        """`Memory.state`."""
        return await self._do(lambda memory: memory.state(as_of))

    async def chains(self, owner: str, as_of: str | date | None = None) -> list[tuple[Record, ...]]:
        """`Memory.chains`."""
        return await self._do(lambda memory: memory.chains(owner, as_of))

    async def _do(self, call: Callable[[Memory], T]) -> T:
        async with self._turn:
            if self._memory is None:
                self._memory = await asyncio.to_thread(self._open)
            return await asyncio.to_thread(call, self._memory)
