"""Refused segments, writing again, and two programs at one memory: nothing is lost, nothing half done."""

import json
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from memory_env.query.protocol import WriteError
from memory_env.replay import Completion
from memory_env.store.drafts import unwritten
from memory_env.store.lock import writing
from tests.conftest import ROOT
from writer_rl import Memory
from writer_rl.memory.rewriting import reasons

START = datetime(2025, 1, 5, 10)
CHAT = [ChatMessage("AB"[n % 2], f"fact number {n}", (START + timedelta(minutes=n)).isoformat()) for n in range(8)]


class Tagging:
    """Writes the first message of a segment after its tag; refuses or breaks at the positions it is told to."""

    def __init__(self, tag, refuses=(), breaks=(), update=False):
        self.identity, self.tag, self.refuses, self.breaks, self.update = tag, tag, refuses, breaks, update
        self.asked = []

    def write(self, state, segment, network_id=""):
        self.asked.append(segment.position)
        if segment.position in self.breaks:
            raise WriteError("HTTP 503: overloaded", stage="write")
        if segment.position in self.refuses:
            raise WriteError("the model refused: content filter", stage="write", refused=True)
        first = segment.messages[0]
        record = {"owner": first.speaker, "source": first.speaker, "layer": "per_speaker_core", "utype": "fact"}
        actions = [{"action": "ADD", "content": f"{self.tag} {first.content}", **record}]
        if self.update:
            actions += [
                {"action": "UPDATE", "entry_id": head.entry_id, "content": f"{head.content}, changed by {first.content}"}
                for head in state.heads(first.speaker)
            ]
        return Completion(json.dumps({"actions": actions}))

    def close(self):
        pass


def opened(path, writer):
    return Memory(path, writer, retrieval="lexical")


def contents(memory):
    return [record.content for record in memory.state().derived()]


def test_a_refused_segment_is_kept_word_for_word_and_the_import_goes_on(tmp_path):
    with opened(tmp_path / "m.db", Tagging("first", refuses={1, 2})) as memory:
        result = memory.remember(CHAT, window=2)
        assert [message.content for message in memory.state().verbatim()] == [message.content for message in CHAT]
        assert contents(memory) == ["first fact number 0", "first fact number 6"]
        assert result.refused == unwritten(memory.store) == [(n, "the model refused: content filter") for n in (1, 2)]


def test_retry_takes_up_what_is_missing_and_nothing_else(tmp_path):
    with opened(tmp_path / "m.db", Tagging("first", refuses={1, 2})) as memory:
        memory.remember(CHAT, window=2)
    writer = Tagging("first", refuses={2})
    with opened(tmp_path / "m.db", writer) as memory:
        written = memory.retry()
        assert writer.asked == [1, 2] and (written.segments, written.records) == (2, 1)
        assert [position for position, _ in written.refused] == [2] == [position for position, _ in unwritten(memory.store)]
        new = next(record for record in memory.state().derived() if record.content == "first fact number 2")
        assert new.turn_created == 1 and new.ts == CHAT[2].ts
        # What a record came from is found, and what was there is untouched.
        assert {memory.store.message(entry_id).content for entry_id in new.from_ids} <= {"fact number 2", "fact number 3"}
        assert new.from_ids and contents(memory)[:2] == ["first fact number 0", "first fact number 6"]
        assert memory.retry().segments == 1


def test_what_was_said_before_cannot_change_what_was_said_after(tmp_path):
    with opened(tmp_path / "m.db", Tagging("first", refuses={0})) as memory:
        memory.remember(CHAT, window=2)
    with opened(tmp_path / "m.db", Tagging("again", update=True)) as memory:
        before = [head.content for head in memory.state().heads()]
        memory.retry()
        assert [head.content for head in memory.state().heads()] == [*before, "again fact number 0"]


def test_rewrite_replaces_all_records_at_once_and_an_interrupted_one_pays_nothing_twice(tmp_path):
    with opened(tmp_path / "m.db", Tagging("old")) as memory:
        memory.remember(CHAT, window=2)
        old = contents(memory)
    with opened(tmp_path / "m.db", Tagging("new", breaks={2})) as memory:
        with pytest.raises(WriteError, match="overloaded"):
            memory.rewrite()
        assert contents(memory) == old
    writer = Tagging("new")
    with opened(tmp_path / "m.db", writer) as memory:
        assert memory.rewrite().records == 4
        assert writer.asked == [2, 3]
        assert contents(memory) == [f"new fact number {n}" for n in (0, 2, 4, 6)]
        assert {segment["writer"] for segment in memory.store.segments()} == {"new"}


def test_rewriting_with_the_same_outputs_gives_the_same_memory(tmp_path):
    with opened(tmp_path / "m.db", Tagging("same", update=True)) as memory:
        memory.remember(CHAT, window=2)
        before = memory.state().to_dict()
        assert before["update_edges"]
        memory.rewrite()
        assert memory.state().to_dict() == before


