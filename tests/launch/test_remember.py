"""launch/remember.py and launch/ask.py, as an application's developer uses them."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from memory_env.store import MemoryStore
from tests.launch.scripts import ROOT, launch, refused
from tests.memory_env.query.chat_server import Script, error, ok, serving

CHAT = """31/12/2024, 21:41 - Alice: I live in Leeds now.
31/12/2024, 21:42 - Bob: Alice is the best cook I know.
01/01/2025, 10:00 - Alice: I live in York now, Leeds was too loud.
01/01/2025, 10:01 - Bob: <Media omitted>
"""


def remembered(tmp_path, text=CHAT):
    (tmp_path / "chat.txt").write_text(text)
    return launch("remember", "--memory", tmp_path / "m.db", tmp_path / "chat.txt")


def test_messages_are_remembered_asked_and_shown(tmp_path):
    ended = remembered(tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "4 new messages, 0 known already" in ended.stdout and "handled: 1 media placeholders" in ended.stdout
    again = remembered(tmp_path)
    assert "0 new messages, 4 known already" in again.stdout
    more = remembered(tmp_path, CHAT + "01/01/2025, 10:02 - Carol: hi\n")
    assert "1 new messages, 4 known already" in more.stdout and "5 messages of 3 members" in more.stdout

    asked = launch("ask", "--memory", tmp_path / "m.db", "Where does Alice live?", "--json")
    answer = json.loads(asked.stdout)
    assert answer["text"].startswith("Alice: I live in")
    assert any("York" in line["content"] for line in answer["evidence"])
    assert {"speaker", "ts", "content", "behind"} <= answer["evidence"][0].keys()
    then = launch("ask", "--memory", tmp_path / "m.db", "--as-of", "2024-12-31", "Where does Alice live?")
    assert "Leeds" in then.stdout and "York" not in then.stdout
    assert "Alice @ 2024-12-31T21:41:00" in then.stdout
    members = launch("ask", "--memory", tmp_path / "m.db", "--members")
    assert members.stdout.split() == ["Alice", "Bob", "Carol"]
    shown = launch("ask", "--memory", tmp_path / "m.db", "--show", "Bob")
    assert shown.stdout == "nothing is recorded about Bob\n"


def test_bad_input_ends_with_2(tmp_path):
    (tmp_path / "chat.txt").write_text(CHAT)
    memory = tmp_path / "m.db"
    assert "no such file" in refused("remember", "--memory", memory, tmp_path / "absent.txt")
    assert "no model there" in refused("remember", "--memory", memory, "--writer", tmp_path, tmp_path / "chat.txt")
    assert "--window" in refused("remember", "--memory", memory, "--window", "0", tmp_path / "chat.txt")
    assert "no such memory" in refused("ask", "--memory", tmp_path / "other.db", "who?")
    (tmp_path / "junk.db").write_bytes(b"junk" * 1000)
    assert "no memory" in refused("ask", "--memory", tmp_path / "junk.db", "who?")
    assert "give one of" in refused("ask", "--memory", memory)
    assert "give one of" in refused("ask", "--memory", memory, "who?", "--members")
    assert remembered(tmp_path).returncode == 0
    assert "'Zoe' is no member" in refused("ask", "--memory", memory, "--show", "Zoe")
    assert "--as-of soon" in refused("ask", "--memory", memory, "--as-of", "soon", "who?")


@pytest.mark.endpoint
def test_a_writer_behind_an_endpoint_and_an_endpoint_that_answers(tmp_path):
    (tmp_path / "chat.txt").write_text(CHAT)
    add = {"action": "ADD", "owner": "Alice", "source": "Bob", "layer": "per_speaker_profile", "utype": "observation",
           "content": "Alice is the best cook"}  # fmt: skip
    script = Script(ok({"actions": [add]}), ok({"actions": [{"action": "NOOP"}]}), ok({"answer": "She cooks."}))
    with serving(script) as url:
        ended = launch(
            "remember", "--memory", tmp_path / "m.db", "--writer", "endpoint:w", "--base-url", url, tmp_path / "chat.txt"
        )
        assert ended.returncode == 0, ended.stderr
        assert "1 records" in ended.stdout
        asked = launch("ask", "--memory", tmp_path / "m.db", "--model", "m", "--base-url", url, "What does Bob think of Alice?")
    assert "Alice is the best cook" in json.dumps(script.requests[-1])
    assert asked.stdout.startswith("She cooks.") and "Bob @ 2024-12-31" in asked.stdout
    shown = launch("ask", "--memory", tmp_path / "m.db", "--show", "Alice")
    assert "Alice is the best cook  (2024-12-31T21:41:00, said by Bob)" in shown.stdout


@pytest.mark.endpoint
def test_an_endpoint_that_is_wrong_loses_nothing(tmp_path):
    (tmp_path / "chat.txt").write_text(CHAT)
    with serving(error(404, "no such model")) as url:
        ended = launch(
            "remember", "--memory", tmp_path / "m.db", "--writer", "endpoint:w", "--base-url", url, tmp_path / "chat.txt"
        )
    assert ended.returncode == 1 and "404" in ended.stderr and "Traceback" not in ended.stderr
    with MemoryStore(tmp_path / "m.db") as store:
        assert store.counts()["messages"] == 0
    assert launch("remember", "--memory", tmp_path / "m.db", tmp_path / "chat.txt").returncode == 0


@pytest.mark.parametrize("attempt", range(2))
def test_killed_at_any_moment_the_file_opens_holds_whole_segments_and_goes_on(tmp_path, attempt):
    count = 1500
    rows = ["time,name,body"] + [
        f"2024-05-{1 + n // 1000:02d}T10:{n // 60 % 60:02d}:{n % 60:02d},P{n % 5},text {n}" for n in range(count)
    ]
    (tmp_path / "chat.csv").write_text("\n".join(rows) + "\n")
    command = [
        sys.executable,
        "launch/remember.py",
        "--memory",
        str(tmp_path / "m.db"),
        str(tmp_path / "chat.csv"),
        "--window",
        "7",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wanted = random.Random(attempt).randrange(1, 1200)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if _written(tmp_path / "m.db") >= wanted:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with MemoryStore(tmp_path / "m.db") as store:
        held = store.counts()
        state = store.state()
        sizes: dict[int, int] = {}
        for record in state.verbatim():
            sizes[record.turn_created] = sizes.get(record.turn_created, 0) + 1
        # Sessions of 50 in windows of 7: seven full ones and a rest of one; a part of a segment would show.
        assert len(sizes) == held["segments"] and all(sizes[p] == (1 if p % 8 == 7 else 7) for p in sizes)
        assert [record.content for record in state.verbatim()] == [f"text {n}" for n in range(held["messages"])]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0 and f"{held['messages']} known already" in ended.stdout
    with MemoryStore(tmp_path / "m.db") as store:
        assert [record.content for record in store.state().verbatim()] == [f"text {n}" for n in range(count)]


def _written(path):
    if not path.exists():
        return 0
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0.1)
        try:
            return connection.execute("SELECT count(*) FROM messages").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error:
        return 0
