"""Engines that die while a round is sampled: the round is repeated as it was, and not for ever."""

import pytest
import torch

from rollout.engine import EngineDied, Generation
from tests.writer_rl.tiny_run import NOOP, make_tokenizer, save_config
from writer_rl.config import load_config
from writer_rl.grpo.sampling import ENGINE_LIVES, GroupSampler
from writer_rl.train.data import load_training
from writer_rl.train.distributed import World
from writer_rl.train.prompt import build_prompt
from writer_rl.train.stop import StopRequested, StopSignals


class MortalEngine:
    """Writes NOOPs; dies at the given calls, and has to be restarted and synced before it writes again."""

    policy_version = 3

    def __init__(self, *deaths):
        self.deaths, self.seen, self.state = deaths, [], "synced"

    def generate(self, requests):
        assert self.state == "synced", f"asked to generate while {self.state}"
        self.seen.append([request.seed for request in requests])
        if len(self.seen) in self.deaths:
            self.state = "dead"
            raise EngineDied("generate: the vLLM engine died (RuntimeError: out of memory); restart it and sync")
        return [Generation((7, 3), NOOP, (-0.5, -0.5), "stop") for _ in requests]

    def restart(self):
        assert self.state == "dead"
        self.state = "restarted"

    def resync(self):
        self.state = "synced"


class OtherRankDies(World):
    """As if another rank's engine had died in the first try of the round."""

    tries: list = []

    def any(self, flag):
        self.tries.append(flag)
        return len(self.tries) == 1 or flag


@pytest.fixture
def sampling(tmp_path):
    config = load_config("grpo", save_config(tmp_path), [])
    tokenizer = make_tokenizer()
    data = {taught.network.network_id: taught for taught in load_training(config.data)}

    def build(engine, world=None, stop=None):
        return GroupSampler(
            config,
            world or World(0, 1, 0, torch.device("cpu")),
            stop or StopSignals(),
            data,
            engine,
            build_prompt(config.data, tokenizer, 512, config.rollout.max_new_tokens),
            resync=engine.resync,
            phase=lambda _: None,
        )

    return build, tuple(data)


def written(sampled):
    return [(name, t.index, [made.text for made in t.steps]) for name, group in sampled.items() for t in group]


@pytest.mark.parametrize("deaths", [(1,), (2,), (1, 2), (1, 3)])
def test_a_round_is_repeated_with_the_same_seeds_after_a_restart_and_a_sync(sampling, capsys, deaths):
    build, names = sampling
    calm, mortal = MortalEngine(), MortalEngine(*deaths)
    expected = build(calm).sample(names, 4)
    assert written(build(mortal).sample(names, 4)) == written(expected)
    assert len(mortal.seen) > len(calm.seen) and mortal.seen[-len(calm.seen) :] == calm.seen
    assert capsys.readouterr().out.count("it is restarted and the round goes on") == len(deaths)


def test_an_engine_that_keeps_dying_ends_the_run(sampling):
    build, names = sampling
    engine = MortalEngine(*range(1, 99))
    with pytest.raises(EngineDied, match=f"died {ENGINE_LIVES} times in one round"):
        build(engine).sample(names, 0)
    assert len(engine.seen) == ENGINE_LIVES


def test_all_ranks_sync_when_one_of_them_lost_its_engine(sampling):
    """Gathering weights is collective: a rank whose own engine lives takes part, and keeps what it has written."""
    build, names = sampling
    engine, calm = MortalEngine(), MortalEngine()
    syncs = []
    engine.resync = lambda: syncs.append(len(engine.seen))
    OtherRankDies.tries = []
    world = OtherRankDies(0, 1, 0, torch.device("cpu"))
    assert written(build(engine, world).sample(names, 0)) == written(build(calm).sample(names, 0))
    assert syncs == [len(calm.seen)] and engine.seen == calm.seen


def test_a_signal_while_writing_stops_before_anything_is_synced(sampling):
    build, names = sampling
    stop, engine = StopSignals(), MortalEngine(1)
    stop.received = 15
    engine.resync = lambda: pytest.fail("synced on the way out")
    with pytest.raises(StopRequested):
        build(engine, stop=stop).sample(names, 0)
