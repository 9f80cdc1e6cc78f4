"""Telegram, Slack and Discord."""

import json

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import ReadOptions, discord, read_networks, read_source, recognise, slack, telegram, to_network
from memory_env.ingest.json_cursor import JsonCursor

OPTIONS = ReadOptions()


def cursor(document, where="result.json"):
    return JsonCursor([json.dumps(document)], where)


def tally(chat):
    return {key: count for key, count in chat.tally.items() if count}


TELEGRAM = {
    "name": "Climbers",
    "type": "private_group",
    "id": 5,
    "messages": [
        {"id": 1, "type": "service", "date": "2024-05-01T10:00:00", "action": "create_group", "actor": "Ali"},
        {"id": 2, "type": "service", "date": "2024-05-01T10:00:01", "action": "remove_members", "actor": "Ali"},
        {"id": 3, "type": "message", "date": "2024-05-01T12:00:00", "date_unixtime": "1714557600", "from": "Ali",
         "from_id": "user1", "text": ["see ", {"type": "link", "text": "http://x"}, "!"]},
        {"id": 4, "type": "message", "date": "2024-05-01T12:01:00", "date_unixtime": "1714557660", "from": "Sam",
         "from_id": "user2", "text": "ok", "reply_to_message_id": 3, "edited": "2024-05-01T12:02:00"},
        {"id": 5, "type": "message", "date": "2024-05-01T12:03:00", "date_unixtime": "1714557780", "from": "Alice",
         "from_id": "user1", "text": "", "photo": "photos/1.jpg"},
        {"id": 6, "type": "message", "date": "2024-05-01T12:04:00", "date_unixtime": "1714557840", "from": "RemindBot",
         "from_id": "user9", "text": "climb!"},
        {"id": 7, "type": "message", "date": "2024-05-01T12:05:00", "date_unixtime": "1714557900", "from": None,
         "from_id": "user7", "text": "bye"},
        {"id": 8, "type": "message", "date": "2024-05-01T12:06:00", "date_unixtime": "1714557960", "from": "Sam",
         "from_id": "user8", "text": "another Sam", "media_type": "voice_message", "file": "v.ogg"},
        {"id": 9, "type": "message", "date": "2024-05-01T12:06:00", "date_unixtime": "1714557960", "from": "Sam",
         "from_id": "user2", "text": ""},
    ],
}  # fmt: skip


def test_a_telegram_export_exactly():
    (chat,) = telegram.parse(cursor(TELEGRAM), OPTIONS)
    assert [(m.speaker, m.speaker_id, m.content, m.ts, m.reply_to, m.message_id) for m in chat.messages] == [
        ("Alice", "user1", "see http://x!", "2024-05-01T12:00:00+02:00", "", "3"),
        ("Sam", "user2", "ok", "2024-05-01T12:01:00+02:00", "3", "4"),
        ("Alice", "user1", "[photo]", "2024-05-01T12:03:00+02:00", "", "5"),
        ("Deleted account 7", "user7", "bye", "2024-05-01T12:05:00+02:00", "", "7"),
        ("Sam", "user8", "[voice message] another Sam", "2024-05-01T12:06:00+02:00", "", "8"),
    ]
    assert tally(chat) == {
        "joins": 1, "leaves": 1, "edited": 1, "media placeholders": 2, "messages of bots": 1,
        "messages of deleted accounts": 1, "renamed members": 1, "members who share a name": 2, "empty messages": 1,
    }  # fmt: skip
    assert chat.former_names == {"Alice": ["Ali"]}


def test_a_renamed_member_is_one_member_and_two_of_one_name_are_two():
    (chat,) = telegram.parse(cursor(TELEGRAM), OPTIONS)
    network = to_network(chat)
    assert set(network.speakers) == {"Alice", "Sam", "Sam (2)", "Deleted account 7"}
    by_id = {message.speaker_id: message.speaker for message in network.messages}
    assert by_id["user2"] != by_id["user8"] and by_id["user1"] == "Alice"


def test_bots_are_kept_when_asked_for():
    (chat,) = telegram.parse(cursor(TELEGRAM), ReadOptions(keep_bots=True))
    assert "RemindBot" in {message.speaker for message in chat.messages}


def test_an_account_export_gives_one_network_per_chat(tmp_path):
    path = tmp_path / "result.json"
    second = {**TELEGRAM, "name": "climbers!", "id": 6}
    empty = {**TELEGRAM, "name": "silent", "messages": []}
    path.write_text(json.dumps({"chats": {"list": [TELEGRAM, second, empty]}}))
    networks = read_networks(path)
    assert [network.network_id for network in networks] == ["climbers", "climbers_2"]


def test_a_telegram_date_that_cannot_be_read_is_named():
    broken = {"name": "x", "messages": [{"id": 1, "type": "message", "date": "yesterday", "from": "A", "text": "x"}]}
    with pytest.raises(DataError, match=r"result.json: messages\[0\].date can't be read"):
        telegram.parse(cursor(broken), OPTIONS)
    with pytest.raises(DataError, match=r"messages\[0\].text must be"):
        telegram.parse(cursor({"messages": [{"id": 1, "type": "message", "from": "A", "text": {}}]}), OPTIONS)


