import json

import pytest

from memory_env.datafile import DataError
from memory_env.ingest import read_networks, recognise, socialmem


def dump(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


CONVERSATION = {
    "speaker_a": "Ann", "speaker_b": "Bo",
    "session_2_date_time": "1:56 pm on 8 May, 2023", "session_1_date_time": "10:00 am on 7 May, 2023",
    "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi!"}],
    "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "Look", "blip_caption": "a dog"}],
    "session_3_date_time": "9:00 am on 9 May, 2023",
}  # fmt: skip
QA = [
    {"question": "When?", "answer": 2022, "evidence": ["D1:1"], "category": 2},
    {"question": "Never said?", "adversarial_answer": "a cat", "evidence": [], "category": 5},
]


@pytest.mark.parametrize("layout", ["list", "file"])
def test_both_layouts_of_locomo_give_the_same(tmp_path, layout):
    if layout == "list":
        value = [{"sample_id": "c-7", "conversation": CONVERSATION, "qa": QA, "event_summary": {}}]
        path = dump(tmp_path / "locomo10.json", value)
    else:
        path = dump(tmp_path / "c-7.json", {**CONVERSATION, "events_session_1": {}, "qa": QA})
    (network,) = read_networks(path)
    assert network.network_id == "locomo_c-7"
    assert [(session.ts, len(session.turns)) for session in network.sessions] == [
        ("2023-05-07T10:00:00", 1), ("2023-05-08T13:56:00", 1),
    ]  # fmt: skip
    assert network.messages[1].content == "Look [shares a dog]" and network.messages[1].turn_id == "D2:1"
    assert [(q.category, q.answer) for q in network.questions] == [("temporal", "2022"), ("adversarial", "not mentioned")]
    assert network.questions[0].evidence_anchors == ({"turn": "D1:1"},)


def test_the_public_locomo_files_have_their_counts(shared_data):
    networks = read_networks(shared_data / "locomo")
    assert {n.network_id: (len(n.sessions), len(n.messages), len(n.questions)) for n in networks} == {
        "locomo_26": (19, 419, 199), "locomo_30": (19, 369, 105), "locomo_42": (29, 629, 260),
        "locomo_44": (28, 675, 158), "locomo_48": (30, 681, 239),
    }  # fmt: skip


def test_a_locomo_time_that_cannot_be_read_is_named(tmp_path):
    path = dump(tmp_path / "x.json", {**CONVERSATION, "session_1_date_time": "one day", "qa": []})
    with pytest.raises(DataError, match="x.json: session_1_date_time can't be read"):
        read_networks(path)


def groupmem(tmp_path):
    def message(node, author, stamp, reply=None):
        return {"msg_node": node, "content": f"text {node}", "author": author, "role": "dev", "timestamp": stamp,
                "reply_to": reply, "phase_name": "p1", "topic": "t"}  # fmt: skip

    channels = {
        "ops": [message("n2", "Bo", "2024-05-01T10:05:00", "n1"), message("n1", "Ann", "2024-05-01T10:00:00")],
        "dev": [message("n1", "Cy", "2024-05-01T09:00:00"), message("n9", "Cy", "2024-05-03T09:00:00")],
    }
    name = "synthetic_domain_channels_rolevariants_Finance.json"
    dump(tmp_path / "data" / "final" / "Finance" / name, channels)
    lines(
        tmp_path / "questions" / "Finance" / "temporal.jsonl",
        [{"id": 4, "question": "When?", "answer": "May", "asking_user_id": "Ann"}],
    )
    return tmp_path


def test_groupmembench(tmp_path):
    (network,) = read_networks(groupmem(tmp_path))
    assert network.network_id == "groupmem_finance"
    told = [(s.topic, [m.content for m in s.turns]) for s in network.sessions]
    assert told == [("dev", ["text n1"]), ("ops", ["text n1", "text n2"]), ("dev", ["text n9"])]
    assert network.sessions[1].turns[1].reply_to == "ops:n1"
    assert network.messages[0].extra["role"] == "dev"
    (question,) = network.questions
    assert (question.id, question.category, question.extra["asking_user_id"]) == ("temporal:4", "temporal", "Ann")


