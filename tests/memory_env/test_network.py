import copy
import json

import pytest

from memory_env.datafile import DataError
from memory_env.loader import load_network, load_networks
from memory_env.network import Network, check_disjoint
from tests.memory_env.chats import document


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def changed(path, value):
    """`document()` with the value at `path` replaced (a key that is to vanish: value ...)."""
    result = document()
    target = result
    for key in path[:-1]:
        target = target[key]
    if value is ...:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return result


def test_a_file_survives_the_round_trip_with_its_unknown_keys(tmp_path):
    network = load_network(write(tmp_path / "n.json", document()))
    assert network.to_dict() == document()
    assert Network.from_dict(network.to_dict()) == network


def test_what_is_read(tmp_path):
    network = load_network(write(tmp_path / "n.json", document()))
    assert (network.network_id, network.scenario, network.speakers) == ("n1", "three friends", ("Alice", "Bob", "Carol"))
    turn = network.sessions[1].turns[2]
    assert (turn.speaker, turn.index, turn.session_id, turn.turn_id) == ("Carol", 2, "n1_s02", "n1_s02_t002")
    assert turn.reply_to == "n1_s02_t001" and turn.extra == {"reactions": ["+1"]}
    question = network.questions[0]
    assert question.options == {"A": "Alice", "B": "Bob"} and question.extra == {"author": "me"}


def test_to_dict_and_from_dict_share_nothing_with_the_network():
    source = document()
    network = Network.from_dict(source)
    source["sessions"][0]["turns"][0]["reactions"].append("-1")
    written = network.to_dict()
    written["meta"]["source"] = "changed"
    written["qa_pairs"][0]["options"]["A"] = "changed"
    assert network.to_dict() == document()


def test_optional_keys_take_defaults():
    bare = {
        "speakers": ["A"],
        "sessions": [{"session_id": "s", "turns": [{"speaker": "A", "content": ""}, {"speaker": "A", "content": "x"}]}],
    }
    network = Network.from_dict(bare, default_id="chat")
    assert network.network_id == "chat" and network.questions == ()
    assert [turn.turn_id for turn in network.messages] == ["s_t000", "s_t001"]
    assert Network.from_dict(network.to_dict()) == network


def test_turns_that_are_numbered_within_their_session_are_told_apart_and_come_back():
    numbered = document()
    for session in numbered["sessions"]:
        for number, turn in enumerate(session["turns"]):
            turn["turn"], turn["reply_to"] = number, number - 1 if number else ""
    network = Network.from_dict(numbered)
    assert [turn.turn_id for turn in network.sessions[1].turns] == ["n1_s02_t000", "n1_s02_t001", "n1_s02_t002"]
    assert [turn.reply_to for turn in network.sessions[1].turns] == ["", "n1_s02_t000", "n1_s02_t001"]
    assert network.to_dict() == numbered and Network.from_dict(network.to_dict()) == network


