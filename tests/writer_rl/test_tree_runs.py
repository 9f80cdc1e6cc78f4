"""Whole runs on prefix trees are the runs of padded batches: same completions, same figures but for rounding."""

import json

import pytest
import yaml

from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import save_config
from writer_rl.run.metrics import untimed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("layouts")
    config = yaml.safe_load(save_config(path, {"trainer.steps": 2, "rollout.networks_per_round": 2}).read_text())
    config["trainer"] |= {"epochs": 2, "checkpoint_every": 9}
    (path / "grpo.yaml").write_text(yaml.safe_dump(config))
    config["trainer"] = {"epochs": 2, "accumulation": 3, "lr": 0.01, "micro_batch_tokens": 128, "threads": 1}
    config["rollout"] = {"max_new_tokens": 12}
    (path / "sft.yaml").write_text(yaml.safe_dump(config))
    return path


def run(folder, script, layout, *changes):
    """The records of a run without what depends on the clock, and what it printed."""
    name = "-".join([script, layout, *changes[1::2]])
    arguments = ("--output_dir", str(folder / name), "--trainer.packing", layout, *changes)
    assert train(folder / f"{script}.yaml", *arguments, script=script, output=folder / f"{name}.log") == [0]
    lines = (folder / name / "metrics.jsonl").read_text().splitlines()
    return [untimed(json.loads(line)) for line in lines], (folder / f"{name}.0").read_text()


@pytest.mark.parametrize("script", ["grpo", "sft"])
def test_tree_and_padded_are_one_run(folder, script):
    (tree, said), (padded, _) = run(folder, script, "tree"), run(folder, script, "padded")
    assert "trainer.packing" not in said
    assert len(tree) == len(padded) >= 2
    for ours, theirs in zip(tree, padded, strict=True):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            near = pytest.approx(value, rel=1e-3, abs=1e-4) if isinstance(value, float) else value
            assert ours[key] == near, key


@pytest.mark.parametrize("script", ["grpo", "sft"])
def test_a_model_that_can_not_trains_padded_and_says_so_in_one_line(folder, script):
    records, said = run(folder, script, "tree", "--model.attn_implementation", "eager")
    assert records
    assert [line for line in said.splitlines() if line.startswith("trainer.packing: padded")] != []
    assert said.count("trainer.packing") == 1