DIALOGUES = {
    "g2": [{"speaker": "Cy", "time": "2024-05-01 09:00:00", "dialogue": "z", "message_index": 0}],
    "g1": [
        {"speaker": "Ann", "time": "2024-05-01 10:00:00", "dialogue": "x", "message_index": 0},
        {"speaker": "Bo", "time": "2024-05-01 10:01:00", "dialogue": "y", "message_index": 1},
    ],
    "g3": None,
}
QARS = [
    {"topic_id": "01", "id": "F_MH_Top01_003", "Q": "Who?", "A": "B", "options": {"A": "Ann", "B": "Bo"}},
    {"topic_id": "01", "id": "P_Style_Top01_004", "Q": "How?", "A": "kindly", "options": None},
]


@pytest.mark.parametrize("layout", ["rows", "parquet", "repository"])
def test_evermembench(tmp_path, layout):
    if layout == "rows":
        lines(tmp_path / "dialogues.jsonl", [{"topic_id": "01", "date": "2024-05-01", "dialogues": DIALOGUES}])
        lines(tmp_path / "qars.jsonl", QARS)
    elif layout == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet")
        (tmp_path / "dialogues").mkdir()
        row = {"topic_id": "01", "date": "2024-05-01", "dialogues": {**DIALOGUES, "g3": []}}
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "dialogues" / "train-00000.parquet")
        lines(tmp_path / "qars.jsonl", QARS)
    else:
        dump(tmp_path / "dataset" / "01" / "dialogue.json", {"dialogues": {"2024-05-01": DIALOGUES}})
        lines(tmp_path / "qars.jsonl", QARS)
    (network,) = read_networks(tmp_path, "evermem")
    assert [(s.topic, [m.content for m in s.turns]) for s in network.sessions] == [("g2", ["z"]), ("g1", ["x", "y"])]
    assert network.messages[1].ts == "2024-05-01T10:00:00"
    choice, free = network.questions
    assert (choice.correct_option, choice.answer, choice.category) == ("B", "Bo", "F_MH_Top01")
    assert (free.answer, free.answer_format) == ("kindly", "open")


def socialmem_tables(folder, sizes):
    """`sizes`: questions by network id."""
    conversations, questions = [], []
    for network_id, count in sizes.items():
        for session in (2, 1):
            for turn in range(2):
                conversations.append(
                    {
                        "network_id": network_id, "session_id": f"{network_id}_s0{session}", "session_topic": "tea",
                        "timestamp": f"2025-10-0{session}T12:0{turn}:00", "turn_id": f"{network_id}_{session}_{turn}",
                        "speaker_display_name": ("Ann", "Bo")[turn], "message": f"m{session}{turn}",
                        "reply_to_turn_id": None,
                    }
                )  # fmt: skip
        for number in range(count):
            options = json.dumps(["tea", "milk"]) if number % 2 else None
            questions.append(
                {"network_id": network_id, "qa_id": f"q{number}", "query_type": "Q1", "question": "What?",
                 "answer": "tea", "options_json": options, "correct_option": "A" if options else None}
            )  # fmt: skip
    lines(folder / "conversations.jsonl", conversations)
    lines(folder / "qa.jsonl", questions)
    lines(folder / "networks.jsonl", [{"network_id": name, "scenario": "tea lovers"} for name in sizes])
    return folder


def paper_sizes():
    train = dict(zip(socialmem.TRAIN, [6, 8, 7, 5, 6, 6, 9, 8, 10, 12], strict=True))
    return {**train, **socialmem.HELDOUT}


def test_socialmembench(tmp_path):
    socialmem_tables(tmp_path, {"grp_1": 2})
    assert recognise(tmp_path) == "socialmem"
    (network,) = read_networks(tmp_path)
    assert network.scenario == "[socialmembench:grp_1] tea lovers"
    assert [(s.session_id, s.ts, s.session_index) for s in network.sessions] == [
        ("grp_1_s01", "2025-10-01", 1), ("grp_1_s02", "2025-10-02", 2),
    ]  # fmt: skip
    free, choice = network.questions
    assert (free.options, choice.options, choice.correct_option) == ([], {"A": "tea", "B": "milk"}, "A")


