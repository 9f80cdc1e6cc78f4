"""A member who was renamed is asked about by every name they bore; an old name that is another's now is answered for each."""

import pickle

import pytest

from memory_env.datafile import DataError
from memory_env.default_prompts import PROMPTS
from memory_env.ingest import read_source
from memory_env.prompts import PromptTemplate
from memory_env.query.evidence_text import evidence_values
from memory_env.query.members import Members
from memory_env.query.people import find_people, readings
from writer_rl import Memory


def said(number, speaker, speaker_id, content):
    return {
        "speaker": speaker, "speaker_id": speaker_id, "content": content, "ts": f"2025-01-0{number}T10:00", "message_id": f"m{number}",
    }  # fmt: skip


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "m.db", retrieval="lexical") as made:
        made.remember([said(1, "Bo Lund", "u1", "I live in Kent"), said(2, "Mia", "u2", "Bo Lund hates olives")])
        made.remember([said(3, "Robert", "u1", "I work at the zoo")])
        yield made


def test_an_old_name_is_answered_for_who_bore_it_and_says_so(memory):
    assert memory.state().roster == ("Mia", "Robert")
    for name in ("Bo", "Bo Lund", "bo lund"):
        assert memory.ask(f"Where does {name} live?").text == "Robert: I live in Kent (Bo Lund is now called Robert)"
    assert memory.ask("Where does Robert live?").text == "Robert: I live in Kent"
    assert memory.ask("What does Bo drink?").text == "Robert (Bo Lund is now called Robert): not recorded"


def test_what_others_said_under_the_old_name_is_found_by_the_new_one(memory):
    assert memory.ask("What does Robert hate?").text == "Mia: Bo Lund hates olives"


def test_an_old_name_that_another_bears_now_is_answered_for_each(memory):
    memory.remember([said(4, "Bo", "u3", "I live in Hull")])
    answer = memory.ask("Where does Bo live?").text.splitlines()
    assert sorted(answer) == ["Bo: I live in Hull", "Robert: I live in Kent (Bo Lund is now called Robert)"]


def test_an_old_name_that_two_bore_is_answered_for_each(memory):
    memory.remember([said(4, "Bo", "u3", "I live in Hull")])
    memory.remember([said(5, "Quentin", "u3", "I keep bees")])
    answer = memory.ask("Where does Bo live?").text.splitlines()
    assert sorted(answer) == [
        "Quentin: I live in Hull (Bo is now called Quentin)",
        "Robert: I live in Kent (Bo Lund is now called Robert)",
    ]


def test_live_messages_of_one_id_are_one_members_whatever_the_name(memory):
    memory.say("Bertie", "I play the flute", "2025-01-09T10:00", speaker_id="u1")
    memory.flush()
    assert memory.state().roster == ("Bertie", "Mia")
    assert memory.ask("What does Robert play?").text == "Bertie: I play the flute (Robert is now called Bertie)"


def test_a_rename_inside_one_export_is_kept_too(tmp_path):
    lines = ["2024-06-01T09:00:00,Bo,u1,I live in Kent,1", "2024-06-02T09:00:00,Robert,u1,I like tea,2"]
    (tmp_path / "c.csv").write_text("ts,speaker,speaker_id,text,id\n" + "\n".join(lines) + "\n")
    assert read_source(tmp_path / "c.csv").chats[0].former_names == {"Robert": ["Bo"]}
    with Memory(tmp_path / "m.db", retrieval="lexical") as memory:
        memory.remember(tmp_path / "c.csv")
        assert memory.ask("Where does Bo live?").text == "Robert: I live in Kent (Bo is now called Robert)"


def test_who_asks_for_a_former_name_is_told_the_new_one(memory):
    with pytest.raises(DataError, match="'Bo Lund' is now called Robert"):
        memory.chains("Bo Lund")
    with pytest.raises(DataError, match="'Bo Lund' is no member; that is Robert today"):
        memory.forget("Bo Lund")


def test_a_former_name_that_is_a_word_is_one_only_with_a_capital():
    members = Members.of(["Ann", "Robert"], {"Robert": ["Will"]})
    assert [named.text for named in find_people("What will Ann do?", members)] == ["Ann"]
    assert [named.members for named in find_people("What does Will do?", members)] == [("Robert",)]


def test_a_part_of_todays_name_needs_no_help_and_the_longest_former_name_is_meant():
    (reading,) = readings("Where does Bob live?", Members.of(["Bob Lee"], {"Bob Lee": ["Bob"]}))
    assert reading.projection.names == ("Bob Lee",) and reading.former == ()
    (reading,) = readings("What did Bo Lee say?", Members.of(["Kim", "Robert"], {"Robert": ["Bo Lee"], "Kim": ["Lee"]}))
    assert reading.former == (("Robert", "Bo Lee"),)


def test_a_model_is_told_the_old_name(memory):
    evidence = memory.retrieval.evidence("Where does Bo live?")
    template = PromptTemplate.load(PROMPTS / "answer_memory.jinja")
    prompt = template.fill(evidence_values(evidence) | {"question": "?", "options": {}})[-1]["content"]
    assert prompt.startswith("Members: Mia, Robert (formerly Bo Lund)\n")


def test_members_are_their_names_where_nobody_was_renamed():
    plain, renamed = Members(("Ann", "Bo")), Members.of(["Ann", "Bo"], {"Bo": ["Al"], "Zoe": ["Z"]})
    assert plain == ("Ann", "Bo") and hash(plain) == hash(("Ann", "Bo")) and repr(plain) == "('Ann', 'Bo')"
    assert renamed != plain and renamed.former == (("Al", "Bo"),) and pickle.loads(pickle.dumps(renamed)) == renamed
    assert [named.members for named in find_people("Does Al know Ann?", renamed)] == [("Bo",), ("Ann",)]
    assert [named.members for named in find_people("Does Al know Ann?", plain)] == [(), ("Ann",)]
