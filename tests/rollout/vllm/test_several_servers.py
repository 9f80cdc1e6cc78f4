"""Several sampler servers: requests are spread, a death costs what had not ended, and who comes back joins at the next sync."""

import json
import os
import socket
import threading
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from rollout.checksum import named_checksums
from rollout.engine import EngineDied, Generation, GenerationRequest, RolloutInputError, SamplingParams
from rollout.sync import SyncError, SyncProbe, module_logprobs, sync_and_probe
from rollout.vllm.client import VLLMServerEngine, contiguous_shares
from rollout.vllm.connection import ServerConnection
from rollout.vllm.server import VLLMServer
from rollout.weights import named_weights

SAMPLING = SamplingParams(max_new_tokens=4)


class DeterministicEngine:
    """A completion is a function of prompt, seed and weights alone, as of an engine without noise."""

    max_model_len = 64

    def __init__(self, model_path, trainer):
        self.model_path, self.trainer = model_path, trainer
        self.policy_version, self.alive, self.loads, self.sampled = 0, True, 0, []
        self.dies_after, self.dies_loading, self.flipped = None, False, ()

    def generate(self, requests, on_done):
        if not self.alive:
            raise EngineDied("generate: the vLLM engine is dead")
        for place, request in enumerate(requests):
            if self.dies_after is not None and place == self.dies_after:
                self.dies_after, self.alive = None, False
                self.when_dying()
                raise EngineDied("generate: the vLLM engine died")
            self.sampled.append(request.seed)
            token = (request.seed * 31 + sum(request.prompt_ids) + self.policy_version) % 90 + 5
            (row,) = module_logprobs(self.trainer)([(request.prompt_ids, (token,))])
            on_done(place, Generation((token,), str(token), tuple(row), "stop"))

    def when_dying(self):
        """The process lives; only its engine is gone."""

    def load_files(self, folder, version):
        if self.dies_loading:
            self.alive = False
            raise EngineDied("update_weights: the vLLM engine died")
        self.weights = {}
        for file in sorted(Path(folder).glob("*.safetensors")):
            self.weights.update(load_file(file))
        self.policy_version, self.loads = version, self.loads + 1

    def weight_checksums(self):
        return {name: value + (name in self.flipped) for name, value in named_checksums(self.weights.items()).items()}

    def restart(self):
        self.alive = True

    def sleep(self):
        pass

    def wake(self):
        pass

    def metrics(self):
        return {"prompt_tokens": 1.0, "generated_tokens": float(len(self.sampled)), "seconds": 1.0}

    def close(self):
        pass


class Fleet:
    """Servers in threads of this process, each behind a state file of its own."""

    def __init__(self, folder, trainer, model_path):
        self.folder, self.trainer, self.model_path, self.servers = folder, trainer, model_path, {}

    def start(self, *names):
        """Start servers; their state files, in order."""
        for name in names:
            server = VLLMServer(DeterministicEngine(self.model_path, self.trainer))
            self.servers[name] = server
            file = self.folder / f"{name}.json"
            threading.Thread(target=server.serve, args=("127.0.0.1", 0, file), daemon=True).start()
            while not file.exists():
                time.sleep(0.01)
        return [self.folder / f"{name}.json" for name in names]

    def engine(self, name):
        return self.servers[name].engine

    def kill_mid_batch(self, name, after):
        """The process dies once it has ended so many completions of its next batch: its connections break, nothing is said."""
        server = self.servers[name]
        server.engine.dies_after = after

        def die():
            (self.folder / f"{name}.json").unlink()
            for client in list(server.clients):
                with socket.socket(fileno=os.dup(client.fileno())) as connection:
                    connection.shutdown(socket.SHUT_RDWR)

        server.engine.when_dying = die


@pytest.fixture
def fleet(tmp_path, build_model):
    trainer = build_model(seed=3)
    trainer.save_pretrained(tmp_path / "model")
    return Fleet(tmp_path, trainer, str(tmp_path / "model"))


