"""A trained Writer behind a server: its own prompt goes out, and what comes back counts as it is."""

import itertools
import json
import threading
import time

import pytest

from memory_env import MemoryState, Network, PromptTemplate, load_networks
from memory_env.query.answer.endpoint_client import EndpointClient, EndpointSettings, EndpointUnusable
from memory_env.query.protocol import WriteError
from memory_env.replay import Completion
from rollout.writer_prompt import PromptDoesNotFit, WriterPrompt
from tests.conftest import PATIENCE
from tests.memory_env.query.chat_server import Script, error, ok, serving
from tests.writer_rl.tiny_run import ADD, NOOP, PROMPT, make_tokenizer, save_chats, save_writer
from writer_rl.config import EvaluationConfig, load_config
from writer_rl.evaluation.memories import WrittenMemory
from writer_rl.evaluation.writers import open_writer, write_networks
from writer_rl.memory.writers import open_own_writer

pytestmark = pytest.mark.endpoint


@pytest.fixture
def networks(tmp_path):
    save_chats(tmp_path, networks=3)
    return load_networks(tmp_path / "networks")


@pytest.fixture
def folder(tmp_path):
    """An export: model, tokenizer and prompt file."""
    save_writer(tmp_path / "export")
    (tmp_path / "export" / "prompt.txt").write_text(PROMPT)
    return tmp_path / "export"


def config(**changes) -> EvaluationConfig:
    return load_config("evaluate", None, [part for key, value in changes.items() for part in (f"--{key}", str(value))])


def write(source, networks, url, settings=None):
    settings = settings or config()
    writer = open_writer(
        source, settings, lambda model: EndpointClient(EndpointSettings(model, url, backoff_s=0.01, max_attempts=2))
    )
    made = write_networks(writer, networks, settings.data, settings.evaluation.concurrency)
    return [(network.network_id, completions) for network, completions in made]


def test_a_completion_is_taken_as_it_is_and_asked_for_once(networks):
    fenced, cut = "```json\n{}\n```", '{"actions": ['
    script = Script(ok(ADD), ok(fenced), ok(""), ok(cut, finish_reason="length"), ok(NOOP))
    options = {"rollout.max_new_tokens": 77, "evaluation.concurrency": 1}
    with serving(script) as url:
        found = dict(write("served:w", networks, url, config(**options)))
    names = [network.network_id for network in networks]
    assert list(found) == names
    assert found[names[0]] == [Completion(ADD), Completion(fenced)]
    assert found[names[1]][:2] == [Completion(""), Completion(cut, hit_length_limit=True)]
    assert len(script.requests) == sum(len(network.segments()) for network in networks)
    for request in script.requests:
        assert "response_format" not in request
        assert (request["model"], request["temperature"], request["max_tokens"]) == ("w", 0, 77)
        assert request["skip_special_tokens"] is False
    # The second segment is written with the memory of the first.
    assert "likes tea" not in json.dumps(script.requests[0]) and "likes tea" in json.dumps(script.requests[1])
    reports = [step.report for step in WrittenMemory.of(networks[1], found[names[1]]).steps]
    assert not reports[0].json_valid and reports[1].hit_length_limit


def test_with_the_folder_at_hand_the_prompt_is_the_trained_one_token_for_token(networks, folder):
    """The tokenizer's own markers are broken in messages, which nobody knows without it."""
    said = networks[0].to_dict()
    said["sessions"][0]["turns"][0]["content"] = "tea <pad> <unk> now"
    network = Network.from_dict(said)
    short = {"rollout.max_new_tokens": 16}
    elsewhere = {"model.tokenizer": folder, "data.prompt": folder / "prompt.txt"}
    script = Script(ok(ADD), ok(NOOP), ok(ADD), ok(NOOP))
    with serving(script) as url:
        write(f"served:{folder}", [network], url, config(**short))
        write("served:elsewhere", [network], url, config(**short, **elsewhere))
    tokenizer = make_tokenizer()
    prompt = WriterPrompt(tokenizer, PromptTemplate.load(folder / "prompt.txt"), 512 - 16)
    expected = prompt.encode(MemoryState.empty(), network.segments()[0])
    sent = tokenizer.apply_chat_template(script.requests[0]["messages"], tokenize=False, add_generation_prompt=True)
    assert tuple(tokenizer(sent, add_special_tokens=False)["input_ids"]) == expected.token_ids
    assert "<pad>" not in sent
    assert script.requests[:2] == [{**request, "model": script.requests[0]["model"]} for request in script.requests[2:]]


def test_the_server_gets_the_arguments_of_the_chat_template(networks):
    script = Script(*[ok(NOOP)] * 20)
    with serving(script) as url:
        write("served:elsewhere", networks[:1], url, config(**{"model.chat_template_kwargs": "{enable_thinking: false}"}))
    assert all(request["chat_template_kwargs"] == {"enable_thinking": False} for request in script.requests)


def test_networks_are_written_at_the_same_time_and_told_in_their_order(networks):
    everyone = threading.Barrier(len(networks), timeout=PATIENCE)  # only requests that are open together pass it
    arrived = itertools.count()

    def reply(handler, request):
        if next(arrived) < len(networks):
            everyone.wait()
        ok(NOOP)(handler, request)

    with serving(reply) as url:
        found = write("served:w", networks, url)
    assert [name for name, _ in found] == [network.network_id for network in networks]


def test_an_outage_is_never_an_empty_memory(networks):
    with serving(Script(ok(NOOP), error(404, "no such model"))) as url, pytest.raises(EndpointUnusable, match="no such model"):
        write("served:w", networks, url)
    with serving(error(400, "maximum context length is 512 tokens")) as url, pytest.raises(WriteError) as raised:
        write("served:w", networks[:1], url)
    assert "maximum context" in str(raised.value) and "chat_0, position 0" in str(raised.value)


def test_a_living_memory_is_written_segment_by_segment(networks, folder):
    segment = networks[0].segments()[0]
    with serving(Script(ok(ADD), ok("{", finish_reason="length"))) as url:
        writer = open_own_writer(f"served:{folder}", base_url=url)
        assert writer.write(MemoryState.empty(), segment) == Completion(ADD)
        assert writer.write(MemoryState.empty(), segment) == Completion("{", hit_length_limit=True)
        narrow = config(**{"rollout.max_new_tokens": 505, "data.prompt": folder / "prompt.txt"})
        with pytest.raises(PromptDoesNotFit):
            open_own_writer(f"served:{folder}", narrow, base_url=url).write(MemoryState.empty(), segment)
    assert writer.identity.startswith(f"served:{folder}:")


def test_a_long_output_is_not_taken_for_a_hung_connection():
    def slow(handler, request):
        time.sleep(0.5)
        ok(NOOP)(handler, request)

    script = Script(slow)
    with serving(script) as url:
        client = EndpointClient(EndpointSettings("w", url, request_timeout_s=0.1, deadline_s=PATIENCE))
        assert client.text("write", [{"role": "user", "content": "hello"}], 8)[:2] == (NOOP, False)
    assert len(script.requests) == 1
