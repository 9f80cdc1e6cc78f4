"""A local OpenAI-compatible server whose answers a test scripts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def completion(content: str | None, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [
            {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107},
    }


def ok(body: Any, finish_reason: str = "stop", **message: Any) -> Reply:
    """200 with `body` as the content: JSON of anything but a text."""
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    return raw(200, json.dumps(completion(text, finish_reason, **message)))


def raw(status: int, text: str, headers: dict[str, str] | None = None, claim: int | None = None) -> Reply:
    """`claim` more bytes than are sent: the connection breaks in the middle of the body."""

    def reply(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        data = text.encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(claim or len(data)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)
        if claim:
            handler.close_connection = True

    return reply


def error(status: int, message: str = "no", headers: dict[str, str] | None = None) -> Reply:
    return raw(status, json.dumps({"error": {"message": message, "type": "test"}}), headers)


def hang(seconds: float) -> Reply:
    def reply(handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return reply


class Script:
    """Replies in order, the last one again and again; `requests` are the bodies received, `most` the most at one time."""

    def __init__(self, *replies: Reply):
        self.replies, self.requests, self.headers = list(replies), [], []
        self.most = self._open = 0
        self._lock = threading.Lock()

    def __call__(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        with self._lock:
            reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
            self.requests.append(request)
            self.headers.append(handler.headers)
            self._open += 1
            self.most = max(self.most, self._open)
        try:
            reply(handler, request)
        finally:
            with self._lock:
                self._open -= 1


@contextmanager
def serving(reply: Reply, at: str = "", gets: Reply | None = None) -> Iterator[str]:
    """The base URL of a server that gives every chat request to `reply`; `at` is the URL of one that has ended.

    A GET goes to `gets`; without it the server does not know GET (501).
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            (gets or error(501, "no GET"))(self, {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                reply(self, body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", int(at.split(":")[2].split("/")[0]) if at else 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
