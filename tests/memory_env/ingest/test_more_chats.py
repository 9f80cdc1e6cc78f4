"""Messenger, Matrix, Signal, Teams, IRC, transcripts and JSON lists."""

import json
import zipfile

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import read_networks, read_source, recognise

NINE = 1_717_232_400_000  # 2024-06-01T09:00:00Z in milliseconds


def read(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return read_source(path)


def told(chat):
    return [(m.speaker, m.content) for m in chat.messages]


def counted(chat):
    return {key: count for key, count in chat.tally.items() if count}


def as_meta_writes(text):
    return text.encode().decode("latin-1")


THREAD = {
    "title": as_meta_writes("Ausflüge"),
    "thread_path": "inbox/trips_1",
    "participants": [{"name": "Mia"}, {"name": as_meta_writes("Zoë")}],
    "messages": [
        {"sender_name": "Mia", "timestamp_ms": NINE + 5000, "type": "Unsubscribe", "content": "Lee left the group."},
        {"sender_name": as_meta_writes("Zoë"), "timestamp_ms": NINE + 4000, "content": as_meta_writes("schön 👍")},
        {"sender_name": "Mia", "timestamp_ms": NINE + 3000, "photos": [{"uri": "a.jpg"}, {"uri": "b.jpg"}], "content": "look"},
        {"sender_name": "Mia", "timestamp_ms": NINE + 2000, "is_unsent": True},
        {"sender_name": "Mia", "timestamp_ms": NINE + 1000, "share": {"link": "http://hut", "share_text": "Hut"}},
        {"sender_name": "Mia", "timestamp_ms": NINE, "content": "hi"},
    ],
}


def test_messenger_and_instagram(tmp_path):
    source = read(tmp_path / "message_1.json", THREAD)
    (chat,) = source.chats
    assert (source.format, chat.name, chat.channel_id) == ("messenger", "Ausflüge", "inbox/trips_1")
    assert told(chat) == [("Mia", "hi"), ("Mia", "[shared: Hut http://hut]"), ("Mia", "look [photo] [photo]"), ("Zoë", "schön 👍")]
    assert chat.messages[0].ts == "2024-06-01T09:00:00+00:00"
    assert counted(chat) == {"deleted": 1, "media placeholders": 2, "leaves": 1}


def test_a_messenger_download_holds_threads_of_several_files(tmp_path):
    older = {**THREAD, "messages": [{"sender_name": "Mia", "timestamp_ms": NINE - 9000, "content": "first"}]}
    other = {**THREAD, "title": "Other", "thread_path": "inbox/other_2", "messages": THREAD["messages"][-1:]}
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for name, document in (("trips_1/message_1", THREAD), ("trips_1/message_2", older), ("other_2/message_1", other)):
            archive.writestr(f"messages/inbox/{name}.json", json.dumps(document))
        archive.writestr("messages/autofill.json", "{}")
    chats = {chat.name: [text for _, text in told(chat)] for chat in read_source(tmp_path / "d.zip").chats}
    assert chats["Ausflüge"][:2] == ["first", "hi"] and chats["Other"] == ["hi"]


def test_messengers_encrypted_chats(tmp_path):
    document = {"participants": ["Mia", "Zoë"], "threadName": "Zoë_7", "messages": [
        {"senderName": "Zoë", "text": "hi", "timestamp": NINE + 1, "isUnsent": False, "media": [], "type": "text"},
        {"senderName": "Mia", "text": "", "timestamp": NINE, "isUnsent": False, "media": [{"uri": "x.mp4"}], "type": "media"},
    ]}  # fmt: skip
    assert told(read(tmp_path / "Zoë_7.json", document).chats[0]) == [("Mia", "[media]"), ("Zoë", "hi")]


def event(number, content, kind="m.room.message", sender="@mia:hut.example", **more):
    return {"type": kind, "room_id": "!r", "sender": sender, "content": content, "origin_server_ts": NINE + 1000 * number,
            "event_id": f"$e{number}", **more}  # fmt: skip


def test_matrix(tmp_path):
    room = {"room_name": "Hikers", "messages": [
        event(0, {"membership": "join", "displayname": "Mia K"}, "m.room.member", state_key="@mia:hut.example"),
        event(1, {"msgtype": "m.text", "body": "meet at 7"}),
        event(2, {"msgtype": "m.image", "body": "hut.png"}),
        event(3, {"msgtype": "m.text", "body": "> <@mia:hut.example> meet at 7\n\nok",
                  "m.relates_to": {"m.in_reply_to": {"event_id": "$e1"}}}, sender="@lee:hut.example"),
        event(4, {"msgtype": "m.text", "body": "* meet at 8", "m.new_content": {"msgtype": "m.text", "body": "meet at 8"},
                  "m.relates_to": {"rel_type": "m.replace", "event_id": "$e1"}}),
        event(5, {}, unsigned={"redacted_because": {"type": "m.room.redaction"}}),
        event(6, {"m.poll": {"question": {"m.text": [{"body": "Which?"}]},
                             "answers": [{"m.text": [{"body": "North"}]}, {"m.text": [{"body": "South"}]}]}}, "m.poll.start"),
        event(7, {"msgtype": "m.notice", "body": "beep"}, sender="@bot:hut.example"),
        event(8, {"msgtype": "m.text", "body": "bye"}, sender="@lee:hut.example"),
        event(9, {}, "m.room.redaction", redacts="$e8"),
    ]}  # fmt: skip
    source = read(tmp_path / "export.json", room)
    (chat,) = source.chats
    assert (source.format, chat.name, chat.channel_id) == ("matrix", "Hikers", "!r")
    assert told(chat) == [("Mia K", "meet at 8"), ("Mia K", "[hut.png]"), ("lee", "ok"), ("Mia K", "[poll: Which? Options: North; South]")]
    assert chat.messages[2].reply_to == "$e1" and chat.messages[0].edited and chat.withdrawn == {"$e5", "$e8"}
    assert counted(chat) == {"joins": 1, "edited": 1, "deleted": 2, "media placeholders": 1, "messages of bots": 1}


def test_signals_table_of_messages(tmp_path):
    rows = [
        {"id": "b", "conversationId": "g1", "type": "outgoing", "body": "ok", "sent_at": NINE + 1},
        {"id": "a", "conversationId": "g1", "type": "incoming", "body": "hi", "sent_at": NINE, "source": "+41", "sourceName": "Lee"},
        {"id": "c", "conversationId": "g2", "type": "incoming", "body": "", "attachments": [{"fileName": "a.pdf"}], "sent_at": NINE,
         "source": "+42", "sourceName": "Bo"},
        {"id": "d", "conversationId": "g1", "type": "group-v2-change", "sent_at": NINE},
        {"id": "e", "conversationId": "g1", "type": "incoming", "isErased": True, "sent_at": NINE, "source": "+41"},
    ]  # fmt: skip
    source = read(tmp_path / "signal.json", rows)
    first, second = source.chats
    assert source.format == "signal" and (first.channel_id, second.channel_id) == ("g1", "g2")
    assert told(first) == [("Lee", "hi"), ("me", "ok")] and told(second) == [("Bo", "[a.pdf]")]
    assert counted(first) == {"system messages": 1, "deleted": 1} and first.withdrawn == {"e"}


def test_signals_own_export(tmp_path):
    frames = [
        {"version": "1", "backupTimeMs": str(NINE)},
        {"recipient": {"id": "1", "self": {}}},
        {"recipient": {"id": "2", "contact": {"profileGivenName": "Lee", "profileFamilyName": "K"}}},
        {"recipient": {"id": "3", "group": {"snapshot": {"title": {"title": "Hikers"}}}}},
        {"chat": {"id": "9", "recipientId": "3"}},
        {"chatItem": {"chatId": "9", "authorId": "2", "dateSent": str(NINE), "incoming": {},
                      "standardMessage": {"text": {"body": "meet at 8"}}, "revisions": [{"chatId": "9"}]}},
        {"chatItem": {"chatId": "9", "authorId": "1", "dateSent": str(NINE + 1), "outgoing": {},
                      "standardMessage": {"attachments": [{"pointer": {"fileName": "map.png"}}]}}},
        {"chatItem": {"chatId": "9", "authorId": "2", "dateSent": str(NINE + 2), "remoteDeletedMessage": {}}},
        {"chatItem": {"chatId": "9", "authorId": "2", "dateSent": str(NINE + 3), "updateMessage": {}}},
    ]  # fmt: skip
    source = read(tmp_path / "main.jsonl", "\n".join(map(json.dumps, frames)))
    (chat,) = source.chats
    assert (source.format, chat.name) == ("signal", "Hikers")
    assert told(chat) == [("Lee K", "meet at 8"), ("me", "[map.png]")] and chat.messages[0].edited
    assert counted(chat) == {"edited": 1, "media placeholders": 1, "deleted": 1, "system messages": 1}


def graph(number, html, name="Mia", **more):
    return {"id": f"m{number}", "messageType": "message", "createdDateTime": f"2024-06-01T09:0{number}:00Z", "chatId": "19:a",
            "from": {"user": {"id": name.lower(), "displayName": name}}, "body": {"contentType": "html", "content": html},
            "attachments": [], **more}  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"value": rows}])
