"""Sources of Writers: how rows are named, folders found, and outputs identified."""

import json
import shutil

import pytest

from memory_env import corpus
from memory_env.datafile import DataError
from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings
from memory_env.replay import Completion
from tests.memory_env.query.chat_server import Script, ok, serving
from writer_rl.config import EvaluationConfig
from writer_rl.evaluation.checkpoint_writer import checkpoint_folder, checkpoint_identity
from writer_rl.evaluation.memories import WrittenMemory
from writer_rl.evaluation.prompt_file import prompt_path
from writer_rl.evaluation.writers import WriterSpec, open_writer, write_networks

CONFIG = EvaluationConfig()


def no_client(model):
    raise AssertionError("no endpoint was asked for")


@pytest.mark.parametrize(
    "text, name, sources",
    [
        ("RL=a/b,c/d", "RL", ("a/b", "c/d")),
        ("teacher", "teacher", ("teacher",)),
        ("runs/demo/grpo", "grpo", ("runs/demo/grpo",)),
        ("LLM=endpoint:vendor/model", "LLM", ("endpoint:vendor/model",)),
        ("w/o S2=none", "w/o S2", ("none",)),
    ],
)
def test_a_row_is_a_name_and_a_source_per_seed(text, name, sources):
    assert WriterSpec.parse(text) == WriterSpec(name, sources)


@pytest.mark.parametrize("text", ["", "RL=", "=a", "RL=,", "t=teacher,teacher"])
def test_other_rows_are_refused(text):
    with pytest.raises(DataError, match="--writer"):
        WriterSpec.parse(text)


def model(folder, weights=b"1"):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def test_a_folder_may_be_an_export_a_checkpoint_or_a_run(tmp_path):
    export = model(tmp_path / "export")
    assert checkpoint_folder(str(export)) == export
    for number in ("000003", "000012"):
        model(tmp_path / "run" / "checkpoints" / number / "model")
        (tmp_path / "run" / "checkpoints" / number / "state.json").write_text("{}")
    (tmp_path / "run" / "checkpoints" / "latest").write_text("000012\n")
    newest = tmp_path / "run" / "checkpoints" / "000012" / "model"
    assert checkpoint_folder(str(tmp_path / "run")) == newest
    assert checkpoint_folder(str(newest.parent)) == newest
    with pytest.raises(DataError, match="no model there"):
        checkpoint_folder(str(tmp_path / "nothing"))


def test_the_prompt_is_the_configured_one_else_the_folders_else_the_built_in_one(tmp_path):
    folder = model(tmp_path / "export")
    assert prompt_path(CONFIG, folder).name == "writer.jinja"
    (folder / "prompt.jinja").write_text("{{ budget }}")
    assert prompt_path(CONFIG, folder) == folder / "prompt.jinja"
    configured = CONFIG.model_copy(update={"data": CONFIG.data.model_copy(update={"prompt": str(tmp_path / "own.txt")})})
    assert prompt_path(configured, folder) == tmp_path / "own.txt"


def test_the_identity_follows_weights_prompt_and_settings_not_the_place(tmp_path):
    folder = model(tmp_path / "a")
    identity = checkpoint_identity(folder, CONFIG)
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert checkpoint_identity(moved, CONFIG) == identity
    longer = CONFIG.model_copy(update={"rollout": CONFIG.rollout.model_copy(update={"max_new_tokens": 7})})
    other_prompt = shutil.copytree(folder, tmp_path / "prompted")
    (other_prompt / "prompt.jinja").write_text("{{ budget }}")
    others = [
        checkpoint_identity(model(tmp_path / "b", b"2"), CONFIG),
        checkpoint_identity(folder, longer),
        checkpoint_identity(other_prompt, CONFIG),
    ]
    assert len({identity, *others}) == 4


def written(writer, networks):
    made = write_networks(writer, networks, CONFIG.data, concurrency=2)
    return {network.network_id: completions for network, completions in made}


def test_the_teacher_writes_its_reference_and_nobody_writes_nothing():
    network = corpus.heldout_networks()[0]
    teacher = written(open_writer("teacher", CONFIG, no_client, [network]), [network])[network.network_id]
    state = WrittenMemory.of(network, teacher).state
    reference = corpus.teacher(network).states[-1]
    assert sorted(r.content for r in state.heads()) == sorted(r.content for r in reference.heads())
    nobody = written(open_writer("none", CONFIG, no_client), [network])[network.network_id]
    memory = WrittenMemory.of(network, nobody)
    assert memory.state.derived() == () and len(memory.state.verbatim()) == len(network.messages)
    assert all(step.report.json_valid and not step.report.errors for step in memory.steps)


@pytest.mark.endpoint
def test_a_model_behind_an_endpoint_writes_with_the_memory_it_has_so_far(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    network = corpus.heldout_networks()[-1]
    speaker = network.messages[0].speaker
    add = {
        "action": "ADD",
        "owner": speaker,
        "source": speaker,
        "layer": "per_speaker_core",
        "utype": "fact",
        "content": "MARKER",
    }
    script = Script(ok({"notes": []}), ok({"actions": [add]}), ok({"actions": [{"action": "NOOP"}]}))
    with serving(script) as url:
        client = EndpointClient(EndpointSettings("m", url, backoff_s=0.01))
        completions = written(open_writer("endpoint:m", CONFIG, lambda model: client), [network])[network.network_id]
    assert len(completions) == len(network.segments()) == len(script.requests) - 1
    assert "MARKER" not in json.dumps(script.requests[1]) and "MARKER" in json.dumps(script.requests[2])
    assert [record.content for record in WrittenMemory.of(network, completions).state.heads()] == ["MARKER"]
    assert client.ledger.stages()["write"].calls == len(completions)


def test_a_runs_checkpoint_is_read_with_the_prompt_of_the_run(tmp_path):
    folder = tmp_path / "run" / "checkpoints" / "000005" / "model"
    folder.mkdir(parents=True)
    assert prompt_path(CONFIG, folder).name == "writer.jinja"
    (tmp_path / "run" / "config.yaml").write_text(f"data: {{prompt: {tmp_path / 'own.txt'}}}\n")
    assert prompt_path(CONFIG, folder) == tmp_path / "own.txt"
    (folder / "prompt.jinja").write_text("x")
    assert prompt_path(CONFIG, folder) == folder / "prompt.jinja"


def test_the_teacher_writes_about_its_own_networks_only():
    network, other = corpus.heldout_networks()[:2]
    with pytest.raises(DataError, match=f"nothing about {other.network_id}"):
        written(open_writer("teacher", CONFIG, no_client, [network]), [other])


class Counting:
    """Says at each position how many records it saw there."""

    identity = "counting"

    def write(self, state, segment, network_id=""):
        speaker = segment.messages[0].speaker
        record = {"owner": speaker, "source": speaker, "layer": "per_speaker_core", "utype": "fact"}
        content = f"{network_id} saw {len(state.derived())}"
        return Completion(json.dumps({"actions": [{"action": "ADD", "content": content, **record}]}))

    def close(self):
        pass


@pytest.mark.parametrize("concurrency", [1, 3])
def test_any_writer_writes_networks_each_from_its_own_memory_and_in_their_order(concurrency):
    networks = list(corpus.heldout_networks()[:4])
    found = list(write_networks(Counting(), networks, CONFIG.data, concurrency))
    assert [network for network, _ in found] == networks
    for network, completions in found:
        contents = [record.content for record in WrittenMemory.of(network, completions).state.derived()]
        assert contents == [f"{network.network_id} saw {n}" for n in range(len(network.segments()))]
