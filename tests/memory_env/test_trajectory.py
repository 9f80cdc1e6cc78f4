import json

import pytest

from memory_env.datafile import DataError
from memory_env.loader import load_network
from memory_env.network import Network
from memory_env.records import Edge
from memory_env.trajectory import load_trajectory, replay_teacher
from tests.memory_env.chats import NOOP, add, document, update


def transitions():
    """A trajectory file in the published form: an ADD of each kind, an UPDATE, a NOOP; the file has ids of its own."""
    shape = [
        ([add("Alice likes tea"), add("they meet on Mondays", "GROUP", "Bob", "group_insight", "decision")], ["t1", "t2"], []),
        ([update("t1", "Alice likes coffee")], ["t3"], [{"old": "t1", "new": "t3"}]),
        ([NOOP], [], [{"old": "t1", "new": "t3"}]),
    ]
    return {
        "schema": "speakermem-v4-trajectories/1",
        "network_id": "drinks",
        "window_size": 2,
        "source": {"meta": {"source_kind": "test"}},
        "transitions": [
            {
                "turn": position,
                "session_id": f"drinks_s{position:02d}",
                "ts": f"2026-01-0{position + 1}",
                "messages": [
                    {"speaker": speaker, "content": f"{speaker} says {position}", "ts": f"2026-01-0{position + 1}T10", "msg_id": str(index)}
                    for index, speaker in enumerate(("Alice", "Bob"))
                ],
                "actions": actions,
                "report": {"errors": [], "created_ids": created},
                "post_state": {"update_edges": edges},
            }
            for position, (actions, created, edges) in enumerate(shape)
        ],
        "qa_pairs": [{"id": "q", "question": "Who?", "answer": "Alice"}],
    }  # fmt: skip


def entry(entry_id, content, position, **changes):
    record = {
        "entry_id": entry_id, "content": content, "owner": "Alice", "source": "Alice", "layer": "per_speaker_core",
        "utype": "fact", "turn_created": position, "ts": "2026-01-01", "links": [], "superseded_by": "", "confidence": 0.7,
    }  # fmt: skip
    return {**record, **changes}


def final_state():
    """A final state about `document()`: a chain over both positions, entries out of order, edges too."""
    return {
        "network_id": "n1",
        "final_state": {
            "entries": [
                entry("b0", "Alice moves to Leeds", 1, links=["a0"], confidence=0.8),
                entry("a0", "Alice lives in York", 0, superseded_by="b0"),
                entry("a1", "Bob cooks", 0, owner="Bob"),
            ],
            "update_edges": [{"old": "a0", "new": "b0"}],
        },
    }


def write(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_network_is_built_from_the_transitions(tmp_path):
    network = load_network(write(tmp_path / "t.json", transitions()))
    assert network.network_id == "drinks" and network.speakers == ("Alice", "Bob") and network.questions[0].answer == "Alice"
    assert [(s.session_id, s.ts, [m.content for m in s.messages]) for s in network.segments()] == [
        (f"drinks_s{t:02d}", f"2026-01-0{t + 1}", [f"Alice says {t}", f"Bob says {t}"]) for t in range(3)
    ]
    assert network.messages[1].turn_id == "drinks_s00_t001"
    assert Network.from_dict(network.to_dict()) == network


def test_actions_are_translated_to_the_ids_of_this_environment(tmp_path):
    path = write(tmp_path / "t.json", transitions())
    network = load_network(path)
    teacher = load_trajectory(path, network)
    cited = teacher.actions[1][0]["entry_id"]
    assert cited != "t1" and teacher.states[0].get(cited).content == "Alice likes tea"
    assert teacher.actions[2] == [NOOP]
    assert [[r.content for r in state.heads()] for state in teacher.states] == [
        ["Alice likes tea", "they meet on Mondays"], ["they meet on Mondays", "Alice likes coffee"],
        ["they meet on Mondays", "Alice likes coffee"],
    ]  # fmt: skip
    assert replay_teacher(network, teacher.actions) == teacher.states


def test_states_in_the_file_are_the_reference(tmp_path):
    file = transitions()
    for position, transition in enumerate(file["transitions"]):
        first = entry("t1", "Alice likes tea", 0, superseded_by="t3" if position else "")
        later = [entry("t3", "Alice likes coffee, as the teacher has it", 1, links=["t1"])] if position else []
        transition["post_state"] |= {"entries": [*later, first], "roster": ["Bob", "Alice"]}
        del transition["report"]
    teacher = load_trajectory(write(tmp_path / "t.json", file), load_network(tmp_path / "t.json"))
    assert [len(state.derived()) for state in teacher.states] == [1, 2, 2]
    assert [record.entry_id for record in teacher.states[1].derived()] == ["t1", "t3"]
    assert [record.content for record in teacher.states[1].heads("Alice")] == ["Alice likes coffee, as the teacher has it"]
    assert teacher.states[1].edges() == (Edge("t1", "t3"),) and teacher.states[0].edges() == ()
    assert teacher.states[1].to_dict()["roster"] == ["Alice", "Bob"]
    # Without a report the ids are paired by content, so that the UPDATE still cites a record of this environment.
    assert replay_teacher(load_network(tmp_path / "t.json"), teacher.actions)[1].edges()


def test_the_reference_after_a_position_of_a_final_state(tmp_path):
    network = Network.from_dict(document())
    teacher = load_trajectory(write(tmp_path / "f.json", final_state()), network)
    early, late = teacher.states
    assert {record.content for record in early.derived()} == {"Alice lives in York", "Bob cooks"}
    assert early.edges() == () and all(record.is_head for record in early.derived())
    assert late.edges() == (Edge("a0", "b0"),)
    assert {record.content for record in late.heads("Alice")} == {"Alice moves to Leeds"}
    assert early.roster == ("Alice", "Bob", "Carol")


def test_the_actions_of_a_final_state_write_it(tmp_path):
    network = Network.from_dict(document())
    teacher = load_trajectory(write(tmp_path / "f.json", final_state()), network)
    final = replay_teacher(network, teacher.actions)[-1]
    assert [record.content for record in final.heads()] == ["Bob cooks", "Alice moves to Leeds"]
    assert len(final.edges()) == 1
    nothing = {"network_id": "n1", "final_state": {"entries": [], "update_edges": []}}
    assert load_trajectory(write(tmp_path / "n.json", nothing), network).actions == ([NOOP], [NOOP])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda file: file.update(network_id="other"), "network_id is 'other', but the network is 'drinks'"),
        (lambda file: file["transitions"].pop(), "has 3 writing positions, but 2 are given"),
        (lambda file: file["transitions"][1].update(actions="x"), "transitions[1].actions is a string"),
        (lambda file: file["transitions"][1]["actions"][0].update(entry_id="zz"), "position 1 (session drinks_s01): action 0"),
        (lambda file: file["transitions"][0]["post_state"].update(entries=[{}]), "post_state.entries[0]"),
        (lambda file: file.pop("transitions"), "final_state is missing"),
    ],
)
def test_a_trajectory_that_does_not_fit_is_named(tmp_path, change, says):
    network = load_network(write(tmp_path / "good.json", transitions()))
    file = transitions()
    change(file)
    with pytest.raises(DataError) as error:
        load_trajectory(write(tmp_path / "bad.json", file), network)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_what_the_teachers_own_report_calls_an_error_is_tolerated(tmp_path):
    file = transitions()
    file["transitions"][1]["actions"].append(update("zz", "x"))
    file["transitions"][1]["report"]["errors"] = ["unknown entry id"]
    teacher = load_trajectory(write(tmp_path / "t.json", file), load_network(tmp_path / "t.json"))
    assert len(teacher.states[1].edges()) == 1