def test_teams_messages_of_the_graph_api(tmp_path, wrap):
    rows = [
        graph(2, "<p>see <at id=\"0\">Lee</at> &amp; <b>me</b></p><p>at 8</p>", lastEditedDateTime="2024-06-01T09:05:00Z"),
        graph(1, "<attachment id=\"m0\"></attachment><p>yes</p>", "Lee",
              attachments=[{"id": "m0", "contentType": "messageReference", "content": "{}"}, {"contentType": "reference", "name": "a.pdf"}]),
        {**graph(3, ""), "messageType": "systemEventMessage", "from": None},
        graph(4, "<p>secret</p>", deletedDateTime="2024-06-01T09:06:00Z"),
        {**graph(5, "beep"), "from": {"application": {"displayName": "CI"}}},
    ]  # fmt: skip
    source = read(tmp_path / "chat.json", wrap(rows))
    (chat,) = source.chats
    assert source.format == "teams" and told(chat) == [("Lee", "yes [file a.pdf]"), ("Mia", "see Lee & me\nat 8")]
    assert chat.messages[0].reply_to == "m0" and chat.messages[1].edited_at and chat.withdrawn == {"m4"}


def test_the_personal_export_of_teams_and_skype(tmp_path):
    row = {"id": "1", "displayName": "Lee", "originalarrivaltime": "2024-06-01T09:00:00Z", "messagetype": "RichText/Html",
           "content": "<p>hi <b>all</b></p>", "from": "8:lee"}  # fmt: skip
    call = {**row, "id": "2", "messagetype": "Event/Call"}
    document = {"userId": "8:mia", "conversations": [{"id": "19:x", "displayName": "Hikers", "MessageList": [row, call]}]}
    source = read(tmp_path / "messages.json", document)
    assert source.format == "teams" and source.chats[0].name == "Hikers" and told(source.chats[0]) == [("Lee", "hi all")]


