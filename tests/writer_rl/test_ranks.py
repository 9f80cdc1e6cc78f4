"""Two ranks over gloo: the gradient of one, decisions taken together, interrupted runs that end the same."""

import json
import os
import subprocess
import sys

import pytest
import torch

from tests.conftest import PATIENCE
from tests.writer_rl.grpo.test_ratio import plain_sampler_gradient
from tests.writer_rl.grpo.test_run import assert_same_run, records
from tests.writer_rl.grpo.test_update import plain_objective
from tests.writer_rl.processes import ROOT, train
from tests.writer_rl.rank_work import weighted
from tests.writer_rl.tiny_run import save_config
from tests.writer_rl.train.test_backend import difference, plain_gradient, ragged_samples
from writer_rl.run.metrics import untimed

pytestmark = pytest.mark.ranks
STAGES = [0, 1, 2, 3]


def launch(command, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [*command, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, env=environment
    )


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What both ranks saw, for every ZeRO stage."""
    folder = tmp_path_factory.mktemp("ranks")
    done = launch(TORCHRUN, "tests/writer_rl/rank_work.py", folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return [torch.load(folder / f"rank-{rank}.pt", weights_only=False) for rank in (0, 1)]


@pytest.mark.parametrize("stage", STAGES)
def test_two_ranks_give_the_gradient_of_one(seen, stage):
    expected, norm = plain_gradient()
    for rank in seen:
        for found in rank[stage]["gradients"].values():
            assert difference(found["gradient"], expected) < 1e-5
            assert found["norm"] == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("stage", STAGES)
def test_two_ranks_apply_the_objectives_gradient_of_one_big_batch(seen, stage):
    expected, loss, kl = plain_objective(weighted(ragged_samples()))
    for rank in seen:
        for found in rank[stage]["objective"].values():
            assert difference(found["gradient"], expected) < 1e-5
            assert (found["loss"], found["kl"]) == (pytest.approx(loss, rel=1e-5), pytest.approx(kl, rel=1e-5))


@pytest.mark.parametrize("stage", STAGES)
def test_the_sampler_ratio_is_that_of_one_big_batch_too(seen, stage):
    expected = plain_sampler_gradient(weighted(ragged_samples()))
    for rank in seen:
        assert difference(rank[stage]["sampler_ratio"], expected) < 1e-5


@pytest.mark.parametrize("stage", STAGES)
def test_shards_of_two_ranks_are_saved_and_continue_bit_for_bit(seen, stage):
    assert all(rank[stage]["resumed"] for rank in seen)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("reason", "names"), [("kl", ("kl",)), ("nan", ("nonfinite",))])
def test_what_one_rank_alone_sees_both_skip_and_go_on(seen, stage, reason, names):
    ours, theirs = (rank[stage]["skips"][reason] for rank in seen)
    for found in (ours, theirs):
        assert found["skipped"] in names
        assert found["untouched"] and found["same_afterwards"] and found["epochs"]
        assert found["steps"] == 2
    if reason == "kl":
        assert ours["kl"] == theirs["kl"] > 0.2


@pytest.mark.parametrize("stage", STAGES)
def test_samples_on_one_rank_only_make_the_same_update(seen, stage):
    for rank in seen:
        lopsided, balanced = rank[stage]["uneven"]["reports"]
        for one, other in zip(lopsided, balanced, strict=True):
            assert one == pytest.approx(other, rel=1e-3, abs=1e-6)
        assert rank[stage]["uneven"]["empty"] == ("empty", 0)
    assert seen[0][stage]["uneven"] == seen[1][stage]["uneven"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("two")
    save_config(
        path, {"trainer.steps": 3, "rollout.networks_per_round": 2, "trainer.zero_stage": 2, "trainer.keep_checkpoints": 9}
    )
    return path


@pytest.fixture(scope="module")
def whole(folder):
    assert train(folder / "config.yaml", "--output_dir", str(folder / "whole"), ranks=2) == [0, 0]
    return folder / "whole"


@pytest.mark.parametrize("event", ["rollout 2 1", "epoch 3 0", "save 2 0"])
def test_a_rank_killed_and_the_run_begun_again_ends_the_same(folder, whole, event):
    run = folder / event.replace(" ", "-")
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    assert -9 in train(*arguments, ranks=2, event=f"SIGKILL {event}")
    assert train(*arguments, ranks=2) == [0, 0]
    assert_same_run(run, whole, steps=3)


@pytest.mark.parametrize("point", ["rollout 4", "micro 1"])
def test_a_signal_to_one_rank_stops_both(folder, whole, point):
    run = folder / f"signalled-{point.split()[0]}"
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    assert train(*arguments, ranks=2, event=f"SIGTERM {point} 1") == [143, 143]
    assert train(*arguments, ranks=2) == [0, 0]
    assert_same_run(run, whole, steps=3)


@pytest.mark.parametrize("stage", [0, 3])
def test_a_signal_within_an_update_leaves_no_trace(folder, stage):
    arguments = [folder / "config.yaml", "--trainer.zero_stage", str(stage), "--trainer.steps", "2"]
    arguments += ["--trainer.micro_batch_tokens", "40", "--output_dir"]  # several micro-batches in an update
    runs = [folder / f"{name}-{stage}" for name in ("through", "stopped")]
    assert train(*arguments, str(runs[0]), ranks=2) == [0, 0]
    codes = train(*arguments, str(runs[1]), ranks=2, event="SIGTERM micro 1 0")
    assert codes == [143, 143] and (runs[1] / "checkpoints" / "latest").read_text() == "000000\n"
    assert train(*arguments, str(runs[1]), ranks=2) == [0, 0]
    assert_same_run(*reversed(runs), steps=2)


@pytest.mark.parametrize("stage", [0, 3])
def test_two_ranks_see_what_one_sees(folder, whole, stage):
    """Rollouts, rewards and advantages do not depend on the number of ranks; the update does only by rounding."""
    alone, both = folder / f"alone-{stage}", folder / f"both-{stage}"
    steps = ["--trainer.steps", "1", "--trainer.zero_stage", str(stage)]
    assert train(folder / "config.yaml", "--output_dir", str(alone), *steps) == [0]
    assert train(folder / "config.yaml", "--output_dir", str(both), *steps, ranks=2) == [0, 0]
    name = "trajectories/round-000001.jsonl"
    written = [[json.loads(line) for line in (run / name).read_text().splitlines()] for run in (alone, both)]
    for ours, theirs in zip(*written, strict=True):
        # The last digits depend on how many rows share a batch.
        assert ours.pop("logprobs") == pytest.approx(theirs.pop("logprobs"), abs=1e-5)
        assert ours == theirs
    one, other = untimed(records(alone)[0]), untimed(records(both)[0])
    assert one.keys() == other.keys()
    for key in one:
        assert one[key] == pytest.approx(other[key], rel=1e-3, abs=1e-4), key


def test_going_on_with_other_ranks_is_refused_with_the_remedy(folder, whole):
    code = train(folder / "config.yaml", "--output_dir", str(whole), "--trainer.steps", "4", output=folder / "ranks.log")
    assert code == [2]
    printed = (folder / "ranks.0").read_text()
    assert "2 rank(s) with ZeRO 2" in printed and "--model.path" in printed


@pytest.mark.parametrize("launcher", ["accelerate", "torchrun"])
def test_the_users_own_command(folder, launcher):
    run = folder / launcher
    arguments = ["launch/grpo.py", "--config", folder / "config.yaml", "--output_dir", run, "--trainer.steps", "1"]
    if launcher == "accelerate":
        command = [
            sys.executable,
            "-m",
            "accelerate.commands.launch",
            "--config_file",
            "configs/accelerate/cpu2.yaml",
            "--main_process_port",
            "0",
        ]
        arguments += ["--trainer.zero_stage", "auto"]
    else:
        command = TORCHRUN
    done = launch(command, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sum(line.startswith("round 1/1") for line in done.stdout.splitlines()) == 1
    import json

    state = json.loads((run / "checkpoints" / "000001" / "state.json").read_text())
    assert (state["world_size"], state["zero_stage"]) == (2, 2)
