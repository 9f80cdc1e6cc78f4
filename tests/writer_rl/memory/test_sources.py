from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import ChatMessage
from writer_rl.memory.sources import as_messages

WHEN = datetime(2025, 3, 1, 10, 0, tzinfo=UTC)


@dataclass
class Mine:
    author: str
    text: str
    time: datetime
    mood: str = "fine"


HELLO = ChatMessage("Ann", "hello", "2025-03-01T10:00:00+00:00")


@pytest.mark.parametrize(
    "message",
    [
        HELLO,
        ("Ann", "hello", WHEN),
        ["Ann", "hello", "2025-03-01T10:00:00+00:00"],
        {"speaker": "Ann", "content": "hello", "ts": WHEN},
        {"author": "Ann", "text": "hello", "timestamp": WHEN.timestamp()},
        {"sender": "Ann", "body": "hello", "time": "2025-03-01T10:00:00+00:00", "reply_to": None},
        Mine("Ann", "hello", WHEN),
        namedtuple("Row", "speaker content ts")("Ann", "hello", WHEN),
        SimpleNamespace(user="Ann", message="hello", created_at=WHEN),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_is_written_as_people_write_it(message):
    assert as_messages([message]) == [HELLO]


def test_more_than_the_three():
    told = {"speaker": "Ann", "content": "hi", "ts": date(2025, 3, 1), "id": 7, "channel": "family", "reply_to": "6"}
    assert as_messages([told]) == [ChatMessage("Ann", "hi", "2025-03-01", message_id="7", channel="family", reply_to="6")]
    assert as_messages([("Ann", "hi", WHEN)], "work")[0].channel == "work"
    assert as_messages(iter([("Ann", "\ud83d", WHEN)]))[0].content == "\ufffd"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ([{"speaker": "Ann", "content": "hi"}], r"messages\[0\]: has no ts; a message is speaker, content and ts"),
        ([HELLO, {"speaker": "Ann", "content": "hi", "ts": "yesterday"}], r"messages\[1\]: ts: 'yesterday' is no time"),
        ([{"speaker": "Ann", "content": 5, "ts": WHEN}], r"messages\[0\]: content must be text, not int"),
        ([{"speaker": " ", "content": "", "ts": WHEN}], "speaker is empty"),
        ([{"speaker": "Ann", "content": "hi", "ts": True}], "ts must be a datetime or text, not bool"),
        ([{"speaker": "Ann", "content": "hi", "ts": WHEN, "sepaker": "x"}], "knows no key 'sepaker'; there are speaker"),
        ([("Ann", "hi")], "has 2 parts; write it as"),
        (["hello"], "is text alone"),
        ([5], "a int is no message"),
        (5, "give a list of messages, not one int"),
        ({"speaker": "Ann"}, "give a list of messages, not one dict"),
    ],
)
def test_what_is_no_message_is_one_clear_error(source, line):
    with pytest.raises(DataError, match=line):
        as_messages(source)
