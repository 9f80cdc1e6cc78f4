from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.ingest import Chat, ChatMessage, to_network
from memory_env.ingest.sessions import cut, slug
from memory_env.ingest.times import instant, parse_time

START = datetime(2024, 5, 1, 10)


def messages(hours, **fields):
    return [ChatMessage("Ann", f"m{i}", (START + timedelta(hours=h)).isoformat(), **fields) for i, h in enumerate(hours)]


def test_a_silence_ends_a_session_and_so_does_its_size():
    assert [len(session) for session in cut(messages([0, 1, 7, 13.5, 14]))] == [3, 2]
    assert [len(session) for session in cut(messages([0] * 7), most=3)] == [3, 3, 1]


@given(st.lists(st.floats(0, 500), max_size=40), st.floats(0.1, 50), st.integers(1, 9))
def test_cutting_loses_and_reorders_nothing(hours, gap, most):
    told = messages(hours)
    sessions = cut(told, gap, most)
    assert [message for session in sessions for message in session] == told
    assert all(1 <= len(session) <= most for session in sessions)


def test_what_an_export_holds_twice_is_kept_once():
    told = messages([0, 1], message_id="7")
    repeated = [told[0], told[0], told[1]]
    chat = Chat("x", repeated)
    network = to_network(chat)
    assert [message.content for message in network.messages] == ["m0", "m1"]
    assert [message.turn_id for message in network.messages] == ["7", "x_s0001_t001"]
    assert chat.tally == {"repeated messages": 1, "ids used twice": 1}


def test_what_was_counted_and_assumed_travels_with_the_network():
    chat = Chat("My Chat!", messages([0]), notes=["assumed"], former_names={"Ann": ["An"]})
    chat.tally["deleted"] = 2
    network = to_network(chat)
    assert network.meta["ingest"] == {"counts": {"deleted": 2}, "notes": ["assumed"]}
    assert network.meta["former_names"] == {"Ann": ["An"]}
    assert network.network_id == "my_chat"


def test_ids_from_any_name():
    assert slug("Família & Amigos") == "família_amigos" and slug("🎉") == "chat"


@pytest.mark.parametrize(
    ("text", "ts"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00"),
        ("2024-05-01", "2024-05-01"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00+00:00"),
        ("1714557600", "2024-05-01T10:00:00+00:00"),
        ("1714557600123", "2024-05-01T10:00:00+00:00"),
    ],
)
def test_times_of_many_kinds(text, ts):
    assert parse_time(text) == ts


def test_instants_compare_across_zones():
    assert instant("2024-05-01T12:00:00+02:00") == instant("2024-05-01T10:00:00Z") == instant("2024-05-01T10:00:00")
    assert instant("soon") is None and instant("") is None
