"""A sampler that passes every proof of a sync and still serves old weights stops the run, and the run is whole afterwards."""

import json

import pytest

from tests.writer_rl.grpo.test_run import assert_same_run, records
from tests.writer_rl.stale_sampler import train_with_stale_sampler
from tests.writer_rl.tiny_run import save_config

STEPS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("stale")
    save_config(path, {"trainer.steps": STEPS, "trainer.keep_checkpoints": 9, "rollout.sync_bound": 100.0})
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """A run whose sampler is a module of its own, and gets every policy."""
    assert stale(folder, "whole", stuck=False)[0] == 0
    return folder / "whole"


def stale(folder, name, *arguments, stuck=True):
    log = folder / f"{name}.log"
    settings = ["--config", str(folder / "config.yaml"), "--output_dir", str(folder / name), *arguments]
    return train_with_stale_sampler(settings, log, stuck), log.read_text()


def test_it_stops_with_both_numbers_and_the_same_command_goes_on_to_the_same_end(folder, whole):
    code, printed = stale(folder, "stuck")
    said = printed.splitlines()[-1]
    figures = [r["rollout/mismatch_mean"] for r in records(folder / "stuck")]
    assert code == 1 and "Traceback" not in printed
    assert f"{figures[0]:.2e}" in said and f"{figures[-1]:.2e}" in said and "rollout.mismatch_growth" in said
    assert len(figures) < STEPS and figures[0] < 1e-6 < 1e-4 < figures[-1]
    assert stale(folder, "stuck", stuck=False)[0] == 0  # nothing stale was kept
    for run in (folder / "stuck", whole):  # of the round that is kept, the figures of its (stale) sync differ, and nothing else
        lines = [{k: v for k, v in r.items() if not k.startswith("rollout/sync_")} for r in records(run)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert_same_run(folder / "stuck", whole)


def test_a_resumed_run_is_held_against_its_own_first_round(folder):
    """Else a sampler that is stale from the resume on would set the measure itself."""
    name = "resumed"
    assert stale(folder, name, "--trainer.steps", "1", stuck=False)[0] == 0
    state = json.loads((folder / name / "checkpoints" / "000001" / "state.json").read_text())
    assert state["first_mismatch"] == records(folder / name)[0]["rollout/mismatch_mean"]
    code, printed = stale(folder, name)
    assert code == 1 and f"{state['first_mismatch']:.2e}" in printed.splitlines()[-1]


def test_a_setting_lets_it_run(folder):
    assert stale(folder, "let", "--rollout.mismatch_growth", "null")[0] == 0
