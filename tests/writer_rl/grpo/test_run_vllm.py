"""Whole runs of launch/grpo.py with the real vLLM engine: every sync is proven, seeds repeat, a death costs a round at most."""

import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rollout.vllm.server_process import ServerProcess
from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import save_config, save_writer

pytestmark = pytest.mark.vllm

UPDATES = 5
GROUP = 8
# vLLM's CPU attention takes heads of 32 dimensions at least.
SIZES = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("grpo-vllm")
    save_config(
        path,
        {
            "rollout.engine": "vllm",
            "rollout.group_size": GROUP,
            "rollout.temperature": 0.8,
            "rollout.top_p": 0.95,
            "trainer.steps": UPDATES,
            "trainer.lr": 0.003,
            "trainer.keep_checkpoints": 9,
        },
    )
    save_writer(path / "writer", **SIZES)
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """An uninterrupted run of five updates."""
    return run(folder, "whole")


def run(folder, name, *overrides, event="", ranks=1):
    log = folder / f"{name}.log"
    arguments = [folder / "config.yaml", "--output_dir", str(folder / name), *overrides]
    codes = train(*arguments, ranks=ranks, event=event, output=log)
    assert codes == [0] * ranks, [log.with_suffix(f".{rank}").read_text()[-2000:] for rank in range(ranks)]
    return folder / name


def records(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def completions(path, number):
    """(trajectory, position) -> sampled ids of a round."""
    lines = (path / "trajectories" / f"round-{number:06d}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return {(r["network_id"], r["trajectory"], r["position"]): r["completion_ids"] for r in found}


def test_five_updates_are_each_followed_by_a_sync_within_the_bound(whole):
    rounds = records(whole)
    assert [r["round"] for r in rounds] == list(range(1, UPDATES + 1))
    assert all(r["policy/steps_taken"] == 2 and r["policy/grad_norm"] > 0 for r in rounds), "every round moves the weights"
    assert [r["policy/version"] for r in rounds] == list(range(1, UPDATES + 1))
    assert all(0 <= r["rollout/sync_mean_difference"] <= r["rollout/sync_max_difference"] <= 1e-4 for r in rounds)


def test_the_mismatch_of_sampler_and_trainer_is_logged_each_update(whole):
    for r in records(whole):
        assert r["rollout/mismatch_tokens"] > 0 and r["rollout/mismatch_dropped"] == 0
        assert 0 <= r["rollout/mismatch_mean"] <= r["rollout/mismatch_max"] <= 1e-4
        assert 0 <= r["rollout/mismatch_k3"] < 1e-8
        assert r["rollout/mismatch_ratio_min"] <= r["rollout/mismatch_ratio_mean"] <= r["rollout/mismatch_ratio_max"]
        assert math.isclose(r["rollout/mismatch_ratio_mean"], 1, abs_tol=1e-4)
        assert 0 <= r["perf/prefix_cache_hit_rate"] < 1


def test_the_trajectories_of_a_group_are_not_all_equal(whole):
    written = completions(whole, 1)
    for network, _, position in written:
        assert len({tuple(written[network, g, position]) for g in range(GROUP)}) > 1


def test_the_same_seed_gives_the_same_first_round_and_going_on_the_same_second(folder, whole):
    """The second round of a resumed run is sampled by an engine that had loaded the old weights from disk."""
    again = run(folder, "again", "--trainer.steps", "1")
    assert completions(again, 1) == completions(whole, 1)
    run(folder, "again", "--trainer.steps", "2")
    assert records(again)[1]["rollout/mismatch_max"] <= 1e-4
    assert completions(again, 2) == completions(whole, 2) != completions(whole, 1)


@pytest.mark.parametrize("call", [3, 5], ids=["second position", "second round"])
def test_an_engine_that_dies_mid_round_is_restarted_and_the_round_is_the_same(folder, whole, call):
    """Calls of vLLM: the probe, a position each of round 1, the probe again, ..."""
    name = f"died-{call}"
    died = run(folder, name, "--trainer.steps", "2", event=f"ERROR vllm {call}")
    printed = (folder / f"{name}.0").read_text()
    assert printed.count("the vLLM engine died (RuntimeError: it fell over)") == 1 and "restarted" in printed
    assert [completions(died, n) for n in (1, 2)] == [completions(whole, n) for n in (1, 2)]
    for ours, theirs in zip(records(died), records(whole), strict=False):
        assert ours["policy/steps_taken"] == 2 and ours["rollout/sync_max_difference"] <= 1e-4
        assert math.isclose(ours["reward/return/mean"], theirs["reward/return/mean"], abs_tol=1e-9)


@pytest.mark.ranks
def test_two_ranks_under_zero_3_with_an_engine_each_write_what_one_writes(folder, whole):
    """Shards are gathered group by group into both engines; the second round shows that they arrived."""
    both = run(folder, "zero3", "--trainer.steps", "2", "--trainer.zero_stage", "3", ranks=2)
    for ours in records(both):
        assert ours["policy/steps_taken"] == 2 and ours["rollout/sync_max_difference"] <= 1e-4
        assert ours["rollout/mismatch_max"] <= 1e-4
    assert completions(both, 1) == completions(whole, 1)


@pytest.mark.ranks
def test_two_ranks_share_a_sampler_server(folder, whole):
    state = folder / "sampler.json"
    server = ServerProcess(["--model", str(folder / "writer")], state)
    server.start()
    try:
        both = run(folder, "server", "--trainer.steps", "2", "--rollout.server", str(state), ranks=2)
    finally:
        server.stop()
    assert all(r["rollout/sync_max_difference"] <= 1e-4 and r["rollout/mismatch_max"] <= 1e-4 for r in records(both))
    assert completions(both, 1) == completions(whole, 1)


def test_two_servers_one_of_them_killed_write_what_one_engine_writes(folder, whole):
    """The second is killed once the first round is done; the run goes on with the other, and its samples are the same."""
    servers = [ServerProcess(["--model", str(folder / "writer")], folder / f"sampler-{name}.json") for name in "ab"]
    with ThreadPoolExecutor() as pool:
        list(pool.map(ServerProcess.start, servers))

    def kill_the_second():
        while not ((metrics := folder / "two" / "metrics.jsonl").is_file() and metrics.read_text().strip()):
            time.sleep(0.05)
        servers[1].process.kill()

    killing = threading.Thread(target=kill_the_second, daemon=True)
    killing.start()
    try:
        two = run(folder, "two", "--rollout.server", json.dumps([str(server.state_file) for server in servers]))
    finally:
        for server in servers:
            server.stop()
    killing.join()
    for number in range(1, UPDATES + 1):
        assert completions(two, number) == completions(whole, number)
    assert "the sampler server is gone" in (folder / "two.0").read_text()
