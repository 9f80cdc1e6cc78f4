"""Every chat once: exports that grew, were repeated, or were written by another phone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_env import step
from memory_env.ingest import read_source
from memory_env.ingest.chat import Chat, ChatMessage
from memory_env.ingest.times import ASSUMED, BY_NUMBERS, BY_TIME, DateOrder
from memory_env.store.changes import former_names
from memory_env.store.exports import take_in
from memory_env.store.forget import forget_member
from memory_env.store.rows import WrittenSegment
from memory_env.store.store import MemoryStore
from tests.memory_env.chats import NOOP, add


@pytest.fixture
def store(tmp_path):
    with MemoryStore(tmp_path / "m.db") as store:
        yield store


def take(store, *chats, actions=None):
    """Take chats in and write what is new; what `take_in` said."""
    taken = take_in(store, chats)
    state = store.state()
    for part in taken.arrived:
        counts = store.counts()
        state, report = step(state, part.segment, actions or [NOOP])
        assert not report.errors
        records, edges = state.derived(counts["records"]), state.edges(counts["edges"])
        store.append([WrittenSegment(part, "test", "{}", report, state.verbatim(counts["messages"]), records, edges)])
    return taken


def contents(store):
    return [record.content for record in store.state().verbatim()]


def text(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_source(path).chats[0]


def new(taken):
    return sum(len(part.sources) for part in taken.arrived)


PHONES = {
    "android, no files": ("31/05/24, 09:00 - Mia: <Media omitted>", "31/05/24, 09:01 - Lee: Nice hut!"),
    "android, files": ("31/05/24, 09:00 - Mia: IMG-7.jpg (file attached)", "31/05/24, 09:01 - Lee: Nice hut!"),
    "iphone, no files": ("[31/05/24, 09:00:12] Mia: \u200eimage omitted", "[31/05/24, 09:01:40] Lee: Nice hut!"),
    "iphone, files": ("[31/05/24, 9:00:12 AM] Mia: \u200e<attached: 7.jpg>", "[31/05/24, 9:01:40 AM] Lee: Nice hut!"),
    "german iphone": ("[31.05.24, 09:00:12] Mia: \u200eBild weggelassen", "[31.05.24, 09:01:40] Lee: Nice hut!"),
}


@pytest.mark.parametrize("first", PHONES)
@pytest.mark.parametrize("second", PHONES)
def test_one_chat_from_two_phones_is_held_once(store, tmp_path, first, second):
    one, other = text(tmp_path / "a.txt", *PHONES[first]), text(tmp_path / "b.txt", *PHONES[second])
    differs = [(m.ts, m.content) for m in one.messages] != [(m.ts, m.content) for m in other.messages]
    assert new(take(store, one)) == 2
    taken = take(store, other)
    assert (new(taken), taken.known) == (0, 2)
    assert any("writes them differently" in note for note in taken.notes) == differs
    grown = [*PHONES[second], "[31/05/24, 09:01:59] Lee: Nice hut!" if "[" in PHONES[second][0] else "31/05/24, 09:02 - Lee: when?"]
    assert new(take(store, text(tmp_path / "c.txt", *grown))) == 1


def test_chats_without_a_name_are_told_apart_by_what_is_said_in_them(store, tmp_path):
    (tmp_path / "x").mkdir(), (tmp_path / "y").mkdir()
    family = ["31/05/24, 09:00 - Mia: ok", "31/05/24, 09:01 - Lee: lunch?", "31/05/24, 09:05 - Mia: yes"]
    club = ["31/05/24, 09:00 - Mia: ok", "31/05/24, 09:02 - Bo: training is off", "31/05/24, 09:07 - Cy: again"]
    take(store, text(tmp_path / "x" / "_chat.txt", *family))
    take(store, text(tmp_path / "y" / "_chat.txt", *club))
    assert contents(store).count("ok") == 2 and len(contents(store)) == 6
    # Each grows under another name, and is known again.
    assert new(take(store, text(tmp_path / "club.txt", *club, "31/05/24, 10:00 - Bo: tomorrow then"))) == 1
    assert new(take(store, text(tmp_path / "family.txt", *family, "31/05/24, 10:00 - Lee: come"))) == 1
    sessions = {record.content: record.session for record in store.state().verbatim()}
    assert sessions["training is off"] == sessions["tomorrow then"] != sessions["lunch?"] == sessions["come"]


def test_one_chat_goes_on_under_its_name_though_the_exports_share_nothing(store, tmp_path):
    take(store, text(tmp_path / "WhatsApp Chat with Crew.txt", "31/05/24, 09:00 - Mia: a"))
    take(store, text(tmp_path / "WhatsApp Chat with Crew (1).txt", "31/05/24, 09:30 - Lee: b"))
    assert len({record.session for record in store.state().verbatim()}) == 1


def us(path, *days):
    return text(path, *(f"{day}, 9:00 AM - Mia: day {number}" for number, day in enumerate(days)))


@pytest.mark.parametrize("order", ["grown later", "grown first"])
def test_us_dates_decided_anew_do_not_double_a_chat(store, tmp_path, order):
    # Alone, 3/4 and 3/5 may be April and May; once 3/14 has come they are March.
    short, grown = us(tmp_path / "s.txt", "3/4/24", "3/5/24"), us(tmp_path / "g.txt", "3/4/24", "3/5/24", "3/14/24")
    first, second = (short, grown) if order == "grown later" else (grown, short)
    take(store, first)
    taken = take(store, second)
    assert new(taken) == (1 if order == "grown later" else 0)
    assert any("day and month" in note for note in taken.notes)
    times = sorted(record.ts[:10] for record in store.state().verbatim())
    assert times == ["2024-03-04", "2024-03-05", "2024-03-14"]
    # Decided once: the same exports again bring nothing.
    assert new(take(store, us(tmp_path / "s.txt", "3/4/24", "3/5/24"))) == 0
    assert new(take(store, us(tmp_path / "g.txt", "3/4/24", "3/5/24", "3/14/24"))) == 0


def test_what_was_put_right_is_right_everywhere(store, tmp_path):
    take(store, us(tmp_path / "s.txt", "3/4/24"), actions=[add("likes huts", "Mia", "Mia")])
    take(store, us(tmp_path / "g.txt", "3/4/24", "3/14/24"))
    (record,) = store.state().heads("Mia")
    assert record.ts == "2024-03-04T09:00:00"
    then = store.state(as_of=1_709_600_000.0)  # 2024-03-05
    assert len(then.verbatim()) == 1 and len(then.heads("Mia")) == 1


@pytest.mark.parametrize(("kept", "told", "right"), [(ASSUMED, BY_TIME, "told"), (BY_TIME, ASSUMED, "kept"), (BY_NUMBERS, BY_TIME, "kept")])
def test_the_surer_reading_of_a_chats_dates_wins(store, kept, told, right):
    def chat(order, certainty, *days):
        messages = [ChatMessage("Mia", f"message {n}", f"2024-{day}T09:00:00") for n, day in enumerate(days)]
        return Chat("Crew", messages, dates=DateOrder(order, certainty))

    take(store, chat("dmy", kept, "04-03", "05-03"))
    take(store, chat("mdy", told, "03-04", "03-05", "03-06"))
    assert sorted(record.ts[5:10] for record in store.state().verbatim()) == (
        ["03-04", "03-05", "03-06"] if right == "told" else ["04-03", "05-03", "06-03"]
    )


def test_a_new_chat_whose_dates_are_open_is_read_like_the_others(store, tmp_path):
    take(store, text(tmp_path / "one.txt", "3/14/24, 9:00 AM - Mia: a", "3/15/24, 9:00 AM - Mia: b"))
    taken = take(store, text(tmp_path / "two.txt", "4/2/24, 9:00 AM - Lee: c"))
    assert [record.ts[:10] for record in store.state().verbatim()] == ["2024-03-14", "2024-03-15", "2024-04-02"]
    assert any("read like those of the chats" in note for note in taken.notes)
    assert not any("assumed" in note for note in taken.notes)


def test_older_messages_that_come_later_are_told(store, tmp_path):
    take(store, text(tmp_path / "WhatsApp Chat with Crew.txt", "31/05/24, 09:00 - Mia: b"))
    taken = take(store, text(tmp_path / "WhatsApp Chat with Crew.txt", "30/05/24, 09:00 - Mia: a", "31/05/24, 09:00 - Mia: b"))
    assert new(taken) == 1 and any("1 new messages are older than the last one known" in n for n in taken.notes)
    # Another chat may be of any time, as long as nothing is recorded that it could make older.
    club = text(tmp_path / "WhatsApp Chat with Club.txt", "29/05/24, 09:00 - Bo: x")
    assert not take(store, club, actions=[add("likes huts", "Bo", "Bo")]).notes
    pair = text(tmp_path / "WhatsApp Chat with Pair.txt", "28/05/24, 09:00 - Cy: y")
    assert any("older than the last one known" in note for note in take(store, pair).notes)


def telegram(path, *messages):
    rows = [
        {"id": n, "type": "message", "date": f"2024-06-01T09:{n:02d}:00", "from": "Mia", "from_id": "user1", **message}
        for n, message in enumerate(messages)
    ]
    path.write_text(json.dumps({"name": "Hikers", "id": 7, "messages": rows}))
    return read_source(path).chats[0]


def test_an_edit_is_applied_by_its_id_and_told_and_an_older_export_does_not_undo_it(store, tmp_path):
    early = telegram(tmp_path / "a.json", {"text": "meet at 7"}, {"text": "ok"})
    late = telegram(tmp_path / "b.json", {"text": "meet at 8", "edited": "2024-06-01T09:30:00"}, {"text": "ok"})
    later = telegram(tmp_path / "c.json", {"text": "meet at 9", "edited": "2024-06-01T09:40:00"}, {"text": "ok"})
    take(store, early, actions=[add("the meeting is at 7", "Mia", "Mia")])
    taken = take(store, late)
    assert contents(store) == ["meet at 8", "ok"] and new(taken) == 0
    assert any("1 messages were edited" in note for note in taken.notes)
    for again, text in ((early, "meet at 8"), (later, "meet at 9"), (late, "meet at 9")):
        take(store, again)
        assert contents(store) == [text, "ok"]


def test_an_edit_without_ids_is_the_same_message(store, tmp_path):
    before = ("31/05/24, 09:00 - Mia: meet at 7", "31/05/24, 09:00 - Mia: bring rope")
    after = ("31/05/24, 09:00 - Mia: meet at 8 <This message was edited>", before[1])
    for lines in (before, after, before, after):
        taken = take(store, text(tmp_path / "c.txt", *lines))
    assert new(taken) == 0 and contents(store) == ["meet at 8", "bring rope"]


def slack(folder, *messages):
    (folder / "hikers").mkdir(parents=True, exist_ok=True)
    (folder / "users.json").write_text(json.dumps([{"id": "U1", "profile": {"display_name": "Mia"}}]))
    (folder / "channels.json").write_text(json.dumps([{"id": "C1", "name": "hikers"}]))
    day = [{"type": "message", "user": "U1", "ts": f"1717232400.{n:06d}", **message} for n, message in enumerate(messages)]
    (folder / "hikers" / "2024-06-01.json").write_text(json.dumps(day))
    return read_source(folder).chats[0]


def test_a_deletion_is_applied_by_its_id_and_an_older_export_does_not_bring_it_back(store, tmp_path):
    before = slack(tmp_path / "a", {"text": "my PIN is 1234"}, {"text": "oops"})
    after = slack(tmp_path / "b", {"subtype": "tombstone", "text": "This message was deleted."}, {"text": "oops"})
    take(store, before)
    taken = take(store, after)
    assert contents(store) == ["oops"] and any("1 messages were deleted in the chat" in note for note in taken.notes)
    assert new(take(store, before)) == 0 and contents(store) == ["oops"]


def test_a_deletion_is_known_before_the_message_is(store, tmp_path):
    after = slack(tmp_path / "b", {"subtype": "tombstone", "text": "This message was deleted."}, {"text": "oops"})
    take(store, after)
    before = slack(tmp_path / "a", {"text": "my PIN is 1234"}, {"text": "oops"}, {"text": "new"})
    assert new(take(store, before)) == 1 and contents(store) == ["oops", "new"]


def test_forgetting_one_of_two_takes_the_chats_name_with_them(store, tmp_path):
    chat = text(tmp_path / "WhatsApp Chat with Bo.txt", "31/05/24, 09:00 - Mia: a", "31/05/24, 09:01 - Bo: b")
    take(store, chat)
    forget_member(store, "Bo")
    assert b"Bo" not in (tmp_path / "m.db").read_bytes() and contents(store) == ["a"]
    again = text(tmp_path / "WhatsApp Chat with Bo.txt", "31/05/24, 09:00 - Mia: a", "31/05/24, 09:01 - Bo: b")
    assert new(take(store, again)) == 0


def test_a_new_name_is_the_same_member_whichever_export_comes_first(tmp_path):
    def csv(name, day):
        (tmp_path / "c.csv").write_text(f"ts,speaker,speaker_id,text,id\n2024-06-{day}T09:00:00,{name},u1,on day {day},m{day}\n")
        return read_source(tmp_path / "c.csv").chats[0]

    for order in ((("Bo", "01"), ("Robert", "05")), (("Robert", "05"), ("Bo", "01"))):
        with MemoryStore(tmp_path / f"{order[0][0]}.db") as store:
            notes = [take(store, csv(*each), actions=[add(f"is {each[0]}", each[0], each[0])] if each == order[0] else None).notes
                     for each in order]  # fmt: skip
            state = store.state()
            assert state.roster == ("Robert",) and {record.source for record in state.verbatim()} == {"Robert"}
            assert [record.owner for record in state.derived()] == ["Robert"]
            if order[0][0] == "Bo":
                assert notes[1] == ["Bo is now called Robert"] and former_names(store) == {"Robert": ["Bo"]}


def test_a_new_name_that_another_member_bears_stays_apart(store, tmp_path):
    rows = ["2024-06-01T09:00:00,Bo,u1,a,1", "2024-06-01T09:01:00,Mia,u2,b,2", "2024-06-02T09:00:00,Mia,u1,c,3"]
    for count in (2, 3):
        (tmp_path / "c.csv").write_text("ts,speaker,speaker_id,text,id\n" + "\n".join(rows[:count]) + "\n")
        take(store, read_source(tmp_path / "c.csv").chats[0])
    assert {record.content: record.source for record in store.state().verbatim()} == {"a": "Mia (2)", "b": "Mia", "c": "Mia (2)"}


def test_members_whose_names_differ_in_unicode_form_alone_are_one(store, tmp_path):
    take(store, text(tmp_path / "a.txt", "31/05/24, 09:00 - Zoë: a"))
    taken = take(store, text(tmp_path / "b.txt", "31/05/24, 09:00 - Zoe\u0308: a", "31/05/24, 09:01 - Zoe\u0308: b"))
    assert new(taken) == 1 and store.state().roster == ("Zoë",)


LINES = st.lists(st.tuples(st.sampled_from(["Mia", "Lee"]), st.sampled_from(["ok", "Ok.", "no", "<Media omitted>"]), st.integers(0, 3)), min_size=3, max_size=15)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(LINES, st.lists(st.integers(1, 15), min_size=1, max_size=4))
def test_however_a_chat_grows_each_message_is_held_once_in_order(lines, ends):
    import tempfile
    from pathlib import Path

    minute, told = 0, []
    for speaker, words, pause in lines:
        minute += pause
        told.append(f"31/05/24, 09:{minute:02d} - {speaker}: {words}")
    with tempfile.TemporaryDirectory() as folder, MemoryStore(Path(folder) / "m.db") as store:
        for end in [*sorted(ends), len(told), 3]:
            take(store, text(Path(folder) / "Crew.txt", *told[:end]))
        expected = ["[media]" if words.startswith("<") else words for _, words, _ in lines]
        assert contents(store) == expected
