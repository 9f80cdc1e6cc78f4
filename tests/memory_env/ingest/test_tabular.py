import json

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import ReadOptions, read_source, tabular


def written(tmp_path, text, name="chat.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_common_names_are_found_and_quoting_is_honoured(tmp_path):
    path = written(tmp_path, 'Date,From,Text,id\n2024-05-01 10:00,Ann,"a, ""b""\nc",7\n2024-05-01T10:05:00Z,Bo,d,8\n')
    (chat,) = tabular.read(path, ReadOptions())
    assert [(m.speaker, m.content, m.ts, m.message_id) for m in chat.messages] == [
        ("Ann", 'a, "b"\nc', "2024-05-01T10:00:00", "7"),
        ("Bo", "d", "2024-05-01T10:05:00+00:00", "8"),
    ]


def test_named_columns_delimiter_and_channels(tmp_path):
    path = written(tmp_path, "wer;was;wann;wo\nAnn;x;31.12.2024 10:00;a\nBo;y;31.12.2024 10:01;b\n")
    options = ReadOptions(columns={"speaker": "wer", "content": "was", "ts": "wann", "channel": "wo"})
    chats = tabular.read(path, options)
    assert [(chat.name, [m.ts for m in chat.messages]) for chat in chats] == [
        ("a", ["2024-12-31T10:00:00"]), ("b", ["2024-12-31T10:01:00"]),
    ]  # fmt: skip
    only = tabular.read(path, ReadOptions(columns=options.columns, channel="b"))
    assert [chat.name for chat in only] == ["b"]
    with pytest.raises(DataError, match="no channel 'c'"):
        tabular.read(path, ReadOptions(columns=options.columns, channel="c"))


def test_jsonl(tmp_path):
    lines = [{"user": "Ann", "message": "x", "time": 1714557600}, {"user": "Bo", "message": "y", "time": 1714557660123}]
    path = written(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n", "chat.jsonl")
    (chat,) = tabular.read(path, ReadOptions())
    assert [m.ts for m in chat.messages] == ["2024-05-01T10:00:00+00:00", "2024-05-01T10:01:00+00:00"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,body\nA,x\n", r"line 1: has no column for ts; it has name, body: name one, --column ts=NAME"),
        ("time,who,body\n2024-05-01,A,x\n", r"line 1: has no column for speaker"),
        ("time,name,body\n2024-05-01,A\n", r"line 2: has 2 fields, the header 3"),
        ('time,name,body\n2024-05-01,A,"x\ny"\n2024-05-01,B\n', r"line 4: has 2 fields"),
        ("time,name,body\nsoon,A,x\n", r"line 2: the time 'soon' can't be read"),
        ("time,name,body\n2024-05-01,,x\n", r"line 2: the speaker is empty"),
        ('time,name,body\n2024-05-01,A,"x\n', r"line 2: is no CSV"),
        ("time,name,body\n", r"holds no message"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        tabular.read(written(tmp_path, text), ReadOptions())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"user":"A","text":"x","ts":"2024-05-01"}\n{"user":"A"\n', r"line 2: not valid JSON"),
        ('{"user":"A","text":"x","ts":"2024-05-01"}\n[1]\n', r"line 2: is not an object"),
        ('{"user":"A","text":"x","ts":"2024-05-01"}\n{"user":"A","ts":"2024-05-01"}\n', r"line 2: has no 'text'"),
        ('{"user":"A","text":{"a":1},"ts":"2024-05-01"}\n', r"line 1: 'text' must be a text"),
        ('{"user":"A","text":"x"}\n', r"line 1: has no column for ts"),
    ],
)
def test_what_is_wrong_in_jsonl_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        tabular.read(written(tmp_path, text, "chat.jsonl"), ReadOptions())


def test_a_named_column_that_is_not_there_is_named(tmp_path):
    path = written(tmp_path, "time,name,body\n2024-05-01,A,x\n")
    with pytest.raises(DataError, match="has no column 'Wer'"):
        tabular.read(path, ReadOptions(columns={"speaker": "Wer"}))
    with pytest.raises(DataError, match="--column colour: there is no such column"):
        tabular.read(path, ReadOptions(columns={"colour": "name"}))


def test_a_wrong_encoding_is_named_with_its_line(tmp_path):
    path = written(tmp_path, "time,name,body\n2024-05-01,A,x\n2024-05-01,A,caf\xe9\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"chat.csv: line 3: byte 0xe9 is not UTF-8; .*iconv"):
        tabular.read(path, ReadOptions())


def test_utf16_and_windows_line_ends_are_read(tmp_path):
    path = written(tmp_path, "time,name,body\r\n2024-05-01,A,é\r\n".encode("utf-16"))
    assert read_source(path).chats[0].messages[0].content == "é"


def test_a_name_that_changes_under_one_id_is_one_member(tmp_path):
    path = written(tmp_path, "time,name,body,user_id\n2024-05-01,Bo,x,1\n2024-05-02,Bob,y,1\n")
    (chat,) = tabular.read(path, ReadOptions())
    assert {m.speaker for m in chat.messages} == {"Bob"} and chat.former_names == {"Bob": ["Bo"]}


def test_what_spreadsheets_make_of_a_table(tmp_path):
    """Excel's own first line, dates without a time, names with spaces, a quoted line end."""
    text = 'sep=;\r\nDate;From;Text;Message ID\r\n31.12.2024;Ann;"a\r\nb";7\r\n01.01.2025;Bo;c;8\r\n'
    (chat,) = tabular.read(written(tmp_path, text.encode("utf-8-sig")), ReadOptions())
    assert [(m.speaker, m.content, m.ts, m.message_id) for m in chat.messages] == [
        ("Ann", "a\nb", "2024-12-31T00:00:00", "7"), ("Bo", "c", "2025-01-01T00:00:00", "8"),
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"line 4: has 2 fields, the header 3"):
        tabular.read(written(tmp_path, "sep=;\nDate;From;Text\n31.12.2024;Ann;a\n31.12.2024;Bo\n"), ReadOptions())


def test_times_that_name_utc_in_words(tmp_path):
    (chat,) = tabular.read(written(tmp_path, "time,name,text\n2024-05-01 10:00:00 UTC,A,x\n"), ReadOptions())
    assert chat.messages[0].ts == "2024-05-01T10:00:00+00:00"


def test_a_message_without_a_text_is_counted_in_jsonl_as_in_csv(tmp_path):
    lines = '{"user":"A","text":null,"ts":1714557600}\n{"user":"B","text":"y \\ud83d","ts":1714557601}\n'
    path = written(tmp_path, lines, "c.jsonl")
    (chat,) = tabular.read(path, ReadOptions())
    assert [m.content for m in chat.messages] == ["y \ufffd"] and chat.tally["empty messages"] == 1