IRC = {
    "irssi": "--- Log opened Sat Jun 01 23:58:00 2024\n23:58 -!- lee [l@h] has joined #hut\n23:58 <@mia> hi: all\n"
             "23:59  * lee waves\n--- Day changed Sun Jun 02 2024\n00:01 < lee> morning\n",
    "weechat": "2024-06-01 23:58:00\t-->\tlee (l@h) has joined #hut\n2024-06-01 23:58:10\t@mia\thi: all\n"
               "2024-06-01 23:59:00\t *\tlee waves\n2024-06-02 00:01:00\tlee\tmorning\n",
    "hexchat": "**** BEGIN LOGGING AT Sat Jun  1 23:57:00 2024\n\nJun 01 23:58:00 *\tlee has joined\n"
               "Jun 01 23:58:10 <mia>\thi: all\nJun 02 00:01:00 <lee>\tmorning\n",
}  # fmt: skip


@pytest.mark.parametrize("program", IRC)
def test_irc_logs(tmp_path, program):
    source = read(tmp_path / "hut.log", IRC[program])
    (chat,) = source.chats
    assert source.format == "irc"
    words = [(m.ts[:16], m.speaker, m.content) for m in chat.messages]
    assert words[0] == ("2024-06-01T23:58", "mia", "hi: all") and words[-1] == ("2024-06-02T00:01", "lee", "morning")
    if program != "hexchat":
        assert words[1] == ("2024-06-01T23:59", "lee", "* waves")
    assert chat.tally["joins"] == 1
    assert not chat.notes


