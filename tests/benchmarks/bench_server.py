"""A soak of the memory server over loopback HTTP: many clients that remember and ask, throughput and latencies.

    python tests/benchmarks/bench_server.py --clients 20 --seconds 120

Every client uses the official MCP client, has a chat of its own and shares one with all others; of its calls one in ten is a
question. At the end the server is killed, and every message that was acknowledged is looked for in the files.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from writer_rl.memory.memory import Memory

SERVE = ["-c", "from writer_rl.memory.cli import main; main()", "memory", "serve"]
ROOT = Path(__file__).resolve().parents[2]


async def client(
    number: int, address: str, token: str, until: float, took: dict[str, list[float]], kept: dict[str, set[str]]
) -> int:
    """One client until the time is over; how many of its calls were refused."""
    dice, refused, place = random.Random(number), 0, 0
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
        Client(streamable_http_client(address, http_client=http)) as session,
    ):
        while time.monotonic() < until:
            chat = "everybody" if dice.random() < 0.5 else f"client {number}"
            began = time.monotonic()
            if kept[chat] and dice.random() < 0.1:
                tool = "recall"
                result = await session.call_tool(tool, {"chat": chat, "question": f"What did client {number} say about topic 3?"})
            else:
                tool, place = "remember", place + 1
                text = f"client {number} says that topic {place % 7} matters, number {place}"
                result = await session.call_tool(tool, {"chat": chat, "speaker": f"client {number}", "text": text})
                if not result.is_error:
                    kept[chat].add(text)
            took[tool].append(time.monotonic() - began)
            if result.is_error:
                refused += 1
                print(f"refused: {tool} {chat}: {result.content[0].text}", file=sys.stderr)
    return refused


async def soak(clients: int, seconds: float, address: str, token: str) -> tuple[dict[str, list[float]], dict[str, set[str]], int]:
    took: dict[str, list[float]] = collections.defaultdict(list)
    kept: dict[str, set[str]] = collections.defaultdict(set)
    until = time.monotonic() + seconds
    refused = await asyncio.gather(*(client(number, address, token, until, took, kept) for number in range(clients)))
    return took, kept, sum(refused)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clients", type=int, default=20)
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--retrieval", default="lexical", help="of the server; fused makes a vector of every message")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *SERVE, folder, "--http", "0", "--rate", "100000", "--retrieval", chosen.retrieval]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert server.stderr is not None
        address = server.stderr.readline().split(" at ")[1].split(";")[0]
        token = (Path(folder) / "serve.token").read_text().strip()
        try:
            took, kept, refused = asyncio.run(soak(chosen.clients, chosen.seconds, address, token))
        finally:
            server.kill()
            server.wait()
        for tool, times in sorted(took.items()):
            ordered = sorted(times)
            p95 = ordered[int(0.95 * (len(ordered) - 1))]
            print(
                f"{tool:<9} {len(times):6d} calls, {len(times) / chosen.seconds:7.1f} a second, median "
                f"{1000 * statistics.median(times):7.1f} ms, p95 {1000 * p95:7.1f} ms"
            )
        lost = 0
        for chat, texts in kept.items():
            with Memory(Path(folder) / f"{chat.replace(' ', '%20')}.db", create=False) as memory:
                memory.flush()
                lost += len(texts - {record.content for record in memory.state().verbatim()})
        print(f"{sum(map(len, kept.values()))} messages acknowledged, {lost} lost after SIGKILL; {refused} calls refused")


if __name__ == "__main__":
    main()
