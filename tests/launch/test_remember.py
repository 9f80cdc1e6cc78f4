"""launch/remember.py and launch/ask.py, as an application's developer uses them."""

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time

import pytest

from memory_env.store.store import MemoryStore
from tests.conftest import PATIENCE
from tests.launch.scripts import ROOT, launch, refused, spawn
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


def test_dates_that_could_be_either_are_assumed_aloud_and_read_as_told(tmp_path):
    (tmp_path / "c.csv").write_text("time,name,text\n03/04/2024 10:00,A,x\n05/06/2024 10:00,B,y\n")
    assumed = launch("remember", "--memory", tmp_path / "a.db", tmp_path / "c.csv")
    assert assumed.returncode == 0 and "note: the dates could be day/month or month/day: assumed day/month" in assumed.stdout
    told = launch("remember", "--memory", tmp_path / "b.db", "--date-order", "mdy", tmp_path / "c.csv")
    assert told.returncode == 0 and "note" not in told.stdout
    for name, days in (("a", ["2024-04-03", "2024-06-05"]), ("b", ["2024-03-04", "2024-05-06"])):
        with MemoryStore(tmp_path / f"{name}.db") as store:
            assert [record.ts[:10] for record in store.state().verbatim()] == days


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
    # The time of the message that it came from, not the segment's.
    assert "Alice is the best cook  (2024-12-31T21:42:00, said by Bob)" in shown.stdout


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
    arguments = ["--memory", str(tmp_path / "m.db"), str(tmp_path / "chat.csv"), "--window", "7"]
    _killed(arguments, tmp_path / "m.db", random.Random(attempt).randrange(1, 1200))
    with MemoryStore(tmp_path / "m.db") as store:
        held = store.counts()
        state = store.state()
        sizes: dict[int, int] = {}
        for record in state.verbatim():
            sizes[record.turn_created] = sizes.get(record.turn_created, 0) + 1
        # Sessions of 50 in windows of 7: seven full ones and a rest of one; a part of a segment would show.
        assert len(sizes) == held["segments"] and all(sizes[p] == (1 if p % 8 == 7 else 7) for p in sizes)
        assert [record.content for record in state.verbatim()] == [f"text {n}" for n in range(held["messages"])]
    ended = launch("remember", *arguments)
    assert ended.returncode == 0 and f"{held['messages']} known already" in ended.stdout
    with MemoryStore(tmp_path / "m.db") as store:
        assert [record.content for record in store.state().verbatim()] == [f"text {n}" for n in range(count)]


def test_the_embedded_writer_makes_a_memory_of_the_tutorials_chat_without_a_network(tmp_path):
    offline = {"HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    arguments = ("remember", "--memory", tmp_path / "m.db", "--writer", "configs/tiny_writer", ROOT / "docs/example/chat.txt")
    first = launch(*arguments, **offline)
    assert first.returncode == 0, first.stderr
    assert "31 new messages, 0 known already; 5 segments" in first.stdout
    with MemoryStore(tmp_path / "m.db") as store:
        state = store.state()
        assert any(record.from_ids for record in state.derived())
        assert any(segment["report"]["applied"] for segment in store.segments())
    again = launch(*arguments, **offline)
    assert "0 new messages, 31 known already; 0 segments" in again.stdout
    asked = launch("ask", "--memory", tmp_path / "m.db", "What is Wes's favourite colour?", **offline)
    assert asked.returncode == 0 and "\nfrom messages:\n" in asked.stdout and "Wes @ 2026-01-12T18:19:00" in asked.stdout
    owner = state.derived()[0].owner
    shown = launch("ask", "--memory", tmp_path / "m.db", "--show", owner, **offline)
    assert state.heads(owner)[0].content in shown.stdout


def test_a_file_whose_name_is_no_unicode_is_read_and_named(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        path.write_text("time,name,text\n2024-05-01,A,x\n")
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    ended = spawn("remember", "--memory", tmp_path / "m.db", path, PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert "csv: 1 new messages" in ended.stdout and ended.stderr == ""


def test_two_processes_at_once_hold_every_message_once(tmp_path):
    texts = [f"text {n}" for n in range(3000)]
    rows = [f"2024-05-01T10:{n // 60 % 60:02d}:{n % 60:02d},P{n % 5},{text}" for n, text in enumerate(texts)]
    (tmp_path / "chat.csv").write_text("\n".join(["time,name,body", *rows]) + "\n")
    arguments = ["--memory", str(tmp_path / "m.db"), str(tmp_path / "chat.csv")]
    command = [sys.executable, "launch/remember.py", *arguments]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ended = [(process.communicate(timeout=PATIENCE)[1], process.returncode) for process in both]
    assert any(code == 0 for _, code in ended)
    assert all(code == 0 or (code == 2 and "another program" in errors) for errors, code in ended), ended
    again = launch("remember", *arguments)
    assert again.returncode == 0 and "0 new messages, 3000 known already" in again.stdout
    with MemoryStore(tmp_path / "m.db") as store:
        assert [record.content for record in store.state().verbatim()] == texts


def _fact(handler, request):
    """A Writer whose output follows from what it is asked: a record about the last message."""
    number = max(int(found) for found in re.findall(r"text (\d+)", json.dumps(request["messages"][-1])))
    add = {"action": "ADD", "owner": "P0", "source": "P0", "layer": "per_speaker_core", "utype": "fact"}
    ok({"actions": [{**add, "content": f"fact {number}"}]})(handler, request)


@pytest.mark.endpoint
def test_killed_while_a_writer_writes_the_memory_becomes_what_it_would_have_been(tmp_path):
    rows = [f"2024-05-01T10:{n:02d}:00,P{n % 5},text {n}" for n in range(60)]
    (tmp_path / "chat.csv").write_text("\n".join(["time,name,body", *rows]) + "\n")
    with serving(_fact) as url:
        arguments = ["--writer", "endpoint:w", "--base-url", url, "--window", "7", str(tmp_path / "chat.csv")]
        _killed(["--memory", str(tmp_path / "m.db"), *arguments], tmp_path / "m.db", 20)
        with MemoryStore(tmp_path / "m.db") as store:
            held = store.counts()
            assert held["segments"] >= 3 and held["records"] == held["segments"]
        assert launch("remember", "--memory", tmp_path / "m.db", *arguments).returncode == 0
        assert launch("remember", "--memory", tmp_path / "whole.db", *arguments).returncode == 0
    with MemoryStore(tmp_path / "m.db") as continued, MemoryStore(tmp_path / "whole.db") as whole:
        assert continued.state().to_dict() == whole.state().to_dict()
        assert continued.state().verbatim() == whole.state().verbatim() and continued.counts()["records"] == 10


def _killed(arguments, memory, messages):
    """Run remember.py as a process and kill it once the memory holds so many messages (or it has ended by itself)."""
    command = [sys.executable, "launch/remember.py", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and _written(memory) < messages:
        time.sleep(0.002)
    process.kill()
    process.wait()


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
