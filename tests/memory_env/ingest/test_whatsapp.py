import zipfile

import pytest

from memory_env import DataError
from memory_env.ingest import ReadOptions, read_networks, whatsapp

ANDROID = """31/12/2024, 21:40 - Messages and calls are end-to-end encrypted. No one outside of this chat can read them.
31/12/2024, 21:40 - Alice created group "Trip: Leeds"
31/12/2024, 21:41 - Alice added Bob
31/12/2024, 21:42 - Alice: hello
second line: with a colon

fourth line
31/12/2024, 21:43 - Bob: <Media omitted>
31/12/2024, 21:44 - Bob: IMG-20241231-WA0001.jpg (file attached)
the view
31/12/2024, 21:45 - Bob: This message was deleted
31/12/2024, 21:46 - Alice: eight it is <This message was edited>
31/12/2024, 21:47 - Bob left
01/01/2025, 08:00 - ~ Eve: good morning
01/01/2025, 08:01 - Alice:
01/01/2025, 08:02 - Alice changed the subject from "a: b" to "c: d"
"""


def chat(text, **options):
    return whatsapp.parse(text.split("\n"), "chat.txt", "WhatsApp Chat with Family", ReadOptions(**options))


def test_an_android_export_exactly():
    read = chat(ANDROID)
    assert read.name == "Family"
    assert [(m.speaker, m.ts, m.content, m.edited) for m in read.messages] == [
        ("Alice", "2024-12-31T21:42:00", "hello\nsecond line: with a colon\n\nfourth line", False),
        ("Bob", "2024-12-31T21:43:00", "[media]", False),
        ("Bob", "2024-12-31T21:44:00", "[IMG-20241231-WA0001.jpg]\nthe view", False),
        ("Alice", "2024-12-31T21:46:00", "eight it is", True),
        ("Eve", "2025-01-01T08:00:00", "good morning", False),
    ]
    counted = {key: count for key, count in read.tally.items() if count}
    assert counted == {
        "system messages": 3, "joins": 1, "leaves": 1, "media placeholders": 2, "deleted": 1, "edited": 1,
        "empty messages": 1, "continued lines": 3,
    }  # fmt: skip


def test_an_ios_export_with_seconds_marks_and_half_days():
    read = chat(
        "\u200e[3/15/24, 9:41:03\u202fPM] Alice: hi\n"
        "[3/16/24, 12:00:00 AM] Bob: \u200eimage omitted\n"
        "[3/16/24, 12:00:05 PM] Bob: \u200e<attached: 001-PHOTO.jpg>\n"
    )
    assert [(m.ts, m.content) for m in read.messages] == [
        ("2024-03-15T21:41:03", "hi"),
        ("2024-03-16T00:00:00", "[image]"),
        ("2024-03-16T12:00:05", "[001-PHOTO.jpg]"),
    ]
    assert not read.notes


@pytest.mark.parametrize(
    ("line", "ts"),
    [
        ("31.12.24, 21:41 - A: x", "2024-12-31T21:41:00"),
        ("2024-12-31, 21:41 - A: x", "2024-12-31T21:41:00"),
        ("12/31/24, 9:41 PM - A: x", "2024-12-31T21:41:00"),
        ("12/31/24, 9:41 p. m. - A: x", "2024-12-31T21:41:00"),
        ("31-12-2024 21.41 - A: x", "2024-12-31T21:41:00"),
    ],
)
def test_layouts_of_dates(line, ts):
    assert chat(line).messages[0].ts == ts


def test_an_ambiguous_order_is_assumed_told_and_can_be_changed():
    text = "03/04/24, 10:00 - A: x\n"
    assumed = chat(text)
    assert assumed.messages[0].ts.startswith("2024-04-03")
    assert "assumed day/month" in assumed.notes[0] and "--date-order mdy" in assumed.notes[0]
    assert chat(text, date_order="mdy").messages[0].ts.startswith("2024-03-04")
    assert not chat(text, date_order="mdy").notes


def test_the_order_that_keeps_time_running_forward_is_taken():
    read = chat("01/02/24, 10:00 - A: x\n01/05/24, 10:00 - A: y\n02/01/24, 10:00 - A: z\n")
    assert [m.ts[:10] for m in read.messages] == ["2024-01-02", "2024-01-05", "2024-02-01"]
    assert not read.notes


def test_dates_that_contradict_each_other_are_refused():
    with pytest.raises(DataError, match="is this one export"):
        chat("31/12/24, 10:00 - A: x\n12/31/24, 10:00 - A: y\n")


def test_a_date_that_does_not_exist_is_named_with_its_line():
    with pytest.raises(DataError, match=r"chat.txt: line 2: 30/2/2024 is no date"):
        chat("29/02/2024, 10:00 - A: x\n30/02/2024, 10:00 - A: y\n")


def test_text_before_the_first_message_is_named_with_its_line():
    with pytest.raises(DataError, match="line 1: does not start with a date"):
        chat("dear diary\n")


def test_a_message_that_looks_like_a_header_inside_another_needs_its_own_line():
    read = chat("31/12/24, 10:00 - A: he said 31/12/24, 11:00 - B: no\n")
    assert [m.speaker for m in read.messages] == ["A"]
    assert "B: no" in read.messages[0].content


def test_a_zip_holds_one_text(tmp_path):
    path = tmp_path / "WhatsApp Chat - Family.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", "31/12/24, 10:00 - A: x\n")
        archive.writestr("photo.jpg", b"\xff\xd8")
    (network,) = read_networks(path)
    assert network.network_id == "family" and network.messages[0].content == "x"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other.txt", "y")
    with pytest.raises(DataError, match="2 text files"):
        read_networks(path, "whatsapp")


def test_a_member_called_group_cannot_take_the_groups_place():
    (network,) = [to for to in [chat("31/12/24, 10:00 - GROUP: x\n31/12/24, 10:01 - ALL: y\n")]]
    from memory_env.ingest import to_network

    speakers = to_network(network).speakers
    assert "GROUP" not in speakers and "ALL" not in speakers and len(speakers) == 2
