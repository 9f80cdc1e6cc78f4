"""`writer-rl memory serve`: memories for agents, over the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from writer_rl.command import UsageError

if TYPE_CHECKING:
    from writer_rl.evaluation.writers import Writer

DESCRIPTION = """Serve memories to agents over the Model Context Protocol (docs/memory.md): tools remember, recall and, with
--allow-forget, forget; a resource with a member's rows. Every chat is a memory file of its own in the folder.

  {command} memories/                        # over stdin and stdout, as MCP clients start servers
  {command} memories/ --http 8765            # http://127.0.0.1:8765/mcp; the token is in memories/serve.token
  {command} family.db --writer exports/writer
"""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_options(options: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    options.add_argument("place", help="a folder of memories (made if it is not there), or one memory file")
    options.add_argument("--http", metavar="[HOST:]PORT", help="over HTTP instead; HOST is this machine alone (127.0.0.1)")
    options.add_argument("--token-file", help="holds what HTTP callers must send; made if it is not there (PLACE/serve.token)")
    options.add_argument("--writer", default="none", help="a Writer's folder, served:MODEL, endpoint:MODEL, or none (none)")
    options.add_argument("--base-url", help="of the endpoint (OPENAI_BASE_URL); the key comes from OPENAI_API_KEY alone")
    options.add_argument("--allow-forget", action="store_true", help="offer the tool that forgets")
    options.add_argument("--only", action="append", default=[], metavar="CHAT", help="serve this chat alone; repeatable")
    options.add_argument("--silence", type=float, default=600.0, help="seconds of silence that end a segment (%(default)s)")
    options.add_argument("--segment", type=int, default=25, help="most messages of a segment (%(default)s)")
    options.add_argument(
        "--retrieval", choices=("auto", "lexical", "dense", "fused"), default="auto",
        help="how evidence is found, as in `ask`; lexical is much the quickest for busy chats (auto)",
    )  # fmt: skip
    options.add_argument("--rate", type=float, default=100.0, help="requests a second from one address (%(default)s)")


def execute(chosen: Namespace) -> None:
    """Serve until told to stop."""
    for name in ("silence", "segment", "rate"):
        if getattr(chosen, name) <= 0:
            raise UsageError(f"--{name} {getattr(chosen, name)}: must be positive")
    place = Path(chosen.place)
    if not place.is_dir() and place.suffix == ".db" and not place.is_file():
        raise UsageError(f"{place}: no such memory; name a folder to begin with none")
    host, port = address(chosen.http) if chosen.http else ("", 0)
    import asyncio

    from writer_rl.memory.namespaces import Namespaces
    from writer_rl.memory.server import serve_http, serve_stdio

    async def serve() -> None:
        chats = Namespaces(
            place,
            open_writer=writer_opener(chosen),
            only=chosen.only,
            silence=chosen.silence,
            size=chosen.segment,
            retrieval=chosen.retrieval,
        )
        if not chosen.http:
            await serve_stdio(chats, chosen.allow_forget)
            return
        file = Path(chosen.token_file) if chosen.token_file else (place if place.is_dir() else place.parent) / "serve.token"
        token = own_token(file)

        def started(port: int) -> None:
            print(f"serving {place} at http://{host}:{port}/mcp; the token is in {file}", file=sys.stderr, flush=True)

        await serve_http(chats, host, port, token, chosen.allow_forget, chosen.rate, started)

    asyncio.run(serve())


def address(text: str) -> tuple[str, int]:
    """Host and port of --http."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--http {text}: write it as PORT or HOST:PORT")
    return host.strip("[]") or LOOPBACK[0], int(port)


def own_token(file: Path) -> str:
    """The token in `file`, or a new one that is written there, for its owner's eyes alone."""
    from memory_env.files import write_text

    if not file.is_file():
        write_text(file, f"{secrets.token_urlsafe(32)}\n", private=True)
    token = file.read_text(encoding="utf-8").strip()
    if len(token) < 16:
        raise UsageError(f"{file}: holds no token of at least 16 characters; remove it, and a new one is made")
    return token


def writer_opener(chosen: Namespace) -> Callable[[], Writer] | None:
    """How the Writer is opened; None for none."""
    if chosen.writer == "none":
        return None
    source = os.path.abspath(chosen.writer) if Path(chosen.writer).is_dir() else chosen.writer

    def opened() -> Writer:
        from writer_rl.memory.writers import open_own_writer

        return open_own_writer(source, None, chosen.base_url)

    return opened
