"""Reading JSON piece by piece says what reading it whole says, of good text and of bad."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.datafile import DataError, parse_json
from memory_env.ingest.json_cursor import JsonCursor
from memory_env.ingest.text_stream import decoded, lines_of, well_formed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def pieces(text, size):
    return [text[start : start + size] for start in range(0, len(text), size)]


def walked(cursor):
    """The next value, taken apart as far as it goes."""
    if cursor.next_kind() == "{":
        return {key: walked(cursor) for key in cursor.members()}
    if cursor.next_kind() == "[":
        return [walked(cursor) for _ in cursor.elements()]
    return cursor.value()


@given(VALUES, st.integers(1, 9), st.sampled_from([None, 1]))
def test_what_is_read_in_pieces_is_what_is_read_whole(value, size, indent):
    text = json.dumps(value, indent=indent)
    for take in (walked, JsonCursor.value):
        cursor = JsonCursor(pieces(text, size), "x")
        assert take(cursor) == value
        cursor.end()


@given(VALUES, st.integers(1, 9), st.data())
def test_damaged_text_is_refused_where_reading_it_whole_refuses_it(value, size, data):
    text = json.dumps({"a": value, "b": [1, "x"]}, indent=1)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = data.draw(st.sampled_from([text[:at], text[:at] + "}" + text[at:], text[:at] + "#" + text[at + 1 :]]))
    try:
        json.loads(damaged)
    except ValueError:
        with pytest.raises(DataError) as whole:
            parse_json(damaged, "x")
        with pytest.raises(DataError) as streamed:
            cursor = JsonCursor(pieces(damaged, size), "x")
            cursor.value()
            cursor.end()
        assert str(streamed.value) == str(whole.value)
        with pytest.raises(DataError, match="x: "):
            cursor = JsonCursor(pieces(damaged, size), "x")
            walked(cursor)
            cursor.end()


def test_a_value_of_another_kind_is_named_with_its_place():
    with pytest.raises(DataError, match=r"x: messages is an object; it must be a list"):
        list(JsonCursor(['{"a": 1}'], "x").elements("messages"))
    with pytest.raises(DataError, match=r"x: messages\[0\] is null; it must be an object"):
        list(JsonCursor(["null"], "x").members("messages[0]"))


def test_depth_that_no_one_writes_is_refused():
    for read in (lambda text: JsonCursor([text], "x").value(), lambda text: parse_json(text, "x")):
        with pytest.raises(DataError, match="x: line 3: is nested over 200 deep"):
            read('{"a": 1,\n"b": "[[[",\n"c":' + "[" * 200_000)


@given(st.lists(st.sampled_from(["a", "\n", "\r", "\r\n", "é", "\u2028", "🎉"]), max_size=30), st.integers(2, 7))
def test_text_in_pieces_is_the_text_with_line_ends_made_one(parts, size):
    text = "x" + "".join(parts)
    wanted = text.replace("\r\n", "\n").replace("\r", "\n")
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        data = text.encode(encoding)
        chunks = [data[:4], *(data[start : start + size] for start in range(4, len(data), size))]
        read = list(decoded(chunks, "x"))
        assert "".join(read) == wanted
        assert list(lines_of(read)) == wanted.split("\n")


@given(st.integers(0, 40), st.integers(3, 50))
def test_a_wrong_byte_is_named_with_its_line_wherever_the_pieces_end(line, size):
    data = b"caf\xc3\xa9\n" * line + b"caf\xe9\n" + b"more\n" * 5
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    with pytest.raises(DataError, match=rf"x: line {line + 1}: byte 0xe9 is not UTF-8"):
        list(decoded(chunks, "x"))


@given(st.text(st.characters(codec=None), max_size=20))
def test_every_text_can_be_written_once_it_is_well_formed(text):
    assert well_formed(text).encode().decode() == well_formed(text)


def test_half_an_emoji_is_replaced_and_a_whole_one_joined():
    assert well_formed("a\ud83db") == "a\ufffdb" and well_formed("\ud83c\udf89 é") == "🎉 é"
