"""A stand-in for the language models: an OpenAI-compatible server that teaches, projects, selects, answers and judges by rules.

Its rules read the prompts of configs/prompts, whoever sends them; what it says is valid and bad enough to be told from a model's.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MESSAGE = re.compile(r"^- (?P<speaker>.+?) @ (?P<ts>\S+): (?P<text>.+)$", re.MULTILINE)
RECORD = re.compile(r"^- .+? \| .+? \| .+? \| (?P<content>.+) \| \S+$", re.MULTILINE)
MOST_RECORDS = 4


class Asked:
    """What was asked, by what it was for: write, project, select, sufficiency, answer, judge."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, stage: str) -> None:
        """Count one request."""
        with self._lock:
            self.counts[stage] += 1


def reply(system: str, user: str) -> tuple[str, dict[str, Any]]:
    """(what was asked for, the answer) of one request."""
    if "memory writer" in system:
        return "write", {"actions": _teach(user)}
    if "look-up plan" in system:
        return "project", {"issue": _after(user, "Question:"), "rows": ["ALL"], "tense": "head", "source": "", "owner": ""}
    if "choose verbatim messages" in system:
        return "select", {"ranking": list(range(1, 1 + len(re.findall(r"^\d+\. ", user, re.MULTILINE)))), "expand": []}
    if "You judge" in system:
        return "judge", _judge(_after(user, "Gold answer:"), _after(user, "System's answer:"))
    if "You answer a question" in system:
        return "answer", _answer(user)
    return "sufficiency", {"enough": True, "ask": ""}


def _teach(user: str) -> list[dict[str, str]]:
    """One ADD for each of the first messages that memory does not hold yet."""
    chat, _, memory = user.partition("## Memory")
    known = {match["content"] for match in RECORD.finditer(memory)}
    records: dict[str, str] = {}
    for match in MESSAGE.finditer(chat):
        content = f"{match['speaker']} said: {match['text']}"
        if content not in known:
            records.setdefault(content, match["speaker"])
    actions = [
        {"action": "ADD", "owner": who, "source": who, "layer": "per_speaker_core", "utype": "fact", "content": content}
        for content, who in list(records.items())[:MOST_RECORDS]
    ]
    return actions or [{"action": "NOOP"}]


def _answer(user: str) -> dict[str, str]:
    """The evidence's line, or the option, that shares most words with the question."""
    evidence, _, asked = user.partition("## Question")
    options = dict(re.findall(r"^([A-Z])\. (.+)$", asked, re.MULTILINE))
    if options:
        best = max(options, key=lambda letter: (len(_words(options[letter]) & _words(evidence)), -ord(letter)))
        return {"answer": options[best], "option": best}
    lines = [line for line in evidence.splitlines() if line.startswith("- ")]
    return {"answer": max(lines, key=lambda line: len(_words(line) & _words(asked)), default="not recorded")}


def _judge(gold: str, answer: str) -> dict[str, Any]:
    wanted = _words(gold)
    share = len(wanted & _words(answer)) / max(1, len(wanted))
    return {"correct": share >= 0.75, "score": round(share, 3), "reason": "by shared words"}


def _after(text: str, label: str) -> str:
    return text.partition(label)[2].strip().split("\n")[0]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


@contextmanager
def serving_models(asked: Asked) -> Iterator[str]:
    """The base URL of the server, as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"object": "list", "data": []})

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages = request["messages"]
            system = "\n".join(m["content"] for m in messages if m["role"] == "system")
            users = [m["content"] for m in messages if m["role"] == "user"]
            stage, body = reply(system, users[0])
            asked.add(stage)
            text = json.dumps(body, ensure_ascii=False)
            usage = {"prompt_tokens": len(system + users[0]) // 4, "completion_tokens": len(text) // 4}
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            self._send({"id": "r", "object": "chat.completion", "created": 1, "model": request["model"], "choices": [choice],
                        "usage": usage | {"total_tokens": sum(usage.values())}})  # fmt: skip

        def _send(self, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
