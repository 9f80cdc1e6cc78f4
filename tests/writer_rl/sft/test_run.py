"""Whole runs of launch/sft.py on a Writer of a few thousand parameters."""

import json

import pytest
import torch
import yaml
from safetensors.torch import load_file

from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import save_config
from writer_rl.config import ConfigError, load_config
from writer_rl.run.metrics import untimed
from writer_rl.sft.stages import planned_stages

CURRICULUM = [
    {"name": "copy", "task": "copy", "batch": 4, "max_steps": 3, "lr_factor": 0.5},
    {"name": "chats", "batch": 2, "max_steps": 6, "lr_final_factor": 0.1},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sft")
    changes = {
        "trainer.checkpoint_every": 2,
        "trainer.keep_checkpoints": 9,
        "trainer.curriculum": CURRICULUM,
        "rollout.max_new_tokens": 12,
    }
    changes |= {"trainer.optimizer": "muon", "trainer.matrix_lr": 0.01}
    config = yaml.safe_load(save_config(path, changes).read_text())
    for key in ("steps", "kl_limit"):
        config["trainer"].pop(key)
    (path / "config.yaml").write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """An uninterrupted run."""
    run = folder / "whole"
    assert train(folder / "config.yaml", "--output_dir", str(run), script="sft", output=folder / "whole.log") == [0]
    return run


def records(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_same_run(run, other):
    """Same figures but for the clock, bit-identical parameters."""
    assert [untimed(r) for r in records(run)] == [untimed(r) for r in records(other)]
    ours, theirs = (load_file(r / "final" / "model.safetensors") for r in (run, other))
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_run_goes_through_its_stages_and_leaves_what_is_promised(folder, whole):
    assert {"config.yaml", "metrics.jsonl", "checkpoints", "final"} <= {p.name for p in whole.iterdir()}
    made = records(whole)
    assert [r["round"] for r in made] == list(range(1, 10))
    assert [r["sft/stage"] for r in made] == [0] * 3 + [1] * 6
    assert [r["policy/lr"] for r in made[:3]] == [0.005] * 3
    assert made[3]["policy/lr"] == pytest.approx(0.01) and made[-1]["policy/lr"] == pytest.approx(0.001)
    assert made[-1]["sft/loss"] < made[3]["sft/loss"]
    assert all(set(r) == set(made[0]) for r in made)
    printed = (folder / "whole.0").read_text().splitlines()
    assert printed[0].startswith("step 1/9  copy  loss ") and printed[-1].startswith("the trained Writer: ")


def test_final_is_the_last_checkpoint_as_transformers_loads_it(whole):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(whole / "final")
    saved = load_file(whole / "checkpoints" / "000009" / "model" / "model.safetensors")
    assert all(torch.equal(model.state_dict()[name], p) for name, p in saved.items())


@pytest.mark.parametrize("event", ["SIGKILL epoch 1", "SIGKILL epoch 6", "SIGTERM epoch 2", "SIGINT epoch 5", "SIGKILL save 2"])
def test_an_interrupted_run_ends_like_any_other(folder, whole, event):
    run = folder / event.replace(" ", "-")
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    codes = train(*arguments, script="sft", event=event)
    assert codes == [{"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130}[event.split()[0]]]
    assert train(*arguments, script="sft") == [0]
    assert_same_run(run, whole)


def test_several_steps_are_summed_up_in_one_record(folder, whole):
    run = folder / "summed"
    assert train(folder / "config.yaml", "--output_dir", str(run), "--trainer.log_every", "4", script="sft") == [0]
    assert [r["round"] for r in records(run)] == [3, 7, 9]
    single = records(whole)[3:7]
    tokens = [r["sft/completion_tokens"] for r in single]
    expected = sum(r["sft/loss"] * n for r, n in zip(single, tokens, strict=True)) / sum(tokens)
    assert records(run)[1]["sft/loss"] == pytest.approx(expected) and records(run)[1]["sft/completion_tokens"] == sum(tokens)


def test_two_ranks_take_the_same_steps_as_one(folder, whole):
    run = folder / "ranks"
    assert train(folder / "config.yaml", "--output_dir", str(run), script="sft", ranks=2) == [0, 0]
    for ours, theirs in zip(records(run), records(whole), strict=True):
        assert ours["sft/loss"] == pytest.approx(theirs["sft/loss"], rel=1e-3)
        assert ours["sft/tokens"] == theirs["sft/tokens"]


def test_without_a_curriculum_every_epoch_shows_every_position(folder):
    run = folder / "epochs"
    changes = [
        "--trainer.curriculum",
        "[]",
        "--trainer.epochs",
        "3",
        "--trainer.accumulation",
        "2",
        "--trainer.optimizer",
        "adamw",
    ]
    assert train(folder / "config.yaml", "--output_dir", str(run), *changes, script="sft") == [0]
    made = records(run)
    assert len(made) == 3 * 3  # 2 + 3 positions in batches of 2
    per_epoch = [sum(r["sft/tokens"] for r in made[i : i + 3]) for i in (0, 3, 6)]
    assert per_epoch[0] == per_epoch[1] == per_epoch[2]
    assert made[-1]["sft/loss"] < made[0]["sft/loss"]


def test_evaluation_marks_the_best_checkpoint(folder):
    run = folder / "evaluated"
    networks = str(folder / "chats" / "networks")
    changes = ["--evaluation.every", "4", "--data.validation", networks, "--data.train", "corpus:train", "--data.trajectories"]
    changes += [str(folder / "chats" / "trajectories"), "--trainer.curriculum", json.dumps(CURRICULUM[:1])]
    assert train(folder / "config.yaml", "--output_dir", str(run), *changes, script="sft") == [0]
    last = records(run)[-1]
    assert last["evaluation/total"] is not None and last["evaluation/steps"] == 5
    assert (run / "checkpoints" / "best").read_text().strip() == "000003"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (["--trainer.optimizer", "muon", "--trainer.zero_stage", "3"], "muon needs whole matrices"),
        (["--rollout.max_new_tokens", "2"], "the teacher's output has"),
        (["--data.train", "nowhere"], "nowhere"),
        (["--dry-run", "--data.prompt", "nowhere.jinja"], "nowhere.jinja"),
        (["--evaluation.every=9", "--evaluation.metric=phi", "--data.validation=corpus:validation"], "'phi' is not measured"),
        (["--trainer.curriculum", "[{name: b, level: 2, teacher: biased, max_steps: 1, bias: {gossip: 0.5}}]"], "gossip"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, changes, complaint):
    log = folder / "bad.log"
    assert train(folder / "config.yaml", "--output_dir", str(folder / "bad"), *changes, script="sft", output=log) == [2]
    lines = [line for line in log.with_suffix(".0").read_text().splitlines() if line.strip()]
    assert complaint in lines[-1] and not any("Traceback" in line for line in lines)


def test_steps_that_are_never_taken_end_the_run_with_the_reason(folder):
    """The first step's rate blows the weights up; a run that skipped every step after it would look like a success."""
    run, log = folder / "stalled", folder / "stalled.log"
    changes = ["--trainer.lr", "1e30", "--trainer.matrix_lr", "1e30", "--trainer.max_consecutive_skips", "3"]
    assert train(folder / "config.yaml", "--output_dir", str(run), *changes, script="sft", output=log) == [1]
    last = log.with_suffix(".0").read_text().splitlines()[-1]
    assert "3 steps in a row" in last and "trainer.lr" in last
    assert not (run / "final").exists()
    assert [(r["skips/nonfinite"], r["skips/consecutive"]) for r in records(run)] == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_dry_run_shows_the_plan_and_writes_nothing(folder):
    log = folder / "dry.log"
    run = folder / "dry"
    assert train(folder / "config.yaml", "--output_dir", str(run), "--dry-run", script="sft", output=log) == [0]
    plan = log.with_suffix(".0").read_text().splitlines()[-3:]
    assert plan[0].startswith("copy ") and "5 writing positions" in plan[1] and "all 5 positions fit" in plan[2]
    assert not run.exists()


def test_stages_without_steps_are_epochs():
    config = load_config("sft", None, ["--trainer.epochs", "3", "--trainer.curriculum", "[{name: a, batch: 4}]"])
    assert [s.max_steps for s in planned_stages(config, 10)] == [9]
    bad = "[{name: b, level: 2, teacher: biased, max_steps: 1, bias: {gossip: 0.5}}]"
    shaped = "[{name: b, level: 2, max_steps: 1, shape: {colour: 0.5}}]"
    with pytest.raises(ConfigError, match="colour"):
        planned_stages(load_config("sft", None, ["--trainer.curriculum", shaped]), 10)
    with pytest.raises(ConfigError, match="gossip"):
        planned_stages(load_config("sft", None, ["--trainer.curriculum", bad]), 10)
