"""Words that stand elsewhere than in a message's text: forwards, shares, polls, places, cards, mentions. In every reader alike."""

import json
import unicodedata
import zipfile

import pytest

from memory_env.ingest import read_networks, read_source


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def read(path, document):
    write(path, document)
    return read_source(path)


def telegram(tmp_path, *things):
    messages = [
        {"id": n, "type": "message", "date": f"2024-06-01T09:{n:02d}:00", "from": "Mia", "from_id": "user1", "text": "", **thing}
        for n, thing in enumerate(things)
    ]
    (chat,) = read(tmp_path / "result.json", {"name": "Hikers", "id": 7, "messages": messages}).chats
    return [message.content for message in chat.messages]


def test_telegram(tmp_path):
    assert telegram(
        tmp_path,
        {"text": "I fear heights", "forwarded_from": None},
        {"text": "so do I", "forwarded_from": "Lee"},
        {"forwarded_from": None, "photo": "p.jpg"},
        {"poll": {"question": "Which hut?", "answers": [{"text": "North", "voters": 2}, {"text": "South", "voters": 0}]}},
        {"poll": {"question": ["Which ", {"type": "bold", "text": "day"}, "?"], "answers": []}},
        {"location_information": {"latitude": 46.5, "longitude": 8.1}},
        {"location_information": {"latitude": 46.5, "longitude": 8.1}, "place_name": "Hut A", "address": "Pass Road"},
        {"contact_information": {"first_name": "Guide", "last_name": "Ueli", "phone_number": "+41 1"}, "text": "call him"},
        {"todo_list": {"title": "Pack", "answers": [{"text": "rope", "id": 1}, {"text": "tea", "id": 2}]}},
        {"game_title": "Chess"},
        {"text_entities": [{"type": "plain", "text": "only "}, {"type": "bold", "text": "entities"}], "text": None},
    ) == [
        "[forwarded] I fear heights",
        "[forwarded from Lee] so do I",
        "[forwarded] [photo]",
        "[poll: Which hut? Options: North; South]",
        "[poll: Which day?]",
        "[location: 46.5, 8.1]",
        "[location: Hut A, Pass Road]",
        "[contact: Guide Ueli, +41 1] call him",
        "[to-do list: Pack; rope; tea]",
        "[game: Chess]",
        "only entities",
    ]  # fmt: skip


def slack(tmp_path, *things, flag=True):
    users = [{"id": "U1", "profile": {"display_name": "Mia"}}, {"id": "U2", "profile": {"display_name": "Lee"}}]
    day = [{"type": "message", "user": "U1", "text": "", "ts": f"1717232400.{n:06d}", **thing} for n, thing in enumerate(things)]
    (tmp_path / "hikers").mkdir(exist_ok=True)
    (tmp_path / "users.json").write_text(json.dumps(users))
    (tmp_path / "hikers" / "2024-06-01.json").write_text(json.dumps(day))
    (chat,) = read_source(tmp_path).chats
    return chat


def rich(*elements):
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}]


def test_slack(tmp_path):
    listed = {"type": "rich_text_list", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": item}]}
                                                     for item in ("rope", "tea")]}  # fmt: skip
    link = {"from_url": "https://hut.example", "title": "Hut A", "text": "A hut."}
    chat = slack(
        tmp_path,
        {"blocks": rich({"type": "text", "text": "ask "}, {"type": "user", "user_id": "U2"}, {"type": "emoji", "name": "wave"})},
        {"blocks": [{"type": "rich_text", "elements": [listed]}]},
        {"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "Plan"}}, {"type": "divider"},
                    {"type": "section", "fields": [{"type": "mrkdwn", "text": "6 am"}, {"type": "mrkdwn", "text": "bus"}]}]},
        {"text": "see", "attachments": [{"is_msg_unfurl": True, "author_name": "Lee", "text": "Bus at 6", "fallback": "Lee: Bus"}]},
        {"text": "<https://hut.example>", "attachments": [link]},
        {"attachments": [{"title": "Alert", "fields": [{"title": "Snow", "value": "2 m"}]}]},
        {"text": "ask <@U9>, not <@U8>"},
        {"user": "U9", "text": "me?", "user_profile": {"display_name": "Guest"}},
    )  # fmt: skip
    assert [message.content for message in chat.messages] == [
        "ask @Lee:wave:", "rope\ntea", "Plan\n6 am bus", "see [shared: Bus at 6]", "https://hut.example",
        "[shared: Alert - Snow: 2 m]", "ask @Guest, not @U8", "me?",
    ]  # fmt: skip


def test_what_slack_says_was_deleted_is_withdrawn_by_its_id(tmp_path):
    chat = slack(tmp_path, {"text": "x"}, {"subtype": "tombstone", "text": "This message was deleted."})
    assert len(chat.messages) == 1 and chat.withdrawn == {"1717232400.000001"}