def test_socialmembench_as_parquet_equals_jsonl(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    folder = socialmem_tables(tmp_path / "jsonl", {"grp_1": 3, "grp_2": 1})
    for name in ("conversations", "qa", "networks"):
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        target = tmp_path / "parquet" / name
        target.mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), target / "test-00000-of-00001.parquet")
    assert read_networks(tmp_path / "parquet") == read_networks(folder)


def test_the_papers_split_is_checked(tmp_path):
    networks = read_networks(socialmem_tables(tmp_path / "right", paper_sizes()))
    train, heldout = socialmem.split(networks)
    assert (len(train), sum(len(n.questions) for n in train)) == (10, 77)
    assert (len(heldout), sum(len(n.questions) for n in heldout)) == (10, 305)
    assert not {n.network_id for n in train} & {n.network_id for n in heldout}
    with pytest.raises(DataError, match="grp_d2e3f4a5 of the paper's split is not among"):
        socialmem.split([network for network in networks if network.network_id != "grp_d2e3f4a5"])
    short = read_networks(socialmem_tables(tmp_path / "short", {**paper_sizes(), "grp_c1d2e3f7": 47}))
    with pytest.raises(DataError, match="grp_c1d2e3f7 has 47 questions, the paper's 48"):
        socialmem.split(short)
    more = read_networks(socialmem_tables(tmp_path / "more", {**paper_sizes(), "grp_0d1e2f3a": 7}))
    with pytest.raises(DataError, match="78 questions, the paper's 77"):
        socialmem.split(more)


def test_questions_about_a_network_that_is_not_there_are_refused(tmp_path):
    socialmem_tables(tmp_path, {"grp_1": 1})
    lines(tmp_path / "qa.jsonl", [{"network_id": "grp_9", "qa_id": "q", "query_type": "Q1", "question": "?", "answer": "x"}])
    with pytest.raises(DataError, match="qa asks about grp_9"):
        read_networks(tmp_path)


def test_a_broken_row_is_named_with_file_and_line(tmp_path):
    socialmem_tables(tmp_path, {"grp_1": 1})
    lines(tmp_path / "qa.jsonl", [{"network_id": "grp_1", "qa_id": "q", "query_type": "Q1", "answer": "x"}])
    with pytest.raises(DataError, match=r"qa.jsonl: line 1: question is missing"):
        read_networks(tmp_path)


def test_a_dataset_that_the_hub_does_not_give_says_what_to_do():
    with pytest.raises(DataError, match="nobody/socialmem-none .*download it and give the folder"):
        read_networks("nobody/socialmem-none")


def test_the_published_artefact_has_its_counts(shared_data):
    from memory_env.ingest import read_source

    source = read_source(shared_data / "speakermem_r1")
    assert {n.network_id: (len(n.segments()), len(n.messages), len(n.questions)) for n in source.networks} == {
        "grp_0d1e2f3a": (5, 50, 6), "grp_7a8b9c0d": (5, 50, 5), "grp_9c0d1e2f": (5, 50, 6),
        "manual_noop_ack": (1, 3, 1), "manual_noop_greeting": (1, 2, 1), "manual_update_alpha": (6, 30, 4),
        "manual_update_beta": (7, 35, 3), "manual_update_gamma": (8, 40, 3),
    }  # fmt: skip
    assert len(source.trajectories) == 8


def test_native_files_give_themselves_back(tmp_path):
    from memory_env.corpus import train_networks

    (network,) = train_networks()[:1]
    dump(tmp_path / "n.json", network.to_dict())
    assert read_networks(tmp_path / "n.json") == [network]
    assert recognise(tmp_path / "n.json") == "speakermem"
    dump(tmp_path / "copy.json", network.to_dict())
    with pytest.raises(DataError, match="is also in another file"):
        read_networks(tmp_path)


