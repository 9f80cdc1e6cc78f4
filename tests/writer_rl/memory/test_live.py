import json
import signal
import subprocess
import sys
from datetime import datetime

import pytest

from memory_env.datafile import DataError
from memory_env.replay import Completion
from memory_env.store import inbox
from memory_env.store.forget import forget_member
from memory_env.store.portable import export_json
from tests.conftest import PATIENCE, ROOT
from writer_rl import Memory


class Notes:
    """A Writer that notes how many messages each segment had."""

    identity = "notes"

    def __init__(self):
        self.sizes = []

    def write(self, state, segment):
        self.sizes.append(len(segment.messages))
        return Completion('{"actions":[{"action":"NOOP"}]}')

    def close(self):
        pass


def contents(memory):
    return [record.content for record in memory.state().verbatim()]


def test_live_messages_are_written_by_size(tmp_path):
    writer = Notes()
    with Memory(tmp_path / "m.db", writer) as memory:
        memory.live.size = 3
        for number in range(7):
            assert memory.say("Ann", f"message {number}")
        assert writer.sizes == [3, 3] and [message.content for message in memory.live.waiting()] == ["message 6"]
        memory.flush()
        assert writer.sizes == [3, 3, 1] and memory.live.waiting() == []
        assert contents(memory) == [f"message {number}" for number in range(7)]


def test_silence_ends_a_segment(tmp_path):
    writer = Notes()
    with Memory(tmp_path / "m.db", writer) as memory:
        ours = [inbox.ChatMessage("Ann", f"message {number}", "2025-03-01T10:00:00") for number in range(3)]
        memory.live.put(ours[0], 0.0)
        memory.live.put(ours[1], 100.0)
        assert writer.sizes == [] and not memory.live.is_due(650.0) and memory.live.is_due(701.0)
        memory.live.put(ours[2], 701.0)
        assert writer.sizes == [2] and len(memory.live.waiting()) == 1


def test_the_same_words_in_one_minute_are_two_messages_and_one_id_is_one(tmp_path):
    with Memory(tmp_path / "m.db") as memory:
        at = datetime(2025, 3, 1, 10)
        assert memory.say("Ann", "ok", at) and memory.say("Ann", "ok", at)
        assert memory.say("Ann", "hello", at, message_id="m1") and not memory.say("Ann", "hello", at, message_id="m1")
        memory.flush()
        assert not memory.say("Ann", "hello", at, message_id="m1")
        memory.flush()
        assert contents(memory) == ["ok", "ok", "hello"]


DYING = """
import os, signal, sys
import writer_rl.memory.live as live
from tests.conftest import PATIENCE, ROOT
from writer_rl import Memory

def die(*ignored):
    os.kill(os.getpid(), signal.SIGKILL)

memory = Memory(sys.argv[1])
for number in range(3):
    memory.say("Ann", f"message {number}")
if sys.argv[2] == "write":
    live.take_out = die  # between the segment's commit and the inbox's
    memory.flush()
die()
"""


@pytest.mark.parametrize("after", ["say", "write"])
def test_a_message_is_not_lost_when_the_process_is_killed(tmp_path, after):
    path = tmp_path / "m.db"
    done = subprocess.run([sys.executable, "-c", DYING, str(path), after], cwd=ROOT, timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL
    with Memory(path) as memory:
        memory.flush()
        assert contents(memory) == ["message 0", "message 1", "message 2"] and memory.live.waiting() == []


def test_waiting_messages_are_forgotten_and_exported_too(tmp_path):
    with Memory(tmp_path / "m.db") as memory:
        memory.say("Ann", "my cottage at Hvaler leaks badly in spring")
        memory.say("Bob", 'Ann said "my cottage at Hvaler leaks"')
        tables = json.loads("".join(export_json(memory.store)))["tables"]
        assert [row["speaker"] for row in tables["inbox"]] == ["Ann", "Bob"]
        memory.flush()
        memory.say("Ann", "the roof at Hvaler is old too")
        assert memory.forget("Ann").messages == 1
        assert memory.live.waiting() == [] and not memory.say("Ann", "hello")
        memory.flush()
        assert contents(memory) == ['Ann said "[forgotten]"']
        assert b"Hvaler" not in (tmp_path / "m.db").read_bytes()
        memory.say("Cem", "I only said this")
        forget_member(memory.store, "Cem")
        assert memory.live.waiting() == []


def test_the_inbox_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(inbox, "MOST_WAITING", 2)
    with Memory(tmp_path / "m.db") as memory:
        memory.say("Ann", "one")
        memory.say("Ann", "two")
        with pytest.raises(DataError, match="2 messages wait"):
            memory.say("Ann", "three")
