import json

import pytest

from memory_env import Network, load_trajectory
from memory_env.datafile import DataError
from memory_env.ingest.handwritten import read_actions, trajectory_document
from tests.memory_env.ingest.test_inventory import network as one_session

YAML = """
network: two
positions:
  - actions:
      - {action: ADD, owner: Ann, source: Ann, layer: per_speaker_core, utype: fact, content: lives in Leeds, id: home}
      - {action: ADD, owner: Bo, source: Ann, layer: per_speaker_profile, utype: observation, content: likes tea}
  - actions:
      - {action: UPDATE, entry_id: home, content: lives in York, id: home2}
  - actions:
      - {action: UPDATE, entry_id: home2, content: lives in Bath}
  - actions: [{action: NOOP}]
"""


def network():
    document = one_session(["a"], "two").to_dict()
    (session,) = document["sessions"]
    document["sessions"] = [
        {**session, "session_id": f"s{n}", "turns": [
            {**turn, "turn": f"{n}_{i}", "speaker": name} for i, (turn, name) in
            enumerate([(session["turns"][0], "Ann"), (session["turns"][0], "Bo")])]}
        for n in range(4)
    ]  # fmt: skip
    return Network.from_dict(document)


def convert(tmp_path, text, name="actions.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return trajectory_document(network(), read_actions(path, network()), {"model": "handwritten"}, None, str(path))


def test_names_of_the_authors_own_become_chains(tmp_path):
    document = convert(tmp_path, YAML)
    (tmp_path / "t.json").write_text(json.dumps(document))
    trajectory = load_trajectory(tmp_path / "t.json", network())
    final = trajectory.states[-1]
    assert [[r.content for r in final.derived()], len(final.edges())] == [
        ["lives in Leeds", "likes tea", "lives in York", "lives in Bath"], 2,
    ]  # fmt: skip
    first, second = (edge.to_dict() for edge in final.edges())
    assert first["new"] == second["old"]
    assert "id" not in document["transitions"][0]["actions"][0]


def test_json_loads_the_same_way(tmp_path):
    import yaml

    assert convert(tmp_path, json.dumps(yaml.safe_load(YAML)), "actions.json") == convert(tmp_path, YAML)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("entry_id: home,", "entry_id: house,"), r"position 1 \(session s1\): "),
        (("owner: Bo", "owner: Zoe"), r"position 0 \(session s0\): "),
        (("network: two", "network: three"), r"network is 'three', but the network is 'two'"),
        (("  - actions: [{action: NOOP}]", ""), r"has 3 positions, network 'two' has 4"),
        (("positions:", "positions: ["), r"line \d+ is not YAML"),
        (("positions:", "steps:"), r"positions is missing"),
        (("- actions: [{action: NOOP}]", "- actions: [NOOP]"), r"positions\[3\].actions\[0\]"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        convert(tmp_path, YAML.replace(*change))


def test_the_tutorials_example_is_accepted_as_it_stands(repository):
    from memory_env.ingest import read_networks

    (example,) = read_networks(repository / "docs" / "example" / "chat.txt")
    actions = read_actions(repository / "docs" / "example" / "actions.yaml", example)
    document = trajectory_document(example, actions, {}, None, "actions.yaml")
    assert len(document["transitions"]) == 5 and len(document["transitions"][-1]["post_state"]["update_edges"]) == 3
