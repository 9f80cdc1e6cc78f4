import zipfile

import pytest

from memory_env.datafile import DataError
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


ENGLISH = ("<Media omitted>", "This message was deleted", "<This message was edited>")
IOS = (
    "\u200e[12/31/24, 9:40:01\u202fPM] Family: \u200eMessages and calls are end-to-end encrypted. Tap to read.\n"
    "[12/31/24, 9:40:01\u202fPM] Family: \u200eAlice created this group\n"
    "[12/31/24, 9:40:05\u202fPM] Family: \u200eAlice added \u202a+44\u00a07700\u00a0900123\u202c\n"
    "[12/31/24, 9:41:03\u202fPM] Alice: my list: a\nb\n"
    "[12/31/24, 9:42:00\u202fPM] ~\u202fBob: \u200eimage omitted\n"
    "[12/31/24, 9:42:30\u202fPM] ~\u202fBob: plan.pdf \u2022 \u200e3 pages \u200edocument omitted\n"
    "[12/31/24, 9:43:00\u202fPM] \u202a+44\u00a07700\u00a0900123\u202c: hi @\u2068Alice\u2069 \u200e<This message was edited>\n"
    "[12/31/24, 9:44:00\u202fPM] Alice: \u200eThis message was deleted.\n"
    "[1/1/25, 12:05:00\u202fAM] Alice: \u200ePOLL:\nWhere?\n\u200eOPTION: Leeds (2 votes)\n"
    "[1/1/25, 12:06:00\u202fAM] Family: \u200eBob left\n"
    "[1/1/25, 12:07:00\u202fAM] Family: \u200e~\u202fBob changed their phone number to a new number. Tap to message.\n"
)


def test_what_ios_says_in_the_groups_name_is_no_message():
    read = chat(IOS)
    assert [(m.speaker, m.ts, m.content, m.edited) for m in read.messages] == [
        ("Alice", "2024-12-31T21:41:03", "my list: a\nb", False),
        ("Bob", "2024-12-31T21:42:00", "[image]", False),
        ("Bob", "2024-12-31T21:42:30", "[plan.pdf]", False),
        ("+44\u00a07700\u00a0900123", "2024-12-31T21:43:00", "hi @Alice", True),
        ("Alice", "2025-01-01T00:05:00", "[poll: Where? Options: Leeds (2 votes)]", False),
    ]
    counted = {key: count for key, count in read.tally.items() if count}
    assert counted == {"system messages": 3, "joins": 1, "leaves": 1, "media placeholders": 2, "edited": 1, "deleted": 1,
                       "continued lines": 3}  # fmt: skip


def test_the_group_is_no_member_in_a_language_whose_phrases_are_not_known():
    read = chat(
        "[31/12/24, 21:40:00] Rodina: \u200eZprávy a hovory jsou koncově šifrované.\n"
        "[31/12/24, 21:40:01] Rodina: \u200eJana vytvořila skupinu\n"
        "[31/12/24, 21:41:00] Jana: ahoj\n"
        "[31/12/24, 21:42:00] Jana: \u200eobrázek vynechán\n"
        "[31/12/24, 21:43:00] Rodina: \u200ePetr odešel ze skupiny\n"
    )
    assert [(m.speaker, m.content) for m in read.messages] == [("Jana", "ahoj"), ("Jana", "[media]")]
    assert read.tally["system messages"] == 3


@pytest.mark.parametrize(
    ("head", "media", "deleted", "edited"),
    [
        ("31.12.24, 21:41 - ", "<Medien ausgeschlossen>", "Diese Nachricht wurde gelöscht", "<Diese Nachricht wurde bearbeitet>"),
        ("31/12/24, 9:41\u202fp.\u00a0m. - ", "<Multimedia omitido>", "Eliminaste este mensaje", "<Se editó este mensaje.>"),
        ("31/12/2024 à 21:41 - ", "<Médias omis>", "Ce message a été supprimé", "<Ce message a été modifié>"),
        ("31/12/2024 21:41 - ", "<Mídia oculta>", "Mensagem apagada", "<Mensagem editada>"),
        ("31/12/24, 21:41 - ", "<Media omessi>", "Hai eliminato questo messaggio", "<Questo messaggio è stato modificato>"),
        ("31-12-2024 21:41 - ", "<Media weggelaten>", "Dit bericht is verwijderd", "<Dit bericht is bewerkt>"),
        ("31.12.2024, 21:41 - ", "<Без медиафайлов>", "Данное сообщение удалено", "<Сообщение изменено>"),
        ("31.12.2024 21:41 - ", "<Medya dahil edilmedi>", "Bu mesaj silindi", "<Bu mesaj düzenlendi>"),
        ("31/12/24 21.41 - ", "<Media tidak disertakan>", "Pesan ini dihapus", "<Pesan ini diedit>"),
        ("[2024/12/31 下午9:41:00] ", "\u200e图像已忽略", "\u200e此消息已删除", "<消息已编辑>"),
        ("2024/12/31 21:41 - ", "<メディアは含まれていません>", "このメッセージは削除されました", ENGLISH[2]),
        ("2024년 12월 31일 오후 9:41 - ", "<미디어 파일을 제외한 내보내기>", "삭제된 메시지입니다", ENGLISH[2]),
        ("\u200f31\u200f/12\u200f/2024، 9:41 \u0645 - ", *ENGLISH),
        ("٣١\u200f/١٢\u200f/٢٠٢٤، ٩:٤١ \u0645 - ", *ENGLISH),
        ("31.12.2024 klo 21.41 - ", *ENGLISH),
    ],
)
def test_exports_in_many_languages(head, media, deleted, edited):
    read = chat(f"{head}Ann: hello\n{head}Bo: {media}\n{head}Bo: {deleted}\n{head}Ann: eight \u200e{edited}\n")
    assert [(m.speaker, m.edited) for m in read.messages] == [("Ann", False), ("Bo", False), ("Ann", True)]
    assert read.messages[1].content == "[media]" and read.messages[2].content == "eight"
    assert {m.ts for m in read.messages} == {"2024-12-31T21:41:00"} and read.tally["deleted"] == 1


