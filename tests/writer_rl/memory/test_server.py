"""The memory server, asked by the official client."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from memory_env.datafile import DataError
from memory_env.query.retrieve.minilm import minilm_here
from memory_env.replay import Completion
from tests.conftest import PATIENCE
from writer_rl import Memory
from writer_rl.memory.namespaces import Limits, Namespaces
from writer_rl.memory.open_chat import VECTORS_AT_A_TIME, OpenChat
from writer_rl.memory.server import Guard, build_server
from writer_rl.memory.sources import as_message

SERVE = ["-c", "from writer_rl.memory.cli import main; main()", "memory", "serve"]


@asynccontextmanager
async def connected(place, allow_forget=False, **options):
    async with Namespaces(place, **options) as chats, Client(build_server(chats, allow_forget)) as client:
        yield client


async def called(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return result.content[0].text


async def told(client, chat, *messages):
    for minute, (speaker, text) in enumerate(messages):
        at = f"2025-03-01T10:{minute:02d}:00"
        assert (await called(client, "remember", chat=chat, speaker=speaker, text=text, time=at))["kept"]


def test_three_tools_and_one_resource(tmp_path):
    async def main():
        async with connected(tmp_path, allow_forget=True) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["remember", "recall", "forget"]
            (rows,) = (await client.list_resource_templates()).resource_templates
            assert rows.uri_template == "memory://{chat}/members/{member}"
            await told(client, "family", ("Ann", "My sister lives in Bergen"), ("Bob", "I bake bread on Sundays"))
            (answer,) = (await called(client, "recall", chat="family", question="Where does Ann's sister live?"))["answers"]
            assert answer["chat"] == "family" and any("Bergen" in line for line in answer["evidence"])
            read = await client.read_resource("memory://family/members/Ann")
            assert read.contents[0].text == "nothing is recorded about Ann"
            gone = await called(client, "forget", chat="family", member="Ann")
            assert gone["messages"] == 1
            assert "is no member" in await refused(client, "forget", chat="family", member="Ann")
        assert b"Bergen" not in (tmp_path / "family.db").read_bytes()
        async with connected(tmp_path) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["remember", "recall"]

    asyncio.run(main())


def test_a_private_chat_never_surfaces_in_another(tmp_path):
    questions = ["What is the PIN?", "Who has a secret?", "What did Ann say?", "4711", "Tell me about Ann", "What is Ann's PIN?"]

    async def main():
        async with connected(tmp_path) as client:
            await told(client, "Ann and Bob", ("Ann", "my secret PIN is 4711"), ("Bob", "I keep your secret"))
            await told(client, "everybody", ("Ann", "lunch at noon?"), ("Cem", "yes, Ann"))
            for question in questions:
                found = await called(client, "recall", chat="everybody", question=question)
                assert "4711" not in str(found).replace(question, "") and "Bob" not in str(found)
            both = await called(client, "recall", chat="everybody", also=["Ann and Bob"], question="What is Ann's secret PIN?")
            assert [answer["chat"] for answer in both["answers"]] == ["everybody", "Ann and Bob"]
            assert "4711" not in str(both["answers"][0]) and "4711" in str(both["answers"][1])
        async with connected(tmp_path, only=["everybody"]) as client:
            assert "no chat" in await refused(client, "recall", chat="Ann and Bob", question="What is the PIN?")
            with pytest.raises(Exception, match="no chat 'Ann and Bob'"):
                await client.read_resource("memory://Ann%20and%20Bob/members/Ann")

    asyncio.run(main())


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "C:\\x", "\x00", "family.db", "x" * 100, "家族", "%2E%2E"])
def test_every_name_is_a_file_in_the_folder(tmp_path, name):
    folder = tmp_path / "memories"

    async def main():
        async with Namespaces(folder) as chats:
            await chats.remember(name, ("Ann", "hello", "2025-03-01T10:00:00"))
            assert chats.names() == [name]
        async with Namespaces(folder) as chats:
            assert chats.names() == [name] and "hello" in str(await chats.recall(name, "Who said hello?"))

    asyncio.run(main())
    assert [path.name for path in tmp_path.iterdir()] == ["memories"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"chat": " "}, "chat: is empty"),
        ({"chat": "x" * 101}, "chat: has 101 characters, at most 100"),
        ({"text": "x" * 20_000}, "text: has 20000 characters"),
        ({"speaker": ""}, "speaker is empty"),
        ({"time": "soon"}, "'soon' is no time"),
    ],
)
def test_what_cannot_be_remembered_is_one_line(tmp_path, arguments, line):
    async def main():
        async with connected(tmp_path) as client:
            said = await refused(client, "remember", **{"chat": "a", "speaker": "Ann", "text": "hi"} | arguments)
            assert line in said and "\n" not in said

    asyncio.run(main())
    assert [path for path in tmp_path.iterdir() if path.suffix == ".db" and path.stem != "a"] == []


def test_questions_and_messages_at_once_get_answers_that_fit_together(tmp_path):
    async def main():
        async with Namespaces(tmp_path, retrieval="lexical", readers=4) as chats:

            async def talk(number):
                for turn in range(8):
                    await chats.remember("a", ("Ann", f"topic {number} {turn} matters", "2025-03-01T10:00:00"))
                    assert "topic" in str(await chats.recall("a", f"What about topic {turn}?"))

            await asyncio.gather(*map(talk, range(8)))

    asyncio.run(main())


class Slow:
    """A Writer that waits until it is let go."""

    identity = "slow"

    def __init__(self, gate):
        self._gate = gate

    def write(self, state, segment):
        self._gate.wait()
        return Completion('{"actions":[{"action":"NOOP"}]}')

    def close(self):
        pass


def test_a_slow_writer_holds_up_neither_messages_nor_questions(tmp_path):
    import threading

    gate = threading.Event()

    async def main():
        async with Namespaces(tmp_path, open_writer=lambda: Slow(gate), size=2) as chats:
            for number in range(5):
                assert await chats.remember("a", ("Ann", f"message {number}", f"2025-03-01T10:0{number}:00"))
            # By now or a second later the Writer stands in its first segment; both kinds of call return all the same.
            found = await chats.recall("a", "What did Ann say?")
            assert any("message 4" in line for line in found.unwritten)
            gate.set()
        with Memory(tmp_path / "a.db", Slow(gate)) as memory:
            memory.flush()
            assert [record.content for record in memory.state().verbatim()] == [f"message {number}" for number in range(5)]

    asyncio.run(main())


@pytest.mark.skipif(not minilm_here(), reason="all-MiniLM-L6-v2 is not installed")
def test_on_a_busy_server_a_question_makes_no_vectors_and_loses_no_message(tmp_path):
    async def run():
        chat = OpenChat(tmp_path / "c.db", None, 1, 600.0, 100, "fused")
        for number in range(40):
            chat.put_now(as_message(("Ann", f"the boiler is number {number}", f"2025-03-01T10:{number:02d}:00")))
        chat.flush_now()
        async with chat.reader() as memory:
            assert "number 7" in chat.ask_now(memory, "Which boiler is number 7?", None, True).text
            assert memory.retrieval.missing() == 40 and chat.vectors_due
            chat.make_vectors_now(memory)
            assert memory.retrieval.missing() == 40 - VECTORS_AT_A_TIME and chat.vectors_due
            chat.ask_now(memory, "Which boiler is number 7?", None, False)
            assert memory.retrieval.missing() == 0
            chat.make_vectors_now(memory)
            assert not chat.vectors_due
        chat.close_now()

    asyncio.run(run())


def test_calls_that_wait_and_chats_are_bounded(tmp_path):
    async def main():
        async with Namespaces(tmp_path, limits=Limits(waiting=1, chats=1)) as chats:
            first = asyncio.create_task(chats.remember("a", ("Ann", "hello", "2025-03-01T10:00:00")))
            await first
            chats._open["a"].calls = 1
            with pytest.raises(DataError, match="1 calls wait already; try again"):
                await chats.recall("a", "hello?")
            chats._open["a"].calls = 0
            with pytest.raises(DataError, match="there are 1 chats already"):
                await chats.remember("b", ("Ann", "hello", "2025-03-01T10:00:00"))
            with pytest.raises(DataError, match="no chat 'b'; there are 'a'"):
                await chats.recall("b", "hello?")

    asyncio.run(main())


def test_the_guard_asks_for_the_token_and_counts():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def status(guard, token, address="1.2.3.4"):
        sent = []

        async def send(message):
            sent.append(message)

        headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
        await guard({"type": "http", "headers": headers, "client": (address, 1)}, None, send)
        return sent[0]["status"]

    async def main():
        guard = Guard(app, "secret", rate=2)
        assert [await status(guard, token) for token in ("", "wrong", "secre", "secret")] == [401, 401, 401, 200]
        assert [await status(guard, "secret") for _ in range(4)].count(429) >= 1
        assert await status(guard, "secret", "5.6.7.8") == 200

    asyncio.run(main())


def start(*arguments):
    command = [sys.executable, *SERVE, *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)


@asynccontextmanager
async def over_http(address, token):
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143)])
def test_over_http_no_message_is_lost_however_the_server_ends(tmp_path, number, code):
    server = start(tmp_path / "memories", "--http", "0")
    line = server.stderr.readline()
    address = line.split(" at ")[1].split(";")[0]
    token_file = tmp_path / "memories" / "serve.token"
    assert address.startswith("http://127.0.0.1:") and token_file.stat().st_mode & 0o077 == 0

    async def main():
        async with over_http(address, token_file.read_text().strip()) as client:
            await told(client, "family", *[("Ann", f"message {place}") for place in range(3)])
            os.kill(server.pid, number)

    try:
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
    except Exception as error:  # the client may notice on its way out
        assert server.wait(PATIENCE) == code, error
    assert server.wait(PATIENCE) == code
    assert "Traceback" not in server.stderr.read()
    with Memory(tmp_path / "memories" / "family.db", create=False) as memory:
        memory.flush()
        assert [record.content for record in memory.state().verbatim()] == ["message 0", "message 1", "message 2"]


def test_over_http_a_wrong_token_reaches_nothing(tmp_path):
    server = start(tmp_path, "--http", "0")
    address = server.stderr.readline().split(" at ")[1].split(";")[0]
    try:
        for headers in ({}, {"Authorization": "Bearer x"}):
            assert httpx2.post(address, headers=headers, json={}, timeout=PATIENCE).status_code == 401
    finally:
        server.terminate()
    assert server.wait(PATIENCE) == 143


def test_over_stdio(tmp_path):
    async def main():
        parameters = StdioServerParameters(command=sys.executable, args=[*SERVE, str(tmp_path)], env=dict(os.environ))
        async with Client(parameters) as client:
            await told(client, "family", ("Ann", "My sister lives in Bergen"))
            found = await called(client, "recall", chat="family", question="Where does Ann's sister live?")
            assert "Bergen" in str(found)

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    with Memory(tmp_path / "family.db", create=False) as memory:
        assert len(memory.state().verbatim()) == 1
