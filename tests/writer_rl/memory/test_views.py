import json
import re
from html.parser import HTMLParser

import pytest

from memory_env.records import GROUP
from memory_env.store.store import MemoryStore
from tests.memory_env.chats import add
from tests.memory_env.store.test_forget import said
from tests.memory_env.store.test_store import write
from writer_rl.memory.page import page
from writer_rl.memory.plain_text import markdown, memory_lines, visible
from writer_rl.memory.views import conflicts, member_view, rejections

NASTY = '<script>alert("x")</script> **bold** [a](http://x) \x1b[2J\u202e{{ 7*7 }}'
CHAT = [
    said("Ann", "I live in Leeds now", 0), said("Bob", "since when?", 1), said("Ann", "I moved, I live in York now", 2),
    said("Bob", NASTY, 3), said("Cem", "Ann lives in York", 4), said("Ann", "I live in York now!", 5),
]  # fmt: skip
MOVES = {
    0: lambda state: [add("lives in Leeds", owner="Ann", source="Ann")],
    1: lambda state: [
        {"action": "UPDATE", "entry_id": state.heads("Ann")[0].entry_id, "content": "lives in York now"},
        add(NASTY, owner="Bob", source="Bob"),
    ],
    2: lambda state: [add("lives in York, now.", owner="Ann", source="Cem"), add("lives in York today", owner="Ann", source="Ann")],
}


@pytest.fixture
def store(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        write(store, CHAT, MOVES)
        yield store


def test_a_record_knows_the_time_of_the_message_it_came_from(store):
    state = store.state()
    head = next(record for record in state.heads("Ann") if record.content == "lives in York today")
    fact = next(fact for row in member_view(state, "Ann").rows for fact in row.facts if fact.current.entry_id == head.entry_id)
    # The segment began with another message.
    assert head.ts == "2024-05-01T10:04:00" and fact.current.ts == min(said.ts for said in fact.current.behind)
    assert "York" in fact.current.behind[0].content


def test_a_chain_is_one_fact_with_its_earlier_versions(store):
    (row,) = member_view(store.state(), "Ann").rows
    fact = row.facts[0]
    assert (fact.current.content, [version.content for version in fact.earlier]) == ("lives in York now", ["lives in Leeds"])


def test_the_same_fact_said_again_is_one_fact_with_a_count(tmp_path):
    chat = [said("Ann", text, minute) for minute, text in enumerate(["I like tea", "oh", "I like tea", "oh", "I LIKE tea.", "yes"])]
    moves = {position: lambda state, text=text: [add(text, owner="Ann", source="Ann")]
             for position, text in enumerate(["likes tea", "likes tea.", "Likes  Tea"])}  # fmt: skip
    from memory_env import step
    from memory_env.store.intake import arrive
    from memory_env.store.store import WrittenSegment

    with MemoryStore(tmp_path / "m.db") as store:
        state = store.state()
        for part in arrive(store, chat, 2):
            before = store.counts()
            state, report = step(state, part.segment, moves[part.segment.position](state))
            records = state.derived(before["records"])
            store.append([WrittenSegment(part, "test", "{}", report, state.verbatim(before["messages"]), records, ())])
        heads = store.state().heads("Ann")
        (row,) = member_view(store.state(), "Ann").rows
    (fact,) = row.facts
    # The environment keeps every one of them.
    assert len(heads) == 3
    assert (fact.count, fact.current.entry_id) == (3, heads[-1].entry_id)
    assert fact.last_seen == "2024-05-01T10:04:00"


def test_what_two_say_differently_may_conflict(store):
    pairs = [{c.first.content, c.second.content} for c in conflicts(member_view(store.state(), "Ann"))]
    assert {"lives in York now", "lives in York today"} in pairs
    assert conflicts(member_view(store.state(), GROUP)) == []


def test_rejections_say_where_and_why(store):
    with store.changing() as db:
        report = json.loads(db.execute("SELECT report FROM segments WHERE position = 1").fetchone()[0])
        report["errors"] = ["action 1: owner 'Zed' is no member"]
        db.execute("UPDATE segments SET report = ? WHERE position = 1", (json.dumps(report),))
    (rejected,) = rejections(store)
    assert (rejected.position, rejected.reasons) == (1, ("action 1: owner 'Zed' is no member",))
    assert "Zed" in page(store, store.state()) and any("Zed" in line for line in memory_lines(store, store.state()))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]


def test_the_page_is_self_contained_and_everything_in_it_is_escaped(store):
    html = page(store, store.state())
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.seen and all(link.startswith("#") for link in tags.links)
    assert "&lt;script&gt;" in html and "{{ 7*7 }}" in html
    assert "lives in York now" in html and "lives in Leeds" in html and "I live in Leeds now" in html


def test_a_terminal_and_a_markdown_reader_get_no_control_characters(store):
    text = "\n".join([*memory_lines(store, store.state()), *markdown(store)])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert r"\<script\>" in "\n".join(markdown(store)) and r"\*\*bold\*\*" in "\n".join(markdown(store))
    assert visible("a\x1b[2Jb\nc") == "a\\x1b[2Jb ⏎ c"