def test_words_that_only_look_like_the_apps_own_are_kept():
    read = chat("31/12/24, 10:00 - Luc: Marie absente\n31/12/24, 10:01 - Luc: salt omitted\n31/12/24, 10:02 - Luc: Bob left\n")
    assert [m.content for m in read.messages] == ["Marie absente", "salt omitted", "Bob left"]


def test_a_quoted_header_of_another_date_order_stays_in_its_message():
    days = "".join(f"{day}/12/2024, 10:00 - Ann: m{day}\n" for day in range(1, 32))
    read = chat(days + "31/12/2024, 11:00 - Bo: she wrote:\n12/31/24, 9:41 PM - Eve: dinner?\n31/12/2024, 11:01 - Bo: funny\n")
    assert [m.content for m in read.messages[31:]] == ["she wrote:\n12/31/24, 9:41 PM - Eve: dinner?", "funny"]
    assert {m.speaker for m in read.messages} == {"Ann", "Bo"}


def test_a_wrong_date_order_is_refused_and_swallows_nothing():
    days = "".join(f"{day}/12/2024, 10:00 - Ann: m{day}\n" for day in range(1, 32))
    with pytest.raises(DataError, match="line 13: 13/12/2024 is no date as mdy .*--date-order"):
        chat(days, date_order="mdy")
    assert [m.content for m in chat(days, date_order="dmy").messages] == [f"m{day}" for day in range(1, 32)]


def test_a_message_of_very_many_lines_is_read_in_linear_time():
    read = chat("31/12/24, 10:00 - Ann: log\n" + "x" * 20 + ("\n" + "y" * 20) * 50_000)
    assert len(read.messages) == 1 and read.messages[0].content.count("\n") == 50_001