def test_one_segment_per_session_or_windows_within_sessions():
    network = Network.from_dict(document())
    sessions = network.segments()
    assert [(s.position, s.session_id, s.ts, len(s.messages)) for s in sessions] == [
        (0, "n1_s01", "2026-01-01", 3), (1, "n1_s02", "2026-01-02", 3),
    ]  # fmt: skip
    windows = network.segments(window=2)
    assert [(s.position, s.session_id, [m.index for m in s.messages]) for s in windows] == [
        (0, "n1_s01", [0, 1]), (1, "n1_s01", [2]), (2, "n1_s02", [0, 1]), (3, "n1_s02", [2]),
    ]  # fmt: skip
    assert windows[1].ts == "2026-01-01T10:02:00"
    assert [m for s in windows for m in s.messages] == list(network.messages)
    with pytest.raises(ValueError, match="window"):
        network.segments(window=0)


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["sessions"], ..., "sessions is missing"),
        (["sessions"], [], "sessions is empty"),
        (["sessions"], {}, "sessions is an object"),
        (["sessions", 1], 3, "sessions[1] is an integer"),
        (["speakers"], ..., "speakers is missing"),
        (["speakers", 0], 7, "speakers[0]"),
        (["speakers", 2], "Dave", "'Carol', who is not in speakers"),
        (["meta"], [], "meta is a list"),
        (["sessions", 0, "session_id"], ..., "sessions[0].session_id is missing"),
        (["sessions", 1, "session_id"], "n1_s01", "sessions[1].session_id 'n1_s01' is used twice"),
        (["sessions", 0, "session_index"], True, "sessions[0].session_index is a boolean"),
        (["sessions", 0, "turns"], "x", "sessions[0].turns is a string"),
        (["sessions", 0, "turns", 1, "turn"], "n1_s01_t000", "sessions[0].turns[1].turn 'n1_s01_t000' is used twice"),
        (["sessions", 0, "turns", 1, "content"], 5, "sessions[0].turns[1].content is an integer"),
        (["sessions", 0, "turns", 1, "content"], ..., "sessions[0].turns[1].content is missing"),
        (["sessions", 0, "turns", 1, "speaker"], ..., "sessions[0].turns[1].speaker is missing"),
        (["sessions", 0, "turns", 1, "ts"], 1.5, "sessions[0].turns[1].ts is a number"),
        (["qa_pairs", 0, "question"], ..., "qa_pairs[0].question is missing"),
        (["qa_pairs", 0, "options"], 3, "qa_pairs[0].options"),
        (["qa_pairs", 0, "correct_option"], "Z", "qa_pairs[0].correct_option"),
        (["qa_pairs", 0, "evidence_anchors"], {}, "qa_pairs[0].evidence_anchors is an object"),
    ],
)  # fmt: skip
def test_a_corrupt_file_is_named_with_the_place(tmp_path, path, value, place):
    file = write(tmp_path / "bad.json", changed(path, value))
    with pytest.raises(DataError) as error:
        load_networks(file)
    message = str(error.value)
    assert str(file) in message and place in message and "\n" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps(document())[:200], "cut short"),
        ("", "not valid JSON"),
        ('{"speakers": [1,]}', "not valid JSON at column"),
        ("[" * 100_000, "line 1: is nested over 200 deep"),
        ('{"a": ' + "9" * 5000 + "}", "not usable JSON"),
        ("[]", "must be an object"),
        ("null", "must be an object"),
    ],
)
def test_a_file_that_is_no_network_document_is_named(tmp_path, text, says):
    file = write(tmp_path / "bad.json", text)
    with pytest.raises(DataError) as error:
        load_network(file)
    assert str(file) in str(error.value) and says in str(error.value) and "\n" not in str(error.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        load_network(tmp_path / "gone.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(DataError, match="not UTF-8"):
        load_network(tmp_path / "latin.json")
    with pytest.raises(DataError, match="latin.json"):
        load_networks(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no"):
        load_networks(tmp_path / "empty")


def test_networks_of_a_file_a_jsonl_and_a_folder(tmp_path):
    def named(name):
        return document(meta={"network_id": name})

    single = write(tmp_path / "b.json", "\ufeff" + json.dumps(named("b")))
    lines = write(tmp_path / "a.jsonl", "\n".join(json.dumps(named(name)) for name in ("a1", "a2")) + "\n\n")
    write(tmp_path / "notes.txt", "no network")
    assert [network.network_id for network in load_networks(single)] == ["b"]
    assert [network.network_id for network in load_networks(lines)] == ["a1", "a2"]
    assert [network.network_id for network in load_networks(tmp_path)] == ["a1", "a2", "b"]


def test_errors_in_a_jsonl_name_the_line_and_ids_are_unique_in_a_folder(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: not valid JSON"):
        load_networks(write(tmp_path / "a.jsonl", json.dumps(document()) + "\n{"))
    write(tmp_path / "a.jsonl", json.dumps(document()))
    write(tmp_path / "b.json", document())
    with pytest.raises(DataError, match=r"b\.json: network id 'n1' is already used by .*a\.jsonl, line 1"):
        load_networks(tmp_path)
    nameless = changed(["meta", "network_id"], ...)
    with pytest.raises(DataError, match=r"n\.jsonl, line 1: meta.network_id is missing"):
        load_networks(write(tmp_path / "n.jsonl", json.dumps(nameless)))
    with pytest.raises(DataError, match="is empty"):
        load_networks(write(tmp_path / "none.jsonl", "\n"))


def test_names_that_would_forge_a_coordinate_are_changed_and_come_back_in_to_dict():
    source = document(speakers=["Alice", "GROUP", "Bob\n"])
    for session in source["sessions"]:
        first, second, third = session["turns"]
        second.update(speaker="GROUP", reply_to="Bob\n")
        third.update(speaker="Alice", speaker_id="p_other")
    network = Network.from_dict(copy.deepcopy(source))
    assert network.speakers == ("Alice", "Alice (2)", "GROUP (member)", "Bob")
    assert [turn.speaker for turn in network.sessions[0].turns] == ["Alice", "GROUP (member)", "Alice (2)"]
    assert network.sessions[0].turns[1].reply_to == "Bob"
    assert network.to_dict() == source


def test_turns_without_an_id_belong_to_the_first_of_that_name():
    source = document()
    source["sessions"][0]["turns"][0].update(speaker="Bob", speaker_id="")
    network = Network.from_dict(source)
    assert network.speakers == ("Alice", "Bob", "Carol")
    assert network.messages[0].speaker == "Bob"


def test_two_namesakes_listed_twice_come_back_twice():
    source = document(speakers=["Alice", "Alice", "Bob", "Carol"])
    source["sessions"][1]["turns"][0]["speaker_id"] = "p_other"
    assert Network.from_dict(copy.deepcopy(source)).to_dict() == source


def test_train_and_heldout_never_share_a_network():
    train = Network.from_dict(document())
    other = changed(["sessions", 0, "turns", 0, "content"], "something else")
    other["meta"]["network_id"] = "n2"
    check_disjoint([train], [Network.from_dict(other)])
    with pytest.raises(DataError, match="'n1' is in both"):
        check_disjoint([train], [train])
    copied = Network.from_dict(document(meta={"network_id": "n3"}, scenario="other", qa_pairs=[]))
    with pytest.raises(DataError, match="'n3' has the same messages as training network 'n1'"):
        check_disjoint([train], [copied])


def test_the_published_networks_load_and_come_back_unchanged(shared_data):
    files = sorted((shared_data / "speakermem_r1" / "training_networks").iterdir())
    networks = load_networks(files[0].parent)
    assert [len(network.segments()) for network in networks] == [5, 5, 5]
    for file, network in zip(files, networks, strict=True):
        assert network.to_dict() == json.loads(file.read_text(encoding="utf-8"))
