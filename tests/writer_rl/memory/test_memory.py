import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from memory_env.replay import Completion
from memory_env.text import one_line
from rollout.writer_prompt import PromptDoesNotFit
from writer_rl import Memory
from writer_rl.evaluation.writers import NOOP_OUTPUT
from writer_rl.memory.moment import moment

START = datetime(2024, 5, 1, 10)


def told(*lines, minutes=1):
    return [
        ChatMessage(speaker, text, (START + timedelta(minutes=minutes * place)).isoformat())
        for place, (speaker, text) in enumerate(lines)
    ]


CHAT = told(
    ("Alice", "I live in Leeds now."), ("Bob", "Alice is the best cook I know."),
    ("Alice", "I live in York now."), ("Bob", "We all agreed on Friday."),
)  # fmt: skip


class Scripted:
    """A Writer that says what the test tells it, by the text of the first message."""

    identity = "scripted"

    def __init__(self, most=99):
        self.most, self.seen, self.closed = most, [], False

    def write(self, state, segment):
        if len(segment.messages) > self.most or any(len(m.content) > 200 for m in segment.messages):
            raise PromptDoesNotFit("too long")
        self.seen.append([message.content for message in segment.messages])
        actions = []
        for message in segment.messages:
            if "Leeds" in message.content:
                actions.append(
                    '{"action":"ADD","owner":"Alice","source":"Alice","layer":"per_speaker_core","utype":"fact","content":"Alice lives in Leeds"}'
                )
            if "cook" in message.content:
                actions.append(
                    '{"action":"ADD","owner":"Alice","source":"Bob","layer":"per_speaker_profile","utype":"observation","content":"Alice is the best cook"}'
                )
            if "York" in message.content:
                old = next(record for record in state.heads("Alice") if "Leeds" in record.content)
                actions.append('{"action":"UPDATE","entry_id":"%s","content":"Alice lives in York"}' % old.entry_id)
            if "broken" in message.content:
                return Completion("no json", hit_length_limit=True)
        return Completion('{"actions":[' + ",".join(actions or ['{"action":"NOOP"}']) + "]}")

    def close(self):
        self.closed = True


@pytest.mark.parametrize("odd", ["\ud83d", "\ude00 x \ud83d", "\u2028", "\x00", "好"], ids=ascii)
def test_any_text_that_is_said_or_written_is_kept(tmp_path, odd):
    """U+FFFD stands for half of an emoji, from an app or as an escape in the Writer's JSON: no file can hold it."""

    class Echo(Scripted):
        def write(self, state, segment):
            record = {"owner": "Alice", "source": "Alice", "layer": "per_speaker_core", "utype": "fact"}
            output = {"actions": [{"action": "ADD", "content": f"Alice likes tea {odd}", **record}]}
            return Completion(json.dumps(output, ensure_ascii=len(self.seen) % 2 == 0))

    chat = [replace(message, content=f"{message.content} {odd}", speaker_id=f"{message.speaker}{odd}") for message in CHAT]
    kept = odd.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    with Memory(tmp_path / "m.db", Echo()) as memory:
        assert memory.remember(chat[:2]).new == 2
    with Memory(tmp_path / "m.db", Echo()) as memory:  # the next export of the same chat
        again = memory.remember(chat)
        assert (again.new, again.known) == (2, 2) and memory.store.counts()["members"] == 2
        assert [record.content for record in memory.state().verbatim()] == [f"{message.content} {kept}" for message in CHAT]
        assert {record.content for record in memory.state().derived()} == {f"Alice likes tea {kept}"}
        shown = one_line(" ".join(f"Alice likes tea {kept}".split()))  # an answer's line stays one line
        assert memory.ask("What does Alice like?").text == f"Alice: {shown}"


def test_the_messages_behind_a_record_are_found_by_the_given_provenance(tmp_path):
    def last(contents, segment):
        return [(len(segment.messages) - 1,) for _ in contents]

    with Memory(tmp_path / "m.db", Scripted(), provenance=last) as memory:
        memory.remember(CHAT, window=2)
        state = memory.state()
    behind = [state.get(entry_id).content for record in state.derived() for entry_id in record.from_ids]
    assert behind == [CHAT[1].content, CHAT[1].content, CHAT[3].content]


def test_remember_ask_and_the_evidence(tmp_path):
    writer = Scripted()
    with Memory(tmp_path / "m.db", writer) as memory:
        result = memory.remember(CHAT, window=2)
        assert (result.new, result.known, result.segments, result.records, result.updates) == (4, 0, 2, 3, 1)
        answer = memory.ask("Where does Alice live?")
    assert "York" in answer.text and "Leeds" not in answer.text
    derived = [line for line in answer.evidence if line.track == "memory"]
    assert any(line.content == "Alice lives in York" and line.owner == "Alice" for line in derived)
    assert all(line.ts and line.speaker for line in answer.evidence)
    assert any("I live in York now." in message for line in derived for message in line.behind)
    assert "Alice @ 2024-05-01T10:02:00" in str(derived[0]) or "from" in str(derived[0])
    assert writer.closed


def test_a_question_of_bytes_that_are_no_text_is_answered(tmp_path):
    with Memory(tmp_path / "m.db", Scripted()) as memory:
        memory.remember(CHAT, window=2)
        assert memory.ask("Where does Alice live, caf\udce9?").question == "Where does Alice live, caf\ufffd?"


