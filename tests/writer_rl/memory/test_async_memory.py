import asyncio
import inspect

import pytest

from memory_env.datafile import DataError
from writer_rl import AsyncMemory, Memory

CHAT = [("Ann", "My sister lives in Bergen", "2025-03-01T10:00:00"), ("Bob", "I bake bread", "2025-03-01T10:01:00")]


def test_it_does_what_memory_does(tmp_path):
    async def main():
        async with AsyncMemory(tmp_path / "a.db") as memory:
            assert (await memory.remember(CHAT)).new == 2
            assert await memory.say("Cem", "hello")
            assert (await memory.flush()).new == 1
            answers = await asyncio.gather(*(memory.ask("Where does Ann's sister live?") for _ in range(3)))
            assert all("Bergen" in answer.text for answer in answers)
            assert await memory.chains("Ann") == []
            assert (await memory.forget("Ann")).messages == 1
            assert (await memory.state()).roster == ("Bob", "Cem")
        unclosed = AsyncMemory(tmp_path / "b.db")
        await unclosed.say("Ann", "without `with`")
        await unclosed.close()
        with pytest.raises(DataError, match="no such memory"):
            await AsyncMemory(tmp_path / "c.db", create=False).ask("Who?")

    asyncio.run(main())
    with Memory(tmp_path / "b.db") as memory:
        assert len(memory.live.waiting()) == 1


def test_every_call_of_memory_has_its_twin():
    def calls(kind):
        return {name for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert calls(Memory) <= calls(AsyncMemory)


def test_a_source_that_cannot_be_read_leaves_no_file(tmp_path):
    with pytest.raises(DataError), Memory(tmp_path / "m.db") as memory:
        memory.remember(tmp_path / "mistyped.txt")
    assert list(tmp_path.iterdir()) == []
    with Memory(tmp_path / "m.db") as memory:
        memory.remember(CHAT)
    with pytest.raises(DataError), Memory(tmp_path / "m.db") as memory:
        memory.remember(tmp_path / "mistyped.txt")
    with Memory(tmp_path / "m.db", create=False) as memory:
        assert len(memory.state().roster) == 2