@pytest.mark.parametrize(
    ("line", "ts"),
    [
        ("31.12.24, 21:41 - A: x", "2024-12-31T21:41:00"),
        ("2024-12-31, 21:41 - A: x", "2024-12-31T21:41:00"),
        ("12/31/24, 9:41 PM - A: x", "2024-12-31T21:41:00"),
        ("12/31/24, 9:41 p. m. - A: x", "2024-12-31T21:41:00"),
        ("31-12-2024 21.41 - A: x", "2024-12-31T21:41:00"),
        ("2025/1/2 上午12:01 - A: x", "2025-01-02T00:01:00"),
        ("2024. 12. 31. 21:41 - A: x", "2024-12-31T21:41:00"),
        ("12/31/14, 9:41:03 PM: A: x", "2014-12-31T21:41:03"),
        ("31.12.24 г., 21:41 ч. - A: x", "2024-12-31T21:41:00"),
        ("31.12.2024 ÖS 9:41 - A: x", "2024-12-31T21:41:00"),
        ("31/12/2024, 9:41 PTG - A: x", "2024-12-31T21:41:00"),
        ("31/12/2024, 9:41 CH - A: x", "2024-12-31T21:41:00"),
        ("21:41, 31/12/2024 - A: x", "2024-12-31T21:41:00"),
        ("2024. 12. 31. du. 9:41 - A: x", "2024-12-31T21:41:00"),
        ("2024-12-31 21 h 41 - A: x", "2024-12-31T21:41:00"),
        ("31/12/24, 9:41 अपराह्न - A: x", "2024-12-31T21:41:00"),
        ("31.12.2024. u 21:41 - A: x", "2024-12-31T21:41:00"),
        ("31/12/2567 21:41 - A: x", "2024-12-31T21:41:00"),
        ("31/12/67 21:41 - A: x", "2024-12-31T21:41:00"),
        ("[۱۴۰۳/۱۰/۱۱, ۲۱:۴۱:۰۳] A: x", "2024-12-31T21:41:03"),
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
        archive.writestr("__MACOSX/._chat.txt", b"\x00\x05")
    (network,) = read_networks(path)
    assert network.network_id == "family" and network.messages[0].content == "x"


def test_a_text_that_was_sent_in_a_chat_lies_beside_it(tmp_path):
    path = tmp_path / "WhatsApp Chat - Family.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "milk, eggs")
        archive.writestr("old.txt", "31/12/20, 10:00 - B: another chat, sent as a file\n")
        archive.writestr("_chat.txt", "31/12/24, 10:00 - A: x\n")
    (network,) = read_networks(path)
    assert [message.content for message in network.messages] == ["x"]
    unpacked = tmp_path / "WhatsApp Chat - Family"
    zipfile.ZipFile(path).extractall(unpacked)
    assert [m.content for network in read_networks(unpacked) for m in network.messages] == ["x"]
    assert read_networks(unpacked / "_chat.txt")[0].network_id == "family"


def test_a_folder_of_exports_holds_one_chat_each(tmp_path):
    for name in ("Anna", "Bernd"):
        (tmp_path / f"WhatsApp Chat mit {name}.txt").write_text(f"31.12.24, 10:00 - {name}: hallo\n")
    assert {network.network_id: network.speakers for network in read_networks(tmp_path)} == {
        "anna": ("Anna",), "bernd": ("Bernd",),
    }  # fmt: skip


def test_a_member_called_group_cannot_take_the_groups_place():
    (network,) = [to for to in [chat("31/12/24, 10:00 - GROUP: x\n31/12/24, 10:01 - ALL: y\n")]]
    from memory_env.ingest import to_network

    speakers = to_network(network).speakers
    assert "GROUP" not in speakers and "ALL" not in speakers and len(speakers) == 2


def test_a_poll_is_one_message_with_its_options_in_any_language():
    read = chat(
        "[31/12/24, 21:40:00] Ann: hi\n"
        "[31/12/24, 21:41:00] Bo: \u200ePOLL:\nWho left early?\n\u200eOPTION: me (1 vote)\n\u200eOPTION: Bob left (2 votes)\n"
        "[31/12/24, 21:42:00] Cy: \u200eUMFRAGE:\nWer wurde hinzugefügt?\n\u200eOPTION: ich (0 Stimmen)\n"
        "[31/12/24, 21:43:00] Ann: TODO:\nmilk: two\nCALL: Bo\n"
    )
    assert [(m.speaker, m.content) for m in read.messages] == [
        ("Ann", "hi"),
        ("Bo", "[poll: Who left early? Options: me (1 vote); Bob left (2 votes)]"),
        ("Cy", "[poll: Wer wurde hinzugefügt? Options: ich (0 Stimmen)]"),
        ("Ann", "TODO:\nmilk: two\nCALL: Bo"),
    ]


def test_what_the_app_says_in_a_members_name_never_becomes_the_members_words():
    read = chat(
        "[31.12.24, 21:40:00] Resa: \u200eNadia har skapat gruppen\n"
        "[31.12.24, 21:41:00] Nadia: hej allihop\n"
        "[31.12.24, 21:42:00] Nadia: \u200eNadia har lagt till Olof i gruppen\n"
        "[31.12.24, 21:43:00] Olof: \u200eMissat röstsamtal, \u200etryck för att ringa upp igen\n"
        "[31.12.24, 21:44:00] Olof: \u200ebild utelämnad\n"
        "[31.12.24, 21:45:00] Olof: \u200ePlats: https://maps.example/?q=59,18\n"
    )
    assert [(m.speaker, m.content) for m in read.messages] == [
        ("Nadia", "hej allihop"), ("Olof", "[media]"), ("Olof", "Plats: https://maps.example/?q=59,18"),
    ]  # fmt: skip


def test_a_header_of_another_app_inside_a_message_is_quoted_text():
    read = chat("31/12/24, 10:00 - A: look:\n[31/12/24, 09:00:00] B: I resign\n31/12/24, 9:30:00 AM: C: me too\n")
    assert [(m.speaker, m.content.count("\n")) for m in read.messages] == [("A", 2)]


def test_other_calendars_are_converted_with_a_word_or_refused():
    thai = chat("29/02/2567 10:15 - A: x\n")
    assert thai.messages[0].ts == "2024-02-29T10:15:00" and "Buddhist calendar (year 2567): converted" in thai.notes[0]
    persian = chat("[1403/12/30, 10:15:00] A: x\n[1404/01/01, 10:15:00] A: y\n")
    assert [m.ts[:10] for m in persian.messages] == ["2025-03-20", "2025-03-21"] and "Persian" in persian.notes[0]
    with pytest.raises(DataError, match="line 1: .*the year 1446 is of the Islamic calendar"):
        chat("05/07/1446 10:15 - A: x\n")
