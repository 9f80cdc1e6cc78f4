import json
import sqlite3

import pytest

from memory_env import load_network, load_networks, load_trajectory
from memory_env.corpus import train_networks
from tests.launch.scripts import launch, refused
from tests.memory_env.ingest.test_benchmarks import paper_sizes, socialmem_tables
from tests.memory_env.query.chat_server import Script, error, ok, serving

WHATSAPP = (
    "31/12/2024, 21:41 - Ann: I live in Leeds\n31/12/2024, 21:42 - Bo: <Media omitted>\n01/01/2025, 10:00 - Ann: I moved to York\n"
)


def test_a_chat_export_becomes_native_networks_with_an_inventory(tmp_path):
    (tmp_path / "WhatsApp Chat with Us.txt").write_text(WHATSAPP)
    ended = launch("prepare", "read", tmp_path / "WhatsApp Chat with Us.txt", "--output", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    (network,) = load_networks(tmp_path / "out" / "networks")
    assert (network.network_id, len(network.sessions), len(network.messages)) == ("us", 2, 3)
    inventory = json.loads((tmp_path / "out" / "inventory.json").read_text())
    assert inventory["networks"][0]["counts"] == {"media placeholders": 1}
    assert "handled: 1 media placeholders" in ended.stdout
    assert (tmp_path / "out" / "inventory.txt").read_text() in ended.stdout


def test_a_folder_that_was_prepared_is_taken_for_its_networks_by_every_script(tmp_path):
    (tmp_path / "in").mkdir()
    for network in train_networks()[:3]:
        (tmp_path / "in" / f"{network.network_id}.json").write_text(json.dumps(network.to_dict()))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ids = sorted(network.network_id for network in train_networks()[:3])
    assert launch("prepare", "read", tmp_path / "in", "--output", whole).returncode == 0
    assert launch("prepare", "read", tmp_path / "in", "--output", parts, "--heldout", ids[0]).returncode == 0
    assert sorted(network.network_id for network in load_networks(whole)) == ids
    assert sorted(network.network_id for network in load_networks(parts)) == ids[1:]
    ended = launch("evaluate", "--writer", "none", "--networks", parts, "--output", tmp_path / "e")
    assert ended.returncode == 0, ended.stderr
    questions = {network.network_id: len(network.questions) for network in train_networks()[:3]}
    assert json.loads((tmp_path / "e" / "evaluation.json").read_text())["total"] == questions[ids[0]]
    remembered = launch("remember", "--memory", tmp_path / "m.db", parts)
    assert remembered.returncode == 0, remembered.stderr
    with sqlite3.connect(tmp_path / "m.db") as db:
        assert sorted(row[0] for row in db.execute("SELECT DISTINCT channel FROM messages")) == ids
    again = launch("prepare", "read", whole, "--output", tmp_path / "again")
    assert again.returncode == 0 and sorted(network.network_id for network in load_networks(tmp_path / "again")) == ids


def test_half_of_an_emoji_in_a_network_comes_through(tmp_path):
    network = train_networks()[0].to_dict()
    network["sessions"][0]["turns"][0]["content"] = "cut \ud83d"
    (tmp_path / "network.json").write_text(json.dumps(network))
    ended = launch("prepare", "read", tmp_path / "network.json", "--output", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    (file,) = (tmp_path / "out" / "networks").iterdir()
    assert load_network(file).to_dict() == load_network(tmp_path / "network.json").to_dict()


def test_the_papers_split_of_socialmembench(tmp_path):
    socialmem_tables(tmp_path / "in", paper_sizes())
    ended = launch("prepare", "read", tmp_path / "in", "--split", "paper", "--output", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert [len(load_networks(tmp_path / "out" / part)) for part in ("train", "heldout")] == [10, 10]
    # The made-up tables say the same in every network, which is worth a warning.
    assert "word for word" in ended.stdout


def test_a_part_can_be_held_out(tmp_path):
    socialmem_tables(tmp_path / "in", {"grp_1": 1, "grp_2": 1})
    ended = launch("prepare", "read", tmp_path / "in", "--heldout", "grp_2", "--output", tmp_path / "out")
    assert ended.returncode == 0
    assert [network.network_id for network in load_networks(tmp_path / "out" / "heldout")] == ["grp_2"]
    assert "--heldout: grp_3" in refused("prepare", "read", tmp_path / "in", "--heldout", "grp_3", "--output", tmp_path / "o")


def test_bad_input_ends_with_2_and_writes_nothing(tmp_path):
    (tmp_path / "a.csv").write_text("time,name\n2024-05-01,A\n")
    output = tmp_path / "out"
    assert "a.csv: line 1: has no column for content" in refused("prepare", "read", tmp_path / "a.csv", "--output", output)
    assert "write it as OURS=THEIRS" in refused("prepare", "read", tmp_path / "a.csv", "--column", "x", "--output", output)
    assert "no such file" in refused("prepare", "read", tmp_path / "absent", "--output", output)
    assert "--gap-hours" in refused("prepare", "read", tmp_path / "a.csv", "--gap-hours", "0", "--output", output)
    assert "not empty" in refused("prepare", "read", tmp_path / "a.csv", "--output", tmp_path)
    assert "is not one of auto, " in refused("prepare", "read", tmp_path / "a.csv", "--format", "telegraph", "--output", output)
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_the_published_artefact_with_its_teachers(tmp_path, shared_data):
    ended = launch("prepare", "read", shared_data / "speakermem_r1", "--output", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    networks = {network.network_id: network for network in load_networks(tmp_path / "out" / "networks")}
    assert len(networks) == 8
    for file in (tmp_path / "out" / "trajectories").iterdir():
        network = networks[file.stem]
        assert len(load_trajectory(file, network).states) == len(network.segments())
    assert "the teacher writes Italian" in ended.stdout


@pytest.mark.parametrize("network_id", ["../../escaped", "a/b", "/tmp/escaped", "..", "-x", "ü" * 300, "CON: 50%"])
def test_an_id_leads_into_no_other_folder_and_is_no_longer_than_a_files_name(tmp_path, network_id):
    (network,) = train_networks()[-1:]
    document = network.to_dict()
    document["meta"]["network_id"] = network_id
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "n.json").write_text(json.dumps(document))
    ended = launch("prepare", "read", tmp_path / "in", "--output", tmp_path / "x" / "out")
    assert ended.returncode == 0, ended.stderr
    assert [found.network_id for found in load_networks(tmp_path / "x" / "out" / "networks")] == [network_id]
    assert {file.name for file in tmp_path.iterdir()} == {"in", "x"}
    assert {file.name for file in (tmp_path / "x" / "out").iterdir()} == {"networks", "inventory.json", "inventory.txt"}


def test_handwritten_actions(tmp_path):
    (network,) = train_networks()[-1:]
    (tmp_path / "n.json").write_text(json.dumps(network.to_dict()))
    speaker = network.messages[0].speaker
    add = {
        "action": "ADD",
        "owner": speaker,
        "source": speaker,
        "layer": "per_speaker_core",
        "utype": "fact",
        "content": "likes tea",
    }
    positions = [{"actions": [add]}] + [{"actions": [{"action": "NOOP"}]}] * (len(network.segments()) - 1)
    (tmp_path / "a.yaml").write_text(json.dumps({"positions": positions}))
    ended = launch(
        "prepare", "handwritten", tmp_path / "a.yaml", "--network", tmp_path / "n.json", "--output", tmp_path / "t.json"
    )
    assert ended.returncode == 0, ended.stderr
    assert [r.content for r in load_trajectory(tmp_path / "t.json", network).states[-1].derived()] == ["likes tea"]
    again = refused(
        "prepare", "handwritten", tmp_path / "a.yaml", "--network", tmp_path / "n.json", "--output", tmp_path / "t.json"
    )
    assert "exists" in again


def chat(folder, name="chat"):
    """A network of two positions."""
    folder.mkdir(exist_ok=True)
    (folder / "source.txt").write_text(WHATSAPP)
    launch("prepare", "read", folder / "source.txt", "--output", folder / name)
    return folder / name / "networks"


def ann(content):
    return {"action": "ADD", "owner": "Ann", "source": "Ann", "layer": "per_speaker_core", "utype": "fact", "content": content}


WRONG = {**ann("x"), "owner": "Zoe"}


@pytest.mark.endpoint
def test_teach_repairs_writes_reviews_and_goes_on(tmp_path):
    networks, output = chat(tmp_path), tmp_path / "taught"
    script = Script(error(500), ok({"actions": [WRONG]}), ok({"actions": [ann("Ann lives in Leeds")]}), error(401, "no key"))
    with serving(script) as url:
        arguments = ("prepare", "teach", networks, "--model", "m", "--base-url", url, "--output", output, "--concurrency", 1)
        first = launch(*arguments, OPENAI_API_KEY="top-secret")
        assert first.returncode == 1 and "401" in first.stderr and "Traceback" not in first.stderr
        assert not (output / "trajectories").exists()
        asked = len(script.requests)
        script.replies[-1] = ok({"actions": [{"action": "NOOP"}, WRONG]})
        script.replies += [ok({"actions": [WRONG]})]
        second = launch(*arguments, OPENAI_API_KEY="top-secret")
    assert second.returncode == 0, second.stderr
    # Position 0 came from the cache: only position 1 was asked, three times.
    assert len(script.requests) == asked + 3
    (network,) = load_networks(networks)
    trajectory = load_trajectory(output / "trajectories" / f"{network.network_id}.json", network)
    assert trajectory.actions == ([ann("Ann lives in Leeds")], [{"action": "NOOP"}])
    review = (output / "review" / f"{network.network_id}.md").read_text()
    assert "owner is not in the roster" in review and "3 tries" in review
    record = json.loads((output / "teach.json").read_text())
    assert record["tokens"]["write"]["calls"] == 5 and record["tokens"]["write"]["input_tokens"] == 500
    assert record["networks"][0]["refused"] == 1 and record["networks"][0]["repaired"] == 2
    everything = b"".join(file.read_bytes() for file in output.rglob("*") if file.is_file())
    assert b"top-secret" not in everything and "top-secret" not in first.stderr + second.stdout + second.stderr


@pytest.mark.endpoint
def test_teach_keeps_to_its_budget_and_to_its_job(tmp_path):
    networks, output = chat(tmp_path), tmp_path / "taught"
    with serving(Script(ok({"actions": [{"action": "NOOP"}]}))) as url:
        arguments = ("prepare", "teach", networks, "--model", "m", "--base-url", url, "--output", output)
        spent = launch(*arguments, "--token-budget", 50)
        assert spent.returncode == 1 and "--token-budget" in spent.stderr
        assert launch(*arguments).returncode == 0
        assert "another model" in refused(*arguments[:3], "--model", "other", "--base-url", url, "--output", output)
    assert "OPENAI_API_KEY" in refused(
        "prepare", "teach", networks, "--model", "m", "--output", tmp_path / "new", OPENAI_API_KEY="", OPENAI_BASE_URL=""
    )


def test_the_networks_that_teach_reads_are_native(tmp_path):
    networks = chat(tmp_path)
    assert load_network(next(networks.iterdir())).network_id == "source"
