from dataclasses import replace

from memory_env import MemoryState, Network, TeacherTrajectory, step
from memory_env.corpus import heldout_networks, teacher, train_networks
from memory_env.ingest.inventory import overlaps, take_inventory
from memory_env.ingest.language import guess_language
from memory_env.ingest.speakermem import read
from rewards.tokens import unseen_text_share


def network(texts, network_id="n", times=None, speakers=("Ann", "Bo")):
    turns = [
        {"turn": f"t{i}", "speaker": "Ann", "content": text, "ts": (times or {}).get(i, f"2024-05-01T10:{i % 60:02d}:00")}
        for i, text in enumerate(texts)
    ]
    sessions = [{"session_id": "s1", "session_index": 1, "topic": "", "ts": "2024-05-01", "turns": turns}]
    return Network.from_dict(
        {"scenario": "", "speakers": list(speakers), "sessions": sessions, "qa_pairs": [], "meta": {"network_id": network_id}}
    )


def warnings(*networks, trajectories=(), **parts):
    parts = parts or {"networks": networks}
    return take_inventory(parts, trajectories, unseen_text_share).warnings


def test_the_embedded_corpus_has_table_13s_shape_and_no_warning():
    train, heldout = train_networks(), heldout_networks()
    teachers = [teacher(network) for network in train]
    inventory = take_inventory({"train": train, "heldout": heldout}, teachers, unseen_text_share)
    own = [line for line in inventory.lines if line.part == "train"]
    assert (len(own), sum(line.segments for line in own), sum(line.questions for line in own)) == (15, 73, 89)
    assert sum(line.questions for line in inventory.lines if line.part == "heldout") == 305
    assert inventory.warnings == ()
    table = inventory.to_text()
    assert "= 15 networks" in table and "UPDATE" in table.splitlines()[0]


def test_a_clean_chat_warns_of_nothing_but_silent_members():
    assert warnings(network(["hello"], speakers=("Ann",))) == ()
    assert warnings(network(["hello"])) == ("n: Bo never speaks",)
    assert warnings(network(["hello"], speakers=("Ann", "Bo", "Cy"))) == ("n: Bo, Cy never speak",)


def test_times_out_of_order_are_counted_with_the_first():
    one = network(["a", "b", "c"], times={1: "2024-05-01T09:00:00", 2: "yesterday"}, speakers=("Ann",))
    assert warnings(one) == (
        "n: 1 messages are earlier than the one before, the first is t1",
        "n: 1 times are not ISO 8601",
    )


def test_a_chat_whose_clock_jumps_back_by_a_day_is_told_though_it_is_another_session():
    from memory_env.ingest import Chat, ChatMessage, to_network

    days = ["2024-05-02T10:00:00", "2024-05-01T10:00:00", "2024-05-03T10:00:00"]
    chat = to_network(Chat("x", [ChatMessage("Ann", "a", day) for day in days]))
    assert len(chat.sessions) == 3
    assert warnings(chat) == ("x: 1 messages are earlier than the one before, the first is x_s0002_t000",)


def test_text_that_the_papers_tokenizer_cannot_see():
    (warning,) = warnings(network(["Привет, как дела"], speakers=("Ann",)))
    assert "can't see 100% of the letters" in warning and "unicode" in warning


def test_empty_sessions_are_counted():
    one = network(["a"], speakers=("Ann",))
    (session,) = one.sessions
    hollow = replace(one, sessions=(session, replace(session, session_id="s2", turns=())))
    assert warnings(hollow) == ("n: 1 empty session, the first is s2",)


def test_a_teacher_in_another_language_than_the_chat():
    english = "I think that the dog is in the garden and it was not at home with you"
    italian = "il cane è nel giardino e la casa non è lontana, ma anche questo come una del della"
    one = network([english] * 4, speakers=("Ann",))
    actions = [
        {
            "action": "ADD",
            "owner": "Ann",
            "source": "Ann",
            "layer": "per_speaker_core",
            "utype": "fact",
            "content": f"{italian} {n}",
        }
        for n in range(4)
    ]
    state, report = step(MemoryState.empty(), one.segments()[0], actions)
    assert not report.errors
    found = warnings(one, trajectories=[TeacherTrajectory("n", (actions,), (state,))])
    assert found[-1] == "n: the chat seems to be English, the teacher writes Italian; text rewards will be low"


def test_the_real_teacher_that_writes_italian_is_noticed(shared_data):
    from memory_env import load_trajectory

    networks, files = read(shared_data / "speakermem_r1")
    italian = next(network for network in networks if network.network_id == "grp_9c0d1e2f")
    file = next(file for file in files if "9c0d1e2f" in file.name)
    found = warnings(italian, trajectories=[load_trajectory(file, italian)])
    assert any("Italian" in warning for warning in found)
    english = next(network for network in networks if network.network_id == "grp_0d1e2f3a")
    file = next(file for file in files if "0d1e2f3a" in file.name)
    assert not any("teacher" in warning for warning in warnings(english, trajectories=[load_trajectory(file, english)]))


def test_overlap_by_id_and_by_content():
    one, copy = network(["a", "b"], "one"), network(["a", "b"], "copy")
    assert overlaps({"train": [one], "heldout": [network(["z"], "one")]}) == ["one is in train and in heldout"]
    assert overlaps({"train": [one], "heldout": [copy]}) == ["copy (heldout) says word for word what one (train) says"]
    assert overlaps({"train": [one], "heldout": [network(["a", "c"], "other")]}) == []


def test_languages_and_too_little_text():
    assert guess_language(["the dog and the cat are not at home, but you have it"] * 5) == "English"
    assert guess_language(["der Hund und die Katze sind nicht im Haus, aber ich bin auch da"] * 5) == "German"
    assert guess_language(["これは私の本です"]) == "Japanese"
    assert guess_language(["我们明天去公园"]) == "Chinese"
    assert guess_language(["ok"]) == "" and guess_language([]) == "" and guess_language(["12 34"]) == ""


def test_a_speaker_whom_the_roster_lacks_is_added_and_told(tmp_path):
    import json

    one = network(["a"], speakers=("Ann",)).to_dict()
    one["sessions"][0]["turns"].append({"turn": "x", "speaker": "Zoe", "content": "hi", "ts": "2024-05-01T11:00:00"})
    (tmp_path / "n.json").write_text(json.dumps(one))
    (read_back,), _ = read(tmp_path / "n.json")
    assert "Zoe" in read_back.speakers
    assert "n: the roster lacks Zoe: added" in warnings(read_back)