def test_rewriting_follows_the_time_of_what_was_said_whatever_came_first(tmp_path):
    writer = Tagging("new")
    with opened(tmp_path / "m.db", "none") as memory:
        memory.remember(CHAT[4:], window=2)
        memory.remember(CHAT[:4], window=2)
    with opened(tmp_path / "m.db", writer) as memory:
        memory.rewrite()
        assert contents(memory) == [f"new fact number {n}" for n in (0, 2, 4, 6)]


def test_a_writer_given_later_is_not_ignored_in_silence(tmp_path):
    with opened(tmp_path / "m.db", "none") as memory:
        memory.remember(CHAT[:4], window=2)
    with opened(tmp_path / "m.db", Tagging("one")) as memory:
        assert any("2 segments" in note and "--retry" in note for note in memory.remember(CHAT, window=2).notes)
    with opened(tmp_path / "m.db", Tagging("two")) as memory:
        notes = memory.remember(CHAT, window=2).notes
        assert any("another Writer" in note and "--rewrite" in note for note in notes)


def test_forgetting_takes_the_outputs_that_wait(tmp_path):
    with opened(tmp_path / "m.db", "none") as memory:
        memory.remember(CHAT, window=2)
    with opened(tmp_path / "m.db", Tagging("secret", breaks={3})) as memory:
        with pytest.raises(WriteError):
            memory.rewrite()
        memory.forget("A")
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def roads():
    """Every way in which a Writer's output reaches a memory after a record was forgotten."""

    def rewrite(memory):
        memory.rewrite()

    def retry(memory):
        memory.store.connection.execute("UPDATE segments SET writer = 'none'")
        memory.retry()

    def remember(memory):
        again = [ChatMessage("A", "fact number 0", f"2025-02-01T10:{minute:02d}:00") for minute in range(2)]
        memory.remember(again)

    def live(memory):
        memory.live.put(ChatMessage("A", "fact number 0", "2025-02-01T10:00:00", message_id="x1"))
        memory.live.flush()

    return [rewrite, retry, remember, live]


@pytest.mark.parametrize("road", roads(), ids=lambda road: road.__name__)
def test_a_forgotten_record_is_not_written_again_by_any_road(tmp_path, road):
    with opened(tmp_path / "m.db", Tagging("tag")) as memory:
        memory.remember(CHAT, window=2)
        (secret,) = [record for record in memory.state().derived() if record.content == "tag fact number 0"]
        memory.forget(record=secret.entry_id)
        others = contents(memory)
        road(memory)
        assert "tag fact number 0" not in contents(memory) and set(others) <= set(contents(memory))
    assert b"tag fact number 0" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_forgotten_version_does_not_come_back_as_an_update(tmp_path):
    with opened(tmp_path / "m.db", Tagging("tag", update=True)) as memory:
        memory.remember(CHAT[:4], window=2)
        (secret,) = [head for head in memory.state().heads("A") if ", changed by" in head.content]
        memory.forget(record=secret.entry_id)
        memory.rewrite()
        assert secret.content not in contents(memory)


def test_forgetting_waits_its_turn_or_says_who_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("memory_env.store.lock.WAIT_S", 0.0)
    with opened(tmp_path / "m.db", "none") as memory:
        memory.remember(CHAT)
        with writing(tmp_path / "m.db", 0.0):
            for forget in (lambda: memory.forget("A"), lambda: memory.allow("A")):
                with pytest.raises(DataError, match="another program is writing"):
                    forget()
        assert memory.forget("A").messages == 4 and memory.allow("A")


def test_writing_again_without_a_writer_is_refused(tmp_path):
    with opened(tmp_path / "m.db", "none") as memory, pytest.raises(DataError, match="--writer"):
        memory.rewrite()


def test_a_second_program_is_told_before_it_pays(tmp_path, monkeypatch):
    monkeypatch.setattr("memory_env.store.lock.WAIT_S", 0.0)
    writer = Tagging("paid")
    path = tmp_path / "m.db"
    hold = "import sys\nfrom pathlib import Path\nfrom memory_env.store.lock import writing\nwith writing(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold, path], stdin=-1, stdout=-1, cwd=ROOT) as other:
        assert other.stdout.readline() == b"held\n"
        with opened(path, writer) as memory, pytest.raises(DataError, match="another program is writing"):
            memory.remember(CHAT)
        assert writer.asked == []
        other.kill()  # the lock ends with its process
    with opened(path, writer) as memory:
        assert memory.remember(CHAT).new == 8
    assert [file.name for file in tmp_path.iterdir()] == ["m.db"]


def test_the_lock_is_free_again_afterwards(tmp_path):
    for _ in range(3):
        with writing(tmp_path / "m.db", 0.0):
            pass
    with pytest.raises(DataError), writing(tmp_path / "m.db", 0.0), writing(tmp_path / "m.db", 0.0):
        pass
    assert list(tmp_path.iterdir()) == []


def test_reasons_are_counted_without_what_is_particular():
    errors = ["action 0: owner 'Zoe' is no member", "action 3: owner 'Al' is no member", "not JSON"]
    assert reasons(errors) == ['2 x owner "..." is no member', "1 x not JSON"]