def slack_export(folder, days):
    (folder / "general").mkdir(parents=True)
    (folder / "users.json").write_text(
        json.dumps(
            [
                {"id": "U1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann Lee"}},
                {"id": "U2", "name": "bob", "profile": {"display_name": "", "real_name": "Bob Ray"}},
                {"id": "U3", "name": "ann2", "profile": {"display_name": "Ann"}},
                {"id": "U4", "name": "ci", "is_bot": True, "profile": {"real_name": "CI"}},
            ]
        )
    )
    for day, messages in days.items():
        (folder / "general" / f"{day}.json").write_text(json.dumps(messages))


def test_a_slack_export_exactly(tmp_path):
    slack_export(
        tmp_path,
        {
            "2024-05-02": [{"type": "message", "user": "U3", "text": "later", "ts": "1714640400.000100"}],
            "2024-05-01": [
                {"type": "message", "subtype": "channel_join", "user": "U1", "text": "joined", "ts": "1714550400.000001"},
                {"type": "message", "user": "U1", "text": "hi <@U2>, see <#C1|news> &amp; <http://x|this> <!here>",
                 "ts": "1714550400.000100"},
                {"type": "message", "user": "U2", "text": "ok", "ts": "1714550460.000200", "thread_ts": "1714550400.000100",
                 "edited": {"user": "U2"}},
                {"type": "message", "user": "U4", "bot_id": "B1", "text": "build green", "ts": "1714550461.000200"},
                {"type": "message", "subtype": "tombstone", "text": "This message was deleted.", "ts": "1714550462.0"},
                {"type": "message", "user": "U1", "text": "", "files": [{"name": "plan.pdf"}], "ts": "1714550463.0"},
            ],
        },
    )  # fmt: skip
    (chat,) = slack.read(tmp_path, OPTIONS)
    assert [(m.speaker, m.content, m.ts, m.reply_to, m.edited) for m in chat.messages] == [
        ("Ann", "hi @Bob Ray, see #news & this (http://x) @here", "2024-05-01T08:00:00+00:00", "", False),
        ("Bob Ray", "ok", "2024-05-01T08:01:00+00:00", "1714550400.000100", True),
        ("Ann", "[file plan.pdf]", "2024-05-01T08:01:03+00:00", "", False),
        ("Ann", "later", "2024-05-02T09:00:00+00:00", "", False),
    ]
    assert tally(chat) == {
        "joins": 1, "messages of bots": 1, "deleted": 1, "media placeholders": 1, "edited": 1, "members who share a name": 2,
    }  # fmt: skip
    assert read_source(tmp_path).format == "slack"
    with pytest.raises(DataError, match="no channel 'random'"):
        slack.read(tmp_path, ReadOptions(channel="random"))


def test_a_broken_slack_day_is_named(tmp_path):
    slack_export(tmp_path, {"2024-05-01": [{"type": "message", "user": "U1", "text": "x", "ts": "soon"}]})
    with pytest.raises(DataError, match=r"2024-05-01.json: \[0\].ts can't be read"):
        slack.read(tmp_path, OPTIONS)
    (tmp_path / "general" / "2024-05-01.json").write_text('[{"type": "message", "te')
    with pytest.raises(DataError, match="2024-05-01.json: not valid JSON at column"):
        slack.read(tmp_path, OPTIONS)


def test_a_discord_export_exactly():
    author = {"id": "1", "name": "ann", "nickname": "Ann"}
    document = {
        "guild": {"id": "9", "name": "Game"},
        "channel": {"id": "8", "name": "plans"},
        "messages": [
            {"id": "1", "type": "GuildMemberJoin", "timestamp": "2024-05-01T10:00:00+00:00", "author": author, "content": ""},
            {"id": "2", "type": "Default", "timestamp": "2024-05-01T10:00:00.123+02:00", "timestampEdited": None,
             "content": "raid at 8", "author": author, "attachments": [], "reference": None},
            {"id": "3", "type": "Reply", "timestamp": "2024-05-01T10:01:00+02:00", "timestampEdited": "2024-05-01T10:02:00+02:00",
             "content": "", "author": {"id": "2", "name": "bo"}, "attachments": [{"fileName": "map.png"}],
             "reference": {"messageId": "2"}},
            {"id": "4", "type": "Default", "timestamp": "2024-05-01T10:03:00+02:00", "content": "beep",
             "author": {"id": "3", "name": "bot", "isBot": True}},
        ],
    }  # fmt: skip
    chat = discord.parse(cursor(document, "plans.json"), OPTIONS)
    assert [(m.speaker, m.content, m.ts, m.reply_to, m.edited, m.channel) for m in chat.messages] == [
        ("Ann", "raid at 8", "2024-05-01T10:00:00.123000+02:00", "", False, "plans"),
        ("bo", "[attachment map.png]", "2024-05-01T10:01:00+02:00", "2", True, "plans"),
    ]
    assert tally(chat) == {"joins": 1, "media placeholders": 1, "edited": 1, "messages of bots": 1}
    document["messages"][1]["timestamp"] = "soon"
    with pytest.raises(DataError, match=r"plans.json: messages\[1\].timestamp can't be read"):
        discord.parse(cursor(document, "plans.json"), OPTIONS)
    del document["messages"][1]["author"]
    with pytest.raises(DataError, match=r"messages\[1\].author is missing"):
        discord.parse(cursor(document, "plans.json"), OPTIONS)


