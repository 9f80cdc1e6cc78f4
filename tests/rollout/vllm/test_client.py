"""The sampler server's conversation, with a scripted engine behind it (the real one: test_server.py)."""

import threading
import time
from multiprocessing.connection import Client

import pytest
import torch

from rollout.engine import EngineDied, EngineStateError, Generation, GenerationRequest, PromptTooLong, SamplingParams
from rollout.vllm import server
from rollout.vllm.client import VLLMServerEngine
from rollout.vllm.server import VLLMServer, read_server_state
from rollout.weights import named_weights
from tests.conftest import PATIENCE


class ScriptedEngine:
    """Echoes prompts; knows which batches it saw and which files it was given."""

    max_model_len = 64
    policy_version = 0
    alive = True

    def __init__(self, model_path):
        self.model_path = model_path
        self.batches, self.loaded, self.closed, self.restarts = [], {}, False, 0

    def generate(self, requests, on_done):
        self.batches.append(len(requests))
        time.sleep(0.05)
        if not self.alive:
            raise EngineDied("generate: the vLLM engine is dead")
        if any(len(r.prompt_ids) >= self.max_model_len for r in requests):
            raise PromptTooLong("request 0 has a prompt of 64 tokens")
        for place, r in enumerate(requests):
            on_done(place, Generation(r.prompt_ids, str(r.seed), (0.0,) * len(r.prompt_ids), "stop"))

    def load_files(self, folder, version):
        from pathlib import Path

        from safetensors.torch import load_file

        for file in sorted(Path(folder).glob("*.safetensors")):
            self.loaded.update(load_file(file))
        self.policy_version = version

    def sleep(self):
        raise EngineStateError("asleep already")

    def wake(self):
        if not self.alive:
            raise EngineDied("wake: the vLLM engine is dead")

    def restart(self):
        self.alive, self.restarts = True, self.restarts + 1

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
        address, key = read_server_state(state)
        with Client(address, authkey=key) as stopper:
            stopper.send(("shutdown", ()))
            stopper.recv()
    thread.join(PATIENCE)
    while state.exists():  # a second server of the test's own takes its file away after it has answered
        time.sleep(0.01)
    assert engine.closed


def requests(*lengths):
    return [GenerationRequest((5,) * length, length, SamplingParams()) for length in lengths]


def at_once(*jobs):
    """Run jobs in threads of their own; returns their results in order."""
    results = [None] * len(jobs)
    threads = [threading.Thread(target=lambda i=i, job=job: results.__setitem__(i, job())) for i, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return results


def test_requests_of_all_ranks_share_one_batch_and_come_back_to_their_rank(served, monkeypatch):
    engine, state = served
    monkeypatch.setattr(server, "GATHER_SECONDS", PATIENCE)  # however late a rank is on a busy machine
    ranks = [VLLMServerEngine(state, leader=rank == 0) for rank in range(3)]
    shares = [requests(1, 2), requests(3), requests(4, 5, 6)]
    results = at_once(*(lambda r=r, s=s: r.generate(s) for r, s in zip(ranks, shares, strict=True)))
    assert [[len(g.token_ids) for g in result] for result in results] == [[1, 2], [3], [4, 5, 6]]
    assert engine.batches == [6]
    monkeypatch.setattr(server, "GATHER_SECONDS", 0.05)
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


def test_weights_that_an_earlier_run_left_under_the_same_version_do_not_count(served, build_model):
    """A follower that trusted the version alone would go on before its leader has sent anything."""
    engine, state = served
    earlier = VLLMServerEngine(state)
    earlier.update_weights(named_weights(build_model(seed=1, tie_word_embeddings=True)), 4)
    earlier.close()
    trainer = build_model(seed=4, tie_word_embeddings=True)
    leader, follower = VLLMServerEngine(state), VLLMServerEngine(state, leader=False)
    order = []

    def follow():
        follower.update_weights(named_weights(trainer), 4)
        order.append("follower")

    def lead():
        time.sleep(0.3)
        order.append("leader")
        leader.update_weights(named_weights(trainer), 4)

    at_once(follow, lead)
    assert order == ["leader", "follower"]
    # A leader that is done before the follower asks, and the same version once more.
    leader.update_weights(named_weights(trainer), 4)
    at_once(follow)


def test_an_engine_that_died_inside_its_server_is_started_anew_once_and_synced(served, build_model):
    engine, state = served
    trainer = build_model(seed=4, tie_word_embeddings=True)
    leader, follower = VLLMServerEngine(state), VLLMServerEngine(state, leader=False)
    at_once(*(lambda e=e: e.update_weights(named_weights(trainer), 2) for e in (leader, follower)))
    engine.alive = False
    for rank in (leader, follower):
        with pytest.raises(EngineDied, match="is dead"):
            rank.generate(requests(2))
    leader.restart(), follower.restart()
    assert engine.alive and engine.restarts == 1
    waited = []

    def lead():
        time.sleep(0.3)
        waited.append("leader")
        leader.update_weights(named_weights(trainer), 2)

    at_once(lambda: (follower.update_weights(named_weights(trainer), 2), waited.append("follower")), lead)
    assert waited == ["leader", "follower"], "the version is the old one, the weights are not there yet"
    assert follower.generate(requests(3))[0].text == "3"


def test_a_death_during_the_update_is_for_the_next_sync_to_mend(served, build_model):
    """Between rollouts a rank only calls sleep, wake and metrics: none of them may end the run."""
    engine, state = served
    client = VLLMServerEngine(state)
    engine.alive = False
    client.wake()
    client.update_weights(named_weights(build_model(tie_word_embeddings=True)), 7)
    assert engine.restarts == 1 and engine.policy_version == 7
    address, key = read_server_state(state)
    with Client(address, authkey=key) as stopper:
        stopper.send(("shutdown", ()))
        stopper.recv()
    while state.exists():
        time.sleep(0.01)
    client._servers[0]._calls.close()
    client.sleep(), client.wake()
    assert client.metrics() == {"prompt_tokens": 0.0, "generated_tokens": 0.0, "seconds": 0.0}


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
    address, _ = read_server_state(state)
    from multiprocessing import AuthenticationError

    with pytest.raises((AuthenticationError, OSError, EOFError)):
        Client(address, authkey=b"guess")
    assert VLLMServerEngine(state).generate(requests(1))


def test_a_server_that_ends_is_noticed_and_a_new_one_is_found(served, tmp_path):
    engine, state = served
    client = VLLMServerEngine(state, patience_s=PATIENCE)
    address, key = read_server_state(state)
    with Client(address, authkey=key) as stopper:
        stopper.send(("shutdown", ()))
        stopper.recv()
    while state.exists():
        time.sleep(0.01)
    client._servers[0]._calls.close()
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