def test_an_irc_log_that_does_not_say_the_day(tmp_path):
    log = "23:58 <mia> a\n00:01 <lee> b\n"
    (chat,) = read(tmp_path / "hut-2024-06-01.log", log).chats
    assert [m.ts for m in chat.messages] == ["2024-06-01T23:58:00", "2024-06-02T00:01:00"] and "next day is assumed" in chat.notes[0]
    with pytest.raises(DataError, match="line 1: no line says which day.*convert it to CSV"):
        read(tmp_path / "hut.log", log)


def test_a_transcript(tmp_path):
    source = read(tmp_path / "talk.txt", "Mia: hi: all\nLee K.: yes\nand more\nMia: see http://hut\n")
    (chat,) = source.chats
    assert source.format == "text"
    assert told(chat) == [("Mia", "hi: all"), ("Lee K.", "yes\nand more"), ("Mia", "see http://hut")]
    assert "no times" in chat.notes[0] and "Mia" in chat.notes[0]
    (network,) = read_networks(tmp_path / "talk.txt")
    assert len(network.messages) == len(chat.messages)


@pytest.mark.parametrize("words", ["Dear diary,\ntoday it rained.\n", "host: localhost\nport: 80\npath: /\n", "one line only\n"])
def test_what_is_no_chat_says_how_to_convert(tmp_path, words):
    (tmp_path / "x.txt").write_text(words)
    with pytest.raises(DataError, match="x.txt: is of no known format .*convert it to CSV or JSONL with the columns speaker, content, ts"):
        recognise(tmp_path / "x.txt")


def test_a_json_list_of_messages(tmp_path):
    rows = [{"sender": "Mia", "text": "hi", "timestamp": NINE}, {"sender": "Lee", "text": None, "timestamp": NINE + 1000}]
    for document in (rows, {"messages": rows}):
        source = read(tmp_path / "a.json", document)
        assert source.format == "json" and told(source.chats[0]) == [("Mia", "hi")]
    with pytest.raises(DataError, match="a.json: message 2: has no 'sender'"):
        read(tmp_path / "a.json", [rows[0], {"text": "x", "timestamp": NINE}])
    with pytest.raises(DataError, match="is JSON of no known layout .*convert it to CSV or JSONL"):
        read(tmp_path / "b.json", [{"a": 1}])


def test_a_table_with_columns_in_another_language(tmp_path):
    source = read(tmp_path / "t.csv", "sep=;\nDatum;Absender;Nachricht\n14.06.2024 18:00;Mia;hallo\n")
    assert told(source.chats[0]) == [("Mia", "hallo")] and source.chats[0].messages[0].ts == "2024-06-14T18:00:00"


def test_a_folder_of_discord_channels(tmp_path):
    def channel(name, identity):
        author = {"id": "1", "name": "mia"}
        told = {"id": "1", "type": "Default", "timestamp": "2024-06-01T09:00:00+00:00", "content": f"in {name}", "author": author}
        return {"channel": {"id": identity, "name": name}, "messages": [told]}

    for name, identity in (("plans", "1"), ("hut", "2")):
        (tmp_path / f"{name}.json").write_text(json.dumps(channel(name, identity)))
    (tmp_path / "notes.json").write_text("{}")
    assert sorted(chat.name for chat in read_source(tmp_path).chats) == ["hut", "plans"]