def test_a_final_state_beyond_the_network_is_named(tmp_path):
    file = final_state()
    file["final_state"]["entries"][0]["turn_created"] = 2
    with pytest.raises(DataError, match="reach position 2, but the network has 2 positions"):
        load_trajectory(write(tmp_path / "f.json", file), Network.from_dict(document()))


def test_replaying_needs_an_action_list_per_segment_and_sound_actions():
    network = Network.from_dict(document())
    with pytest.raises(DataError, match="has 2 writing positions, but 1 are given"):
        replay_teacher(network, [[NOOP]])
    with pytest.raises(DataError, match=r"n1: position 1 \(session n1_s02\): action 0: owner is not in the roster"):
        replay_teacher(network, [[NOOP], [add("x", "Dave")]])
    assert len(replay_teacher(network, [[NOOP]] * 4, window=2)) == 4


def manual_files(shared_data):
    return sorted((shared_data / "speakermem_r1" / "manual_trajectories").iterdir())


def test_the_published_manual_trajectories_replay_to_their_edges_and_final_records(shared_data):
    for path in manual_files(shared_data):
        file = json.loads(path.read_text(encoding="utf-8"))
        network = load_network(path)
        teacher = load_trajectory(path, network)
        ours = {}
        for transition, before, after in zip(file["transitions"], (None, *teacher.states), teacher.states, strict=False):
            known = {record.entry_id for record in before.derived()} if before else set()
            created = [record.entry_id for record in after.derived() if record.entry_id not in known]
            ours |= dict(zip(transition["report"]["created_ids"], created, strict=True))
            expected = {(ours[edge["old"]], ours[edge["new"]]) for edge in transition["post_state"]["update_edges"]}
            assert {(edge.old, edge.new) for edge in after.edges()} == expected
        expected = {
            (e["owner"], e["source"], e["layer"], e["utype"], e["content"], e["turn_created"], e["confidence"],
             tuple(ours[link] for link in e["links"]), ours.get(e["superseded_by"], ""))
            for e in file["final_state"]["entries"]
        }  # fmt: skip
        found = {
            (r.owner, r.source, r.layer, r.utype, r.content, r.turn_created, r.confidence, r.links, r.superseded_by)
            for r in teacher.states[-1].derived()
        }
        assert found == expected and len(teacher.states[-1].derived()) == len(file["final_state"]["entries"])
        assert list(teacher.states[-1].roster) == file["final_state"]["roster"]


def test_the_published_final_states_replay_to_themselves(shared_data):
    folder = shared_data / "speakermem_r1"
    for path in sorted((folder / "teacher_final_states").iterdir()):
        network = load_network(folder / "training_networks" / path.name)
        teacher = load_trajectory(path, network)
        states = replay_teacher(network, teacher.actions)
        for replayed, reference in zip(states, teacher.states, strict=True):
            assert len(replayed.edges()) == len(reference.edges())
            assert {(r.owner, r.source, r.layer, r.content, r.turn_created, r.ts) for r in replayed.derived()} == {
                (r.owner, r.source, r.layer, r.content, r.turn_created, r.ts) for r in reference.derived()
            }
        assert teacher.states[-1].to_dict()["entries"] == [
            {**record, "session": "", "turn": 0, "from_ids": []}
            for record in sorted(
                json.loads(path.read_text(encoding="utf-8"))["final_state"]["entries"], key=lambda e: e["turn_created"]
            )
        ]
