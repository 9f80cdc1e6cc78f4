"""A member is found under an earlier name; who bears that name today is not mistaken for them."""

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from memory_env.store.changes import Changes, rename
from writer_rl import Memory
from writer_rl.memory.former_names import Called, as_called_now

NOTE = "Bo is now called Robert"
CASES = [
    ("Where does Bo live?", ("Ann", "Robert"), [("Where does Robert live?", NOTE)]),
    ("what is bo's job, and Bo's cat?", ("Ann", "Robert"), [("what is Robert's job, and Robert's cat?", NOTE)]),
    ("Where does Robert live?", ("Ann", "Robert"), [("Where does Robert live?", "")]),
    ("Where does Bob live?", ("Ann", "Robert"), [("Where does Bob live?", "")]),
    # Another member is called so today: asked for both.
    ("Where does Bo live?", ("Bo", "Robert"), [("Where does Bo live?", ""), ("Where does Robert live?", NOTE)]),
]


@pytest.mark.parametrize(("question", "roster", "expected"), CASES)
def test_the_question_is_asked_of_who_is_meant(question, roster, expected):
    assert as_called_now(question, {"Robert": ["Bo"]}, roster) == tuple(Called(*each) for each in expected)


def test_a_part_of_todays_name_needs_no_help_and_the_longest_former_name_is_meant():
    assert as_called_now("Where does Bob live?", {"Bob Lee": ["Bob"]}, ("Bob Lee",)) == (Called("Where does Bob live?"),)
    (called,) = as_called_now("What did Bo Lee say?", {"Robert": ["Bo Lee"], "Kim": ["Lee"]}, ("Kim", "Robert"))
    assert called.question == "What did Robert say?"


def test_a_former_name_that_is_a_word_is_one_only_with_a_capital():
    assert as_called_now("what will Ann do?", {"Robert": ["Will"]}, ("Ann", "Robert")) == (Called("what will Ann do?"),)


@pytest.fixture
def memory(tmp_path):
    def said(speaker, content, minute, id_):
        return ChatMessage(speaker, content, f"2025-03-01T10:{minute:02d}:00", speaker_id=id_, message_id=f"m{minute}")

    chat = [said("Bo", "I live in Lund.", 0, "u1"), said("Ann", "I live in Malmo.", 1, "u2")]
    later = [said("Robert", "A new name, a new start.", 5, "u1")]
    with Memory(tmp_path / "m.db", "none", retrieval="lexical") as memory:
        memory.remember(chat)
        rename(memory.store, later, Changes())
        memory.remember(later)
        yield memory


def test_a_memory_answers_under_both_names_and_says_who_is_who(memory):
    assert memory.ask("Where does Robert live?").text == "Robert: I live in Lund."
    assert memory.ask("Where does Bo live?").text == f"Robert: I live in Lund. ({NOTE})"
    memory.remember([ChatMessage("Bo", "I live in Oslo.", "2025-03-02T10:00:00", speaker_id="u9", message_id="m9")])
    assert memory.ask("Where does Bo live?").text == f"Bo: I live in Oslo.\nRobert: I live in Lund. ({NOTE})"


def test_who_asks_for_a_former_name_is_told_the_new_one(memory):
    with pytest.raises(DataError, match="'Bo' is now called Robert"):
        memory.chains("Bo")
    with pytest.raises(DataError, match="'Bo' is no member; that is Robert today"):
        memory.forget("Bo")