def test_as_of_answers_from_the_memory_as_it_was(tmp_path):
    with Memory(tmp_path / "m.db", Scripted()) as memory:
        memory.remember(CHAT, window=2)
        assert "Leeds" in memory.ask("Where does Alice live?", as_of="2024-05-01T10:01:30").text
        assert "York" in memory.ask("Where does Alice live?", as_of="2024-05-01").text
        assert memory.state("2024-04-30").roster == ()


def test_the_same_again_is_a_no_op_and_does_not_ask_the_writer(tmp_path):
    with Memory(tmp_path / "m.db", Scripted()) as memory:
        memory.remember(CHAT, window=2)
        before = memory.store.counts()
    writer = Scripted()
    with Memory(tmp_path / "m.db", writer) as memory:
        result = memory.remember(CHAT, window=2)
        assert (result.new, result.known, result.segments) == (0, 4, 0)
        assert memory.store.counts() == before
    assert writer.seen == [] and not writer.closed


def test_a_segment_that_does_not_fit_is_halved_and_a_message_that_never_fits_is_kept_word_for_word(tmp_path):
    writer = Scripted(most=2)
    messages = told(*[("Ann", f"m{n}") for n in range(5)], ("Ann", "x" * 300))
    with Memory(tmp_path / "m.db", writer) as memory:
        result = memory.remember(messages)
        held = [record.content for record in memory.state().verbatim()]
        positions = [segment["position"] for segment in memory.store.segments()]
        last = list(memory.store.segments())[-1]
    assert held == [message.content for message in messages]
    assert all(len(part) <= 2 for part in writer.seen) and positions == list(range(len(positions)))
    assert result.verbatim_only == 1 and (last["writer"], last["completion"]) == ("none", NOOP_OUTPUT)


def test_a_writer_that_fails_keeps_what_was_written_and_goes_on(tmp_path):
    class Failing(Scripted):
        def write(self, state, segment):
            if len(self.seen) == 1:
                raise RuntimeError("endpoint is gone")
            return super().write(state, segment)

    with pytest.raises(RuntimeError), Memory(tmp_path / "m.db", Failing()) as memory:
        memory.remember(CHAT, window=2)
    with Memory(tmp_path / "m.db", Scripted()) as memory:
        assert memory.store.counts()["messages"] == 2
        result = memory.remember(CHAT, window=2)
        assert (result.new, result.known) == (2, 2)
        continued = memory.state().to_dict()
    with Memory(tmp_path / "whole.db", Scripted()) as memory:
        memory.remember(CHAT, window=2)
        assert memory.state().to_dict() == continued


def test_a_broken_output_is_a_scored_step_and_its_messages_stay(tmp_path):
    with Memory(tmp_path / "m.db", Scripted()) as memory:
        result = memory.remember(told(("Ann", "this is broken"), ("Bo", "fine")))
        assert result.invalid == 1 and memory.store.counts()["messages"] == 2
        (segment,) = memory.store.segments()
        assert segment["completion"] == "no json" and segment["report"]["hit_length_limit"] is True


def test_chains_and_unknown_members(tmp_path):
    with Memory(tmp_path / "m.db", Scripted()) as memory:
        memory.remember(CHAT, window=2)
        chains = memory.chains("Alice")
        assert sorted([record.content for record in chain] for chain in chains) == [
            ["Alice is the best cook"], ["Alice lives in Leeds", "Alice lives in York"],
        ]  # fmt: skip
        assert memory.chains("GROUP") == []
        with pytest.raises(DataError, match="'Zoe' is no member; the memory knows Alice, Bob"):
            memory.chains("Zoe")
        with pytest.raises(DataError, match="empty"):
            memory.ask("  ")


def test_times_of_as_of():
    assert moment("2024-05-01T10:00:00Z") == moment("2024-05-01T12:00:00+02:00")
    assert moment("2024-05-01T23:59:59") < moment("2024-05-01") < moment("2024-05-02T00:00:00")
    assert moment("2024-05-01") < moment("9999-12-31") and moment("0001-01-01") < moment("0001-01-01T23:59:59.999999") + 1
    with pytest.raises(DataError, match="--as-of soon"):
        moment("soon")


def test_a_real_writer_writes_a_memory(tmp_path):
    """A random tiny model through the real engine: valid or not, every message is held and every output is noted."""
    from tests.writer_rl.tiny_run import PROMPT, save_writer
    from writer_rl.config import load_config

    save_writer(tmp_path / "writer")
    (tmp_path / "prompt.txt").write_text(PROMPT)
    overrides = ["--data.prompt", str(tmp_path / "prompt.txt"), "--rollout.max_new_tokens", "16"]
    config = load_config("evaluate", None, overrides)
    messages = told(("Ann", "hello"), ("Bob", "likes tea"), ("Ann", "now coffee"))
    with Memory(tmp_path / "m.db", str(tmp_path / "writer"), config=config) as memory:
        result = memory.remember(messages, window=2)
        segments = list(memory.store.segments())
    assert result.segments == 2 and [segment["position"] for segment in segments] == [0, 1]
    assert all(len(segment["writer"]) == 64 for segment in segments)
    with Memory(tmp_path / "again.db", str(tmp_path / "writer"), config=config) as memory:
        memory.remember(messages, window=2)
        assert [segment["completion"] for segment in memory.store.segments()] == [s["completion"] for s in segments]
