"""vLLM in a process of its own: two ranks' engines on one server, weights through files, death and return."""

import os
import signal
import socket
import threading
from multiprocessing.connection import Client
from types import SimpleNamespace

import pytest

from rollout.engine import EngineDied, EngineError, EngineStateError, PromptTooLong
from rollout.sync import module_logprobs
from rollout.vllm.client import VLLMServerEngine
from rollout.vllm.server import VLLMServer, dialled, read_server_state
from rollout.vllm.server_process import ServerProcess
from rollout.weights import named_weights
from tests.conftest import PATIENCE
from tests.rollout.conftest import make_model
from tests.rollout.vllm.test_engine import PROBE, SHAPE, requests, save, shake, sync


@pytest.mark.vllm
def test_two_ranks_share_a_server_that_dies_and_returns(tmp_path, tokenizer):
    trainer = make_model(seed=8, **SHAPE)
    state = tmp_path / "run" / "sampler.json"
    server = ServerProcess(["--model", save(trainer, tokenizer, tmp_path / "model"), "--max-model-len", "256"], state)
    leader = VLLMServerEngine(state, server=server)
    follower = VLLMServerEngine(state, leader=False, patience_s=120)
    try:
        assert os.stat(state).st_mode & 0o077 == 0, "the key is the owner's alone"
        shake(trainer)
        versions = []
        waiting = threading.Thread(
            target=lambda: (follower.update_weights(named_weights(trainer), 1), versions.append(follower.policy_version))
        )
        waiting.start()
        assert sync(leader, trainer, 1).max_difference <= 1e-4
        waiting.join(PATIENCE)
        assert versions == [1] and not any(p.name.startswith("writer-weights-") for p in tmp_path.iterdir())

        batch = requests(8)
        before = [g.token_ids for g in leader.generate(batch)]
        halves = {}
        ranks = [
            threading.Thread(target=lambda e=e, s=s, n=n: halves.update({n: [g.token_ids for g in e.generate(s)]}))
            for n, (e, s) in enumerate([(leader, batch[:4]), (follower, batch[4:])])
        ]
        [rank.start() for rank in ranks], [rank.join(PATIENCE) for rank in ranks]
        assert halves[0] + halves[1] == before, "each rank gets its own requests' results"

        too_long = [type(batch[0])((5,) * 300, 0, batch[0].sampling)]
        with pytest.raises(PromptTooLong, match="max_model_len is 256"):
            follower.generate(too_long)
        with pytest.raises(ValueError, match="1 parameters were not sent"):
            leader.update_weights([(n, p) for n, p in named_weights(trainer) if n != "lm_head.weight"], 2)
        assert [g.token_ids for g in leader.generate(batch)] == before, "a refused transfer never reached the server"

        leader.sleep()
        with pytest.raises(EngineStateError, match="asleep"):
            follower.generate(batch)
        follower.wake()

        os.kill(server.process.pid, signal.SIGKILL)
        with pytest.raises(EngineDied, match="server is gone"):
            leader.generate(batch)
        leader.restart()
        with pytest.raises(EngineDied, match="server is gone"):
            follower.generate(batch)
        follower.restart()
        assert sync(leader, trainer, 1).max_difference <= 1e-4
        assert [g.token_ids for g in follower.generate(batch)] == before, "the same seeds repeat the round"
        assert leader.generate([]) == []
    finally:
        follower.close()
        pid = server.process.pid if server.process else None
        leader.close()
    assert not state.exists() and not (pid and os.path.exists(f"/proc/{pid}"))
    with pytest.raises(EngineStateError, match="closed"):
        leader.generate([])
    assert module_logprobs(trainer)([(r.prompt_ids, (5,)) for r in PROBE.requests])


def test_a_missing_server_is_explained(tmp_path):
    with pytest.raises(EngineError, match="no state file of a running sampler server.*launch/sampler.py --state"):
        VLLMServerEngine(tmp_path / "none.json")
    stale = tmp_path / "stale.json"
    stale.write_text('{"host": "127.0.0.1", "port": 1, "key": "00", "pid": 1}')
    with pytest.raises(EngineDied, match="no sampler server answers at 127.0.0.1:1"):
        VLLMServerEngine(stale)


def test_a_server_that_can_not_start_says_why_at_once(tmp_path):
    server = ServerProcess(["--model", str(tmp_path / "nothing")], tmp_path / "s.json")
    with pytest.raises(EngineError, match="did not start: .*holds no tokenizer.*s.log"):
        server.start()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_state_file_holds_an_address_that_others_can_dial(tmp_path, host):
    """0.0.0.0 means every interface to who listens, and this very machine to who dials."""
    state = tmp_path / "sampler.json"
    server = VLLMServer(SimpleNamespace(close=lambda: None))
    serving = threading.Thread(target=server.serve, args=(host, 0, state))
    serving.start()
    while not state.exists():
        serving.join(0.01)
        assert serving.is_alive() or state.exists()
    address, key = read_server_state(state)
    assert address[0] != "0.0.0.0" and (host == "0.0.0.0" or address[0] == host)
    with Client(address, authkey=key) as client:
        client.send(("shutdown", ()))
        assert client.recv() == ("ok", None)
    serving.join(PATIENCE)


def test_without_a_network_the_name_of_the_machine_is_dialled(monkeypatch):
    class NoNetwork(socket.socket):
        def connect(self, address):
            raise OSError("Network is unreachable")

    monkeypatch.setattr(socket, "socket", NoNetwork)
    assert dialled("0.0.0.0") == socket.gethostname()