def discord(tmp_path, *things):
    author = {"id": "1", "name": "mia"}
    messages = [
        {"id": str(n), "type": "Default", "timestamp": f"2024-06-01T09:{n:02d}:00+00:00", "content": "", "author": author, **thing}
        for n, thing in enumerate(things)
    ]
    (chat,) = read(tmp_path / "c.json", {"channel": {"id": "8", "name": "hikers"}, "messages": messages}).chats
    return [message.content for message in chat.messages]


def test_discord(tmp_path):
    assert discord(
        tmp_path,
        {"forwardedMessage": {"content": "", "attachments": [{"fileName": "a.png"}], "stickers": [{"name": "wave"}]}},
        {"content": "why?", "forwardedMessage": {"content": "ask <@2>", "mentions": [{"id": "2", "name": "lee"}]}},
        {"content": "hi <@2> <@!3> <:hut:99>", "mentions": [{"id": "2", "name": "lee", "nickname": "Lee"}]},
        {"content": "https://hut.example/a", "embeds": [{"url": "https://hut.example/a", "title": "Hut"}]},
        {"content": "plan", "embeds": [{"title": "Plan", "description": "two days", "fields": [{"name": "bus", "value": "6"}]}]},
        {"poll": {"question": {"text": "Which hut?"}, "answers": [{"poll_media": {"text": "North"}}, {"text": "South"}]}},
    ) == [
        "[forwarded] [attachment a.png] [sticker wave]", "[forwarded] ask @lee why?", "hi @Lee @3 :hut:",
        "https://hut.example/a", "plan [embed Plan - two days - bus: 6]", "[poll: Which hut? Options: North; South]",
    ]  # fmt: skip


def test_a_json_that_was_sent_in_a_chat_lies_beside_or_below_the_export(tmp_path):
    told = {"id": 1, "type": "message", "date": "2024-06-01T09:00:00", "from": "Mia", "from_id": "user1", "text": "hi"}
    export = {"name": "Hikers", "id": 7, "messages": [told]}
    write(tmp_path / "e" / "files" / "result.json", {"score": 1})
    write(tmp_path / "e" / "a.json", ["not", "a chat"])
    write(tmp_path / "e" / "result.json", export)
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
        for file in (tmp_path / "e").rglob("*.json"):
            archive.write(file, file.relative_to(tmp_path))
    for path in (tmp_path / "e", tmp_path / "e.zip"):
        assert [m.content for network in read_networks(path) for m in network.messages] == ["hi"]


@pytest.mark.parametrize("flag", [True, False])
def test_names_in_an_archive_are_utf8_whether_it_says_so_or_not(tmp_path, flag):
    name = "wandern-gebirge-ä/2024-06-01.json"
    data = {
        "users.json": [{"id": "U1", "profile": {"display_name": "Mia"}}],
        "channels.json": [{"id": "C5", "name": "wandern-gebirge-ä"}],
        name: [{"type": "message", "user": "U1", "text": "hallo", "ts": "1717232400.1"}],
    }
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        for member, value in data.items():
            archive.writestr(member, json.dumps(value))
    if not flag:
        raw = (tmp_path / "s.zip").read_bytes()
        # The flag is bit 11 of the general purpose bits, 6 bytes behind a local header's mark and 8 behind a central one's.
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = raw.find(mark)
            while at >= 0:
                bits = int.from_bytes(raw[at + offset : at + offset + 2], "little") & ~0x800
                raw = raw[: at + offset] + bits.to_bytes(2, "little") + raw[at + offset + 2 :]
                at = raw.find(mark, at + 4)
        (tmp_path / "s.zip").write_bytes(raw)
        assert all(not info.flag_bits & 0x800 for info in zipfile.ZipFile(tmp_path / "s.zip").infolist())
    (chat,) = read_source(tmp_path / "s.zip").chats
    assert (chat.name, chat.channel_id, chat.messages[0].content) == ("wandern-gebirge-ä", "C5", "hallo")


def test_names_that_differ_in_their_unicode_form_alone_are_one_member_in_every_reader(tmp_path):
    one, two = unicodedata.normalize("NFC", "Zoë Ångström"), unicodedata.normalize("NFD", "Zoë Ångström")
    (tmp_path / "w.txt").write_text(f"31/12/24, 10:00 - {two}: a\n31/12/24, 10:01 - {one}: b\n")
    (tmp_path / "t.csv").write_text(f"ts,speaker,text\n2024-01-01,{two},a\n2024-01-02,{one},b\n")
    for file in ("w.txt", "t.csv"):
        (network,) = read_networks(tmp_path / file)
        assert network.speakers == (one,)