def message(number, name, identity, text, **more):
    return {"id": number, "type": "message", "date": f"2024-05-01T12:{number:02d}:00", "from": name, "from_id": identity,
            "text": text, **more}  # fmt: skip


def read_telegram(*messages, **header):
    return telegram.parse(cursor({"name": "x", "id": 7, **header, "messages": list(messages)}), OPTIONS)


def test_only_a_bots_name_makes_a_bot():
    people = ["Tom Talbot", "TALBOT", "Abbot", "Bo", "Robotham"]
    bots = ["RemindBot", "Quiz bot", "GIFBot", "quiz_bot", "Bot", "QUIZ BOT"]
    (chat,) = read_telegram(*(message(n, name, f"user{n}", "x") for n, name in enumerate(people + bots)))
    assert [m.speaker for m in chat.messages] == people and chat.tally["messages of bots"] == len(bots)


def test_an_edit_of_1970_is_none_and_half_an_emoji_is_mended():
    (chat,) = read_telegram(
        message(1, "Bo", "user2", "a", edited="1970-01-01T01:00:00"), message(2, "Bo", "user2", None),
        message(3, "Bo", "user2", ["x ", {"type": "bold", "text": "\ud83d"}]),
    )  # fmt: skip
    assert [(m.content, m.edited) for m in chat.messages] == [("a", False), ("x \ufffd", False)]


def test_chats_of_one_name_are_apart_and_chats_that_were_left_are_read():
    one = {"name": "Ann", "id": 1, "messages": [message(5, "Ann", "user1", "a")]}
    two = {"name": "Ann", "id": 2, "messages": [message(5, "Ann", "user9", "b")]}
    left = {"messages": [message(5, "Zoe", "user7", "c")], "id": 3, "name": "Left"}
    document = {"sessions": {"list": []}, "chats": {"about": "x", "list": [one, two]}, "left_chats": {"list": [left]}}
    found = [(m.channel, m.channel_id, m.content) for chat in telegram.parse(cursor(document), OPTIONS) for m in chat.messages]
    assert found == [("Ann", "1", "a"), ("Ann (2)", "2", "b"), ("Left", "3", "c")]


def test_an_export_inside_a_folder_inside_an_archive_is_found(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("ChatExport_2024-05-01/result.json", json.dumps(TELEGRAM))
        archive.writestr("ChatExport_2024-05-01/css/style.css", "x")
    (network,) = read_networks(tmp_path / "export.zip")
    assert network.network_id == "climbers"


def test_a_long_export_is_recognised_from_its_beginning(tmp_path):
    path = tmp_path / "result.json"
    text = json.dumps({**TELEGRAM, "messages": TELEGRAM["messages"] * 3})
    path.write_text(text[:-40])
    assert recognise(path) == "telegram"
    with pytest.raises(DataError, match="cut short"):
        read_networks(path)


def test_slack_guests_shared_messages_and_the_ids_of_channels(tmp_path):
    slack_export(
        tmp_path,
        {
            "2024-05-01": [
                {"type": "message", "user": "U7", "text": "x", "ts": "1714550400.0", "user_profile": {"real_name": "Gus"}},
                {"type": "message", "user": "U1", "text": "", "ts": "1714550401.0", "attachments": [{"text": "a <@U2>"}, {}]},
            ]
        },
    )
    (tmp_path / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general"}]))
    (chat,) = slack.read(tmp_path, OPTIONS)
    assert [(m.speaker, m.content, m.channel, m.channel_id) for m in chat.messages] == [
        ("Gus", "x", "general", "C1"), ("Ann", "[shared: a @Bob Ray]", "general", "C1"),
    ]  # fmt: skip


def test_discord_forwards_and_a_header_after_the_messages():
    told = {"id": "1", "type": "Default", "timestamp": "2024-05-01T10:00:00+00:00", "content": "",
            "author": {"id": "1", "name": "ann"}, "forwardedMessage": {"content": "hi"}}  # fmt: skip
    chat = discord.parse(cursor({"messages": [told], "channel": {"id": "8", "name": "plans"}}), OPTIONS)
    assert [(m.content, m.channel, m.channel_id) for m in chat.messages] == [("[forwarded] hi", "plans", "8")]