def requests(count):
    return [GenerationRequest((5, 9, 1 + index // 4), 100 + index, SAMPLING) for index in range(count)]


def ids(generations):
    return [generation.token_ids for generation in generations]


@pytest.fixture
def alone(fleet):
    """What one server samples."""
    engine = VLLMServerEngine(fleet.start("alone"))
    engine.update_weights(named_weights(fleet.trainer), 1)
    return ids(engine.generate(requests(16)))


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"]])
def test_requests_are_spread_and_the_samples_are_those_of_one_server(fleet, alone, names):
    engine = VLLMServerEngine(fleet.start(*names))
    engine.update_weights(named_weights(fleet.trainer), 1)
    assert engine.samplers == len(names) and ids(engine.generate(requests(16))) == alone
    shares = [fleet.engine(name).sampled for name in names]
    assert [seed for share in shares for seed in share] == list(range(100, 116)), "neighbours stay together"
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert engine.metrics()["generated_tokens"] == 16.0


@pytest.mark.parametrize("how", ["process", "engine"])
@pytest.mark.parametrize("after", [0, 3, 7])
def test_a_death_costs_what_had_not_ended_and_the_samples_are_the_same(fleet, alone, how, after):
    engine = VLLMServerEngine(fleet.start("a", "b"))
    engine.update_weights(named_weights(fleet.trainer), 1)
    if how == "process":
        fleet.kill_mid_batch("a", after)
    else:
        fleet.engine("a").dies_after = after
    assert ids(engine.generate(requests(16))) == alone
    assert fleet.engine("a").sampled == list(range(100, 100 + after))
    assert sorted(fleet.engine("b").sampled) == list(range(100 + after, 116)), "nothing is sampled twice"
    assert engine.samplers == 1
    assert ids(engine.generate(requests(4))) == alone[:4], "the next position goes to whom is left"


def test_without_a_server_left_the_round_is_begun_again(fleet, alone):
    engine = VLLMServerEngine(fleet.start("a", "b"), patience_s=3600)
    engine.update_weights(named_weights(fleet.trainer), 1)
    for name in "ab":
        fleet.engine(name).dies_after = 2
    with pytest.raises(EngineDied):
        engine.generate(requests(16))
    engine.restart()
    engine.update_weights(named_weights(fleet.trainer), 1)
    assert ids(engine.generate(requests(16))) == alone


def test_who_came_back_and_who_is_new_join_at_the_next_sync_and_not_before(fleet, alone):
    files = fleet.start("a", "b")
    engine = VLLMServerEngine([*files, fleet.folder / "later.json"])
    engine.update_weights(named_weights(fleet.trainer), 1)
    fleet.kill_mid_batch("a", 1)
    engine.generate(requests(16))
    fleet.start("a", "later")  # the same file, another process, weights that nobody knows
    assert ids(engine.generate(requests(16))) == alone
    assert fleet.engine("a").sampled == fleet.engine("later").sampled == []
    engine.update_weights(named_weights(fleet.trainer), 1)
    assert ids(engine.generate(requests(16))) == alone and engine.samplers == 3
    assert all(fleet.engine(name).sampled for name in ("a", "b", "later"))


def test_an_engine_that_died_in_a_living_server_joins_at_the_next_sync(fleet, alone):
    engine = VLLMServerEngine(fleet.start("a", "b"))
    engine.update_weights(named_weights(fleet.trainer), 1)
    fleet.engine("a").dies_after = 0
    engine.generate(requests(4))
    engine.update_weights(named_weights(fleet.trainer), 1)
    assert fleet.engine("a").alive and engine.samplers == 2 and ids(engine.generate(requests(16))) == alone


def test_every_rank_samples_from_the_servers_that_took_the_weights(fleet, alone):
    """One dies while it loads: the leader knows, and the other rank, which is still connected to it, must not ask it."""
    files = fleet.start("a", "b")
    leader, follower = VLLMServerEngine(files), VLLMServerEngine(files, leader=False)
    fleet.engine("b").dies_loading = True
    following = threading.Thread(target=lambda: follower.update_weights(named_weights(fleet.trainer), 1))
    following.start()
    leader.update_weights(named_weights(fleet.trainer), 1)
    following.join()
    assert leader.samplers == follower.samplers == 1 and follower.policy_version == 1
    fleet.engine("b").alive = True  # as if it answered
    assert ids(follower.generate(requests(16))) == alone and fleet.engine("b").sampled == []


def test_a_server_that_hangs_is_found_out_and_its_work_is_done_by_the_others(fleet, alone):
    """It accepts connections and never answers, like a stopped process or a machine that froze."""
    files = fleet.start("a", "b")
    engine = VLLMServerEngine(files)
    engine.update_weights(named_weights(fleet.trainer), 1)
    hanging = engine._servers[0]
    hanging.every_s = hanging.patience_s = 0.05
    stuck = threading.Event()
    fleet.engine("a").generate = lambda *_: stuck.wait()
    hanging._health.close()
    listener = Listener(("127.0.0.1", 0), authkey=b"x")
    threading.Thread(target=listener.accept, daemon=True).start()
    hanging._health = Client(listener.address, authkey=b"x")
    assert ids(engine.generate(requests(16))) == alone and engine.samplers == 1
    stuck.set()


def test_a_hanging_server_does_not_keep_a_run_from_starting_or_syncing(fleet, alone, monkeypatch):
    """It takes connections and never says a word."""
    monkeypatch.setattr("rollout.vllm.client.ServerConnection", lambda file: _quick(file, "hung" in file.name))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        state = {"host": "127.0.0.1", "port": silent.getsockname()[1], "key": "00", "pid": 1}
        (fleet.folder / "hung.json").write_text(json.dumps(state))
        engine = VLLMServerEngine([fleet.folder / "hung.json", *fleet.start("a")])
        engine.update_weights(named_weights(fleet.trainer), 1)
        assert ids(engine.generate(requests(16))) == alone and engine.samplers == 1


def _quick(file, hung):
    return ServerConnection(file, patience_s=0.05) if hung else ServerConnection(file)


def test_the_proof_of_a_sync_reaches_every_server(fleet):
    engine = VLLMServerEngine(fleet.start("a", "b", "c"))
    probe = SyncProbe.of([(5, 9, 1), (7, 7)], new_tokens=2)

    def sync(version):
        sums = lambda: named_checksums(named_weights(fleet.trainer))  # noqa: E731
        logprobs = module_logprobs(fleet.trainer)
        return sync_and_probe(engine, named_weights(fleet.trainer), version, probe, logprobs, trainer_checksums=sums)

    assert sync(1).tokens == 6
    assert all(fleet.engine(name).sampled == [0, 1] for name in "abc")
    fleet.engine("c").flipped = ("model.norm.weight",)
    with pytest.raises(SyncError, match=r"1 of .*model\.norm\.weight first"):
        sync(2)


def test_servers_of_different_models_are_refused(fleet, tmp_path, build_model):
    build_model(seed=3, hidden_size=64).save_pretrained(tmp_path / "wider")
    first = fleet.start("a")
    fleet.model_path = str(tmp_path / "wider")
    with pytest.raises(RolloutInputError, match=r"rollout\.server.*different shapes"):
        VLLMServerEngine([*first, *fleet.start("b")])


@given(st.lists(st.integers(), max_size=40), st.integers(1, 9))
def test_shares_are_runs_of_almost_equal_length(places, count):
    shares = contiguous_shares(places, count)
    assert len(shares) == count and [place for share in shares for place in share] == places
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
