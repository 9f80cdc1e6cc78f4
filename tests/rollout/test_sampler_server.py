"""The sampler server's conversation, with a scripted engine behind it (the real one: test_vllm_server.py)."""

import threading
import time
from multiprocessing.connection import Client

import pytest
import torch

from rollout.engine import EngineDied, EngineStateError, Generation, GenerationRequest, PromptTooLong, SamplingParams
from rollout.vllm_client import VLLMServerEngine
from rollout.vllm_server import VLLMServer, read_state
from rollout.weights import named_weights


class ScriptedEngine:
    """Echoes prompts; knows which batches it saw and which files it was given."""

    max_model_len = 64
    policy_version = 0

    def __init__(self, model_path):
        self.model_path = model_path
        self.batches, self.loaded, self.closed = [], {}, False

    def generate(self, requests):
        self.batches.append(len(requests))
        time.sleep(0.05)
        if any(len(r.prompt_ids) >= self.max_model_len for r in requests):
            raise PromptTooLong("request 0 has a prompt of 64 tokens")
        return [Generation(r.prompt_ids, str(r.seed), (0.0,) * len(r.prompt_ids), "stop") for r in requests]

    def load_files(self, folder, version):
        from pathlib import Path

        from safetensors.torch import load_file

        for file in sorted(Path(folder).glob("*.safetensors")):
            self.loaded.update(load_file(file))
        self.policy_version = version

    def sleep(self):
        raise EngineStateError("asleep already")

    def metrics(self):
        raise RuntimeError("a bug")

    def close(self):
        self.closed = True


@pytest.fixture
def served(tmp_path, build_model):
    """(engine, state file) of a server that runs in a thread."""
    folder = tmp_path / "model"
    build_model(tie_word_embeddings=True).save_pretrained(folder)
    engine = ScriptedEngine(str(folder))
    state = tmp_path / "sampler.json"
    thread = threading.Thread(target=VLLMServer(engine).serve, args=("127.0.0.1", 0, state), daemon=True)
    thread.start()
    while not state.exists():
        time.sleep(0.01)
    yield engine, state
    if state.exists():
        address, key = read_state(state)
        with Client(address, authkey=key) as stopper:
            stopper.send(("shutdown", ()))
            stopper.recv()
    thread.join(10)
    assert engine.closed and not state.exists()


def requests(*lengths):
    return [GenerationRequest((5,) * length, length, SamplingParams()) for length in lengths]


def at_once(*jobs):
    """Run jobs in threads of their own; returns their results in order."""
    results = [None] * len(jobs)
    threads = [threading.Thread(target=lambda i=i, job=job: results.__setitem__(i, job())) for i, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return results


def test_requests_of_all_ranks_share_one_batch_and_come_back_to_their_rank(served):
    engine, state = served
    ranks = [VLLMServerEngine(state, leader=rank == 0) for rank in range(3)]
    shares = [requests(1, 2), requests(3), requests(4, 5, 6)]
    results = at_once(*(lambda r=r, s=s: r.generate(s) for r, s in zip(ranks, shares, strict=True)))
    assert [[len(g.token_ids) for g in result] for result in results] == [[1, 2], [3], [4, 5, 6]]
    assert engine.batches == [6]
    assert ranks[1].generate(requests(7))[0].text == "7", "a rank alone does not wait for ever"
    assert ranks[0].generate([]) == []


def test_followers_wait_for_the_leaders_weights(served, build_model):
    engine, state = served
    trainer = build_model(seed=4, tie_word_embeddings=True)
    leader, follower = VLLMServerEngine(state), VLLMServerEngine(state, leader=False)
    drained = []

    def watched():
        for name, tensor in named_weights(trainer):
            drained.append(name)
            yield name, tensor

    def lead():
        time.sleep(0.3)
        leader.update_weights(named_weights(trainer), 4)

    at_once(lambda: follower.update_weights(watched(), 4), lead)
    assert leader.policy_version == follower.policy_version == 4
    assert len(drained) == len(trainer.state_dict()), "gathering shards is collective: every rank drains its iterator"
    assert engine.loaded.keys() == trainer.state_dict().keys(), "the tied head is sent"
    assert all(torch.equal(engine.loaded[name], tensor) for name, tensor in trainer.state_dict().items())


def test_errors_keep_their_kind_across_the_socket(served):
    _, state = served
    client = VLLMServerEngine(state)
    with pytest.raises(PromptTooLong, match="64 tokens"):
        client.generate(requests(64))
    with pytest.raises(EngineStateError, match="asleep already"):
        client.sleep()
    with pytest.raises(Exception, match="a bug"):
        client.metrics()
    assert client.generate(requests(2))[0].token_ids == (5, 5), "the server lives on"


def test_unfit_weights_never_reach_the_server(served, build_model):
    engine, state = served
    client = VLLMServerEngine(state)
    with pytest.raises(ValueError, match="lm_head.weight among them"):
        client.update_weights(build_model(tie_word_embeddings=True).named_parameters(), 1)
    assert engine.loaded == {} and engine.policy_version == client.policy_version == 0


def test_strangers_are_turned_away(served):
    _, state = served
    address, _ = read_state(state)
    from multiprocessing import AuthenticationError

    with pytest.raises((AuthenticationError, OSError, EOFError)):
        Client(address, authkey=b"guess")
    assert VLLMServerEngine(state).generate(requests(1))


def test_a_server_that_ends_is_noticed_and_a_new_one_is_found(served, tmp_path):
    engine, state = served
    client = VLLMServerEngine(state, patience_s=20)
    address, key = read_state(state)
    with Client(address, authkey=key) as stopper:
        stopper.send(("shutdown", ()))
        stopper.recv()
    while state.exists():
        time.sleep(0.01)
    client._connection.close()
    with pytest.raises(EngineDied, match="server is gone"):
        client.generate(requests(1))
    with pytest.raises(EngineDied, match="server is gone"):
        client.generate(requests(1))
    second = ScriptedEngine(engine.model_path)

    def start_later():
        time.sleep(0.5)
        VLLMServer(second).serve("127.0.0.1", 0, state)

    thread = threading.Thread(target=start_later, daemon=True)
    thread.start()
    client.restart()
    assert client.generate(requests(3))[0].text == "3"
    engine.closed = True