def test_longmemeval_gives_a_network_per_question_in_the_order_of_time(tmp_path):
    row = {
        "question_id": "q7", "question_type": "knowledge-update", "question": "Where do I live?", "answer": 7,
        "question_date": "2023/06/01 (Thu) 09:00",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/01 (Mon) 10:00"], "haystack_session_ids": ["answer_2", "answer_1"],
        "haystack_sessions": [
            [{"role": "user", "content": "I moved to Leeds", "has_answer": True}, {"role": "assistant", "content": "Nice!"}],
            [{"role": "user", "content": "I live in Bath"}],
        ],
        "answer_session_ids": ["answer_2"],
    }  # fmt: skip
    path = dump(tmp_path / "longmemeval_oracle.json", [row, {**row, "question_id": "q8_abs"}])
    assert recognise(path) == "longmemeval"
    first, second = read_networks(path)
    assert [(session.ts, [turn.content for turn in session.turns]) for session in first.sessions] == [
        ("2023-05-01T10:00:00", ["I live in Bath"]), ("2023-05-20T02:21:00", ["I moved to Leeds", "Nice!"]),
    ]  # fmt: skip
    (question,) = first.questions
    assert (first.network_id, question.category, question.answer) == ("longmemeval_q7", "knowledge-update", "7")
    assert question.evidence_anchors == ({"turn": first.messages[1].turn_id},)
    assert second.questions[0].category == "abstention"
    with pytest.raises(DataError, match="haystack_dates can't be read"):
        read_networks(dump(tmp_path / "broken.json", [{**row, "haystack_dates": ["soon", "later"]}]))


def test_halumem_gives_a_network_per_user_with_the_questions_of_every_session(tmp_path):
    user = {
        "uuid": "u1", "persona_info": "Name: Mia",
        "sessions": [
            {"start_time": "Dec 15, 2025, 06:10:00", "end_time": "Dec 15, 2025, 08:00:00",
             "dialogue": [{"role": "user", "content": "I like huts", "timestamp": "Dec 15, 2025, 06:11:23", "dialogue_turn": 0}],
             "memory_points": [{"index": 1, "memory_content": "Mia likes huts"}],
             "questions": [{"question": "What does Mia like?", "answer": "huts", "difficulty": "easy", "question_type": "Recall",
                            "evidence": [{"memory_content": "Mia likes huts"}]}]},
            {"start_time": "Dec 16, 2025, 06:10:00", "dialogue": [{"role": "assistant", "content": "Hello", "dialogue_turn": 0}]},
        ],
    }  # fmt: skip
    path = lines(tmp_path / "HaluMem-Medium.jsonl", [user])
    assert recognise(path) == "halumem"
    (network,) = read_networks(path)
    assert [(m.speaker, m.content, m.ts) for m in network.messages] == [
        ("user", "I like huts", "2025-12-15T06:11:23"), ("assistant", "Hello", "2025-12-16T06:10:00"),
    ]  # fmt: skip
    assert [(q.id, q.category, q.difficulty, q.answer) for q in network.questions] == [("s001_q000", "Recall", "easy", "huts")]
    assert network.to_dict()["sessions"][0]["memory_points"] == user["sessions"][0]["memory_points"]


def test_memoryagentbench_gives_a_network_per_row_from_jsonl_and_parquet(tmp_path):
    row = {
        "context": "Here is a list of facts:\n0. The lake is blue.\n\n1. " + "word " * 900,
        "questions": ["Which colour?", "How many?"], "answers": [["blue", "azure"], ["two"]],
        "metadata": {"source": "factconsolidation_sh_6k", "qa_pair_ids": ["f_no0", "f_no1"], "question_types": None},
    }  # fmt: skip
    path = lines(tmp_path / "a" / "Conflict_Resolution.jsonl", [row])
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "p").mkdir()
    table = tmp_path / "p" / "Conflict_Resolution-00000-of-00001.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist([row]), table)
    assert {recognise(each) for each in (path, tmp_path / "a", tmp_path / "p", table)} == {"memoryagentbench"}
    for source in (path, tmp_path / "a", tmp_path / "p"):
        (network,) = read_networks(source)
        assert network.network_id == "memoryagentbench_conflict_resolution_001"
        assert [m.content for m in network.messages][:2] == ["Here is a list of facts:", "0. The lake is blue."]
        assert all(len(m.content) <= 2000 for m in network.messages)
        assert " ".join(m.content for m in network.messages).split() == row["context"].split()
        assert [(q.id, q.category, q.answer) for q in network.questions] == [
            ("f_no0", "factconsolidation_sh_6k", "blue"), ("f_no1", "factconsolidation_sh_6k", "two"),
        ]  # fmt: skip
    with pytest.raises(DataError, match="answers has 1 entries for 2 questions"):
        read_networks(lines(tmp_path / "b" / "Conflict_Resolution.jsonl", [{**row, "answers": [["blue"]]}]))
