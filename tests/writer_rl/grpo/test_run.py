"""Whole runs of launch/grpo.py: what they leave behind, how they end, and that an interrupted run ends like any other."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.torch import load_file

from tests.conftest import PATIENCE
from tests.writer_rl.processes import ROOT, train
from tests.writer_rl.tiny_run import save_config
from writer_rl.report.rescoring import Rescorer, stored_scores
from writer_rl.report.stored_run import StoredRun
from writer_rl.run.metrics import untimed

STEPS = 4
CHANGES = {"evaluation.every": 2, "evaluation.metric": "evaluation/total"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("grpo")
    save_config(
        path, CHANGES | {"data.validation": [], "evaluation.every": 0, "trainer.steps": STEPS, "trainer.keep_checkpoints": 9}
    )
    return path


@pytest.fixture(scope="module")
def whole(folder):
    """An uninterrupted run."""
    run = folder / "whole"
    assert train(folder / "config.yaml", "--output_dir", str(run), output=folder / "whole.log") == [0]
    return run


def records(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_same_run(run, other, steps=STEPS):
    """Same figures but for the clock, same completions, bit-identical parameters."""
    assert [untimed(r) for r in records(run)] == [untimed(r) for r in records(other)]
    assert [r["round"] for r in records(run)] == list(range(1, steps + 1))
    for number in range(1, steps + 1):
        for name in (f"trajectories/round-{number:06d}.jsonl", f"questions/round-{number:06d}.jsonl"):
            assert (run / name).exists() == (other / name).exists()
            assert not (run / name).exists() or (run / name).read_text() == (other / name).read_text()
    ours, theirs = (load_file(r / "checkpoints" / f"{steps:06d}" / "model" / "model.safetensors") for r in (run, other))
    assert ours.keys() == theirs.keys() and all((ours[name] == theirs[name]).all() for name in theirs)


def test_a_run_leaves_what_is_promised(folder, whole):
    assert {p.name for p in whole.iterdir() if not p.name.startswith(".")} == {
        "config.yaml",
        "environment.json",
        "metrics.jsonl",
        "trajectories",
        "questions",
        "checkpoints",
    }
    keys = [list(record) for record in records(whole)]
    assert all(each == keys[0] for each in keys)
    lines = [json.loads(line) for line in (whole / "trajectories" / "round-000001.jsonl").read_text().splitlines()]
    assert len(lines) == records(whole)[0]["rollout/completions"] == 4 * 2
    assert {"text", "reward", "return", "advantage", "completion_ids", "policy_version"} <= set(lines[0])
    printed = (folder / "whole.0").read_text().splitlines()
    assert len(printed) == 2 + STEPS and printed[2].startswith(f"round 1/{STEPS}  return ")
    assert printed[1].startswith("a round's line: ") and "silent: " in printed[1] and "|g|: " in printed[1]
    assert "2 networks" in printed[0] and str(whole) in printed[0]


def test_the_policy_moved_and_the_kl_began_at_zero(whole):
    first = records(whole)[0]
    assert first["policy/kl/epoch_1"] == 0.0 and first["policy/kl/epoch_2"] > 0
    assert first["policy/steps_taken"] == 2
    assert first["rollout/mismatch_max"] < 1e-4
    before, after = (load_file(whole / "checkpoints" / n / "model" / "model.safetensors") for n in ("000001", "000002"))
    assert any((before[name] != after[name]).any() for name in before)


def test_the_same_seed_gives_the_same_run_and_another_another(folder, whole):
    assert train(folder / "config.yaml", "--output_dir", str(folder / "again")) == [0]
    assert_same_run(folder / "again", whole)
    assert train(folder / "config.yaml", "--output_dir", str(folder / "other"), "--seed", "1", "--trainer.steps", "1") == [0]
    assert records(folder / "other")[0] != records(whole)[0]


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_going_on_at_any_round_ends_the_same(folder, whole, stop_after):
    run = folder / f"resumed-{stop_after}"
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    assert train(*arguments, "--trainer.steps", str(stop_after)) == [0]
    assert train(*arguments) == [0]
    assert_same_run(run, whole)


@pytest.mark.parametrize("credit", ["local", "anchor"])
def test_a_run_with_another_credit_goes_on_exactly_and_its_lines_say_what_they_were_written_from(folder, credit):
    config, run, cut = folder / "config.yaml", folder / credit, folder / f"{credit}-cut"
    changed = ("--trainer.credit", credit, "--trainer.steps", "2")
    assert train(config, *changed, "--output_dir", str(run), output=folder / "a.log") == [0]
    assert train(config, *changed[:2], "--trainer.steps", "1", "--output_dir", str(cut), output=folder / "b.log") == [0]
    assert train(config, *changed, "--output_dir", str(cut), output=folder / "b.log") == [0]
    assert_same_run(run, cut, steps=2)
    lines = [json.loads(line) for line in (run / "trajectories" / "round-000001.jsonl").read_text().splitlines()]
    assert {line.get("forked_from") for line in lines if line["trajectory"]} == {0 if credit == "local" else None}
    if credit == "local":
        assert all(line["qa_gain"] is None for line in lines)
    for group in StoredRun(run).round(1).groups:  # what the viewer and what-if make of the lines is what the run had
        assert group.differing == 0
        assert np.allclose(Rescorer(StoredRun(run).config)(group).advantages, stored_scores(group).advantages)


@pytest.mark.parametrize("event", ["rollout 1", "rollout 4", "epoch 1", "epoch 3", "save 1", "save 3"])
def test_a_run_killed_anywhere_and_begun_again_ends_the_same(folder, whole, event):
    run = folder / f"killed-{event.replace(' ', '-')}"
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    assert train(*arguments, event=f"SIGKILL {event}") == [-9]
    assert train(*arguments) == [0]
    assert_same_run(run, whole)
    assert not list(run.glob("checkpoints/.*")) and not list(run.glob(".rollout*"))


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("point", ["rollout 3", "epoch 3", "micro 6", "decode 3"])
def test_a_signal_saves_stops_and_the_same_command_goes_on(folder, whole, name, code, point):
    run = folder / f"{name}-{point.split()[0]}"
    arguments = [folder / "config.yaml", "--output_dir", str(run)]
    assert train(*arguments, event=f"{name} {point}", output=folder / "signal.log") == [code]
    assert "saved after round" in (folder / "signal.0").read_text()
    assert (run / "checkpoints" / "latest").is_file()
    assert train(*arguments) == [0]
    assert_same_run(run, whole)


def test_a_signal_saves_even_when_checkpoints_are_rare(folder, whole):
    run = folder / "rare"
    arguments = [folder / "config.yaml", "--output_dir", str(run), "--trainer.checkpoint_every", "100"]
    # Rounds 1 and 2 have five positions together.
    assert train(*arguments, event="SIGTERM rollout 6") == [143]
    assert (run / "checkpoints" / "latest").read_text() == "000002\n"
    assert train(*arguments) == [0]
    assert_same_run(run, whole)


def test_the_best_and_the_weights_that_are_due_are_light_and_resuming_makes_them_again(folder, whole):
    run = folder / "light"
    settings = ["--trainer.checkpoint_every", "3", "--trainer.weights_every", "1", "--trainer.keep_weights", "9"]
    arguments = [folder / "config.yaml", "--output_dir", str(run), *settings]
    assert train(*arguments, event="SIGKILL rollout 9") == [-9]

    def kinds():
        return {p.name: (p / "engine").is_dir() for p in (run / "checkpoints").glob("0*")}

    assert kinds()["000001"] is False and kinds()["000003"] is True
    assert train(*arguments) == [0]
    assert kinds() == {"000001": False, "000002": False, "000003": True, "000004": True}
    assert_same_run(run, whole)


def test_going_on_from_a_named_checkpoint_in_a_new_directory(folder, whole):
    run = folder / "branch"
    checkpoint = whole / "checkpoints" / "000002"
    assert train(folder / "config.yaml", "--output_dir", str(run), "--trainer.resume", str(checkpoint)) == [0]
    assert [untimed(r) for r in records(run)] == [untimed(r) for r in records(whole)[2:]]


def test_more_rounds_under_a_schedule_keep_the_one_that_was_begun(folder):
    run, log = folder / "longer", folder / "longer.log"
    linear = ["--output_dir", str(run), "--trainer.lr_schedule", "linear", "--trainer.lr_final", "0.001"]
    for steps in (2, 4):
        assert train(folder / "config.yaml", *linear, "--trainer.steps", str(steps), output=log) == [0]
    assert [r["policy/lr"] for r in records(run)] == pytest.approx([0.01, 0.001, 0.001, 0.001])
    assert "trainer.steps is 4 now; the linear schedule begun over 2 rounds is kept" in log.with_suffix(".0").read_text()


def test_a_position_that_can_not_be_read_ends_the_run_before_its_first_round(folder):
    """Nothing is sampled before: the run of an earlier, shorter position would end in the middle."""
    for number, arguments in enumerate((["--dry-run"], [])):
        log = folder / f"long-{number}.log"
        code = train(
            folder / "config.yaml",
            *arguments,
            "--output_dir",
            str(folder / "long"),
            "--rollout.max_new_tokens",
            "505",
            output=log,
        )
        last = log.with_suffix(".0").read_text().splitlines()[-1]
        assert code == [2] and "network chat_" in last and "position 0" in last and "7 are allowed" in last
    assert not (folder / "long" / "metrics.jsonl").exists()


def test_a_used_directory_and_other_settings_are_refused(folder, whole):
    arguments = [folder / "config.yaml", "--output_dir", str(whole)]
    assert train(*arguments, "--trainer.resume", "never", output=folder / "used.log") == [2]
    assert "holds a run" in (folder / "used.0").read_text()
    assert train(*arguments, "--trainer.lr", "0.5", output=folder / "used.log") == [2]
    assert "trainer.lr" in (folder / "used.0").read_text()


def test_a_reference_trained_anew_is_refused_in_one_line(folder):
    from tests.writer_rl.tiny_run import save_writer

    save_writer(folder / "reference")
    run = folder / "rereferenced"
    arguments = [folder / "config.yaml", "--output_dir", str(run), "--model.reference", str(folder / "reference")]
    assert train(*arguments, "--trainer.steps", "1", output=folder / "reference.log") == [0]
    save_writer(folder / "reference", seed=3)
    assert train(*arguments, "--trainer.steps", "2", output=folder / "reference.log") == [2]
    last = (folder / "reference.0").read_text().splitlines()[-1]
    assert "its weights are not those" in last and "begin a new run" in last
    save_writer(folder / "reference")
    assert train(*arguments, "--trainer.steps", "2", output=folder / "reference.log") == [0]


def test_rounds_in_a_row_without_a_step_end_the_run_with_the_reason(folder):
    run = folder / "stalled"
    arguments = [folder / "config.yaml", "--output_dir", str(run), "--model.reference", str(folder / "other-writer")]
    from tests.writer_rl.tiny_run import save_writer

    save_writer(folder / "other-writer", seed=9)
    limits = ["--trainer.kl_limit", "1e-6", "--trainer.max_consecutive_skips", "2"]
    assert train(*arguments, *limits, output=folder / "stalled.log") == [1]
    printed = (folder / "stalled.0").read_text().splitlines()
    assert "skipped: kl (the KL exceeded trainer.kl_limit)" in printed[2] and len(printed) == 5
    assert "2 rounds in a row without an optimizer step" in printed[-1] and "kl 2" in printed[-1]
    last = records(run)[-1]
    assert (last["skips/kl"], last["skips/consecutive"], last["policy/version"], last["policy/steps_total"]) == (2, 2, 0, 0)


def test_evaluation_during_training_marks_the_best_and_ends_early(tmp_path):
    path = save_config(tmp_path, {"trainer.steps": 6, "evaluation.every": 1, "evaluation.patience": 2, "trainer.lr": 1e-12})
    chats = tmp_path / "chats" / "networks"
    only, held = str(chats / "chat_0.json"), str(chats / "chat_1.json")
    assert train(path, "--data.train", only, "--data.validation", held) == [0]
    found = records(tmp_path / "run")
    # The rate is so small that the greedy memory never changes: round 1 is the best, rounds 2 and 3 are not better.
    assert [r["round"] for r in found] == [1, 2, 3]
    assert (tmp_path / "run" / "checkpoints" / "best").read_text() == "000001\n"
    assert all(r["evaluation/total"] == found[0]["evaluation/total"] for r in found)


def run_script(*arguments):
    command = [sys.executable, "launch/grpo.py", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, env=environment)


def test_the_script_itself_trains_two_rounds(folder):
    done = run_script("--config", folder / "config.yaml", "--output_dir", folder / "script", "--trainer.steps", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 4  # what begins, what a round's line says, two rounds


def test_dry_run_shows_configuration_and_plan_without_torch(folder):
    done = run_script("--config", folder / "config.yaml", "--dry-run", "--output_dir", folder / "dry")
    assert done.returncode == 0 and not (folder / "dry").exists()
    for words in (
        "group_size: 4",
        "networks          2 with 5 writing positions",
        f"rounds            {STEPS}",
        "prompts           40",
    ):
        assert words in done.stdout
    assert "at most 240" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reward.weights", "{nope: 2}"], ["reward.weights", "nope"]),
        (["--reward.terms", "{nope: 2}"], ["reward.terms", "nope"]),
        (["--reward.modules", "[no.such.module]"], ["reward.modules", "no.such.module"]),
        (["--data.prompt", "/nowhere.jinja"], ["/nowhere.jinja"]),
        (["--data.trajectories", "[]"], ["chat_0", "data.trajectories"]),
        (["--rollout.networks_per_round", "3"], ["networks_per_round"]),
    ],
)
def test_a_dry_run_finds_what_a_run_would_refuse(folder, arguments, words):
    code = train(folder / "config.yaml", "--dry-run", *arguments, output=folder / "dry-bad.log")
    printed = (folder / "dry-bad.0").read_text()
    assert code == [2] and len(printed.splitlines()) == 1 and all(word in printed for word in words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trainer.lrr", "1"], ["trainer.lrr", "trainer.lr"]),
        (["--config", "nowhere.yaml"], ["nowhere.yaml"]),
        (["--data.train", "/nowhere"], ["/nowhere"]),
        (["--rollout.networks_per_round", "3"], ["networks_per_round"]),
        (["--rollout.max_new_tokens", "512"], ["rollout.max_new_tokens", "512"]),
        (["--reward.weights", "{mem: 1, nope: 2}"], ["reward.weights", "nope"]),
        # Said before the model is read.
        (["--reward.qa.backend", "openai", "--model.path", "/nowhere"], ["reward.qa.model"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, arguments, words):
    code = train(folder / "config.yaml", *arguments, "--output_dir", str(folder / "bad"), output=folder / "bad.log")
    printed = (folder / "bad.0").read_text()
    assert code == [2] and len(printed.splitlines()) == 1 and "Traceback" not in printed
    assert all(word in printed for word in words)
    assert not (folder / "bad" / "checkpoints").exists()


def test_a_segment_that_does_not_fit_the_context_is_an_error_not_a_cut(folder):
    code = train(
        folder / "config.yaml",
        "--output_dir",
        str(folder / "long"),
        "--rollout.max_new_tokens",
        "505",
        output=folder / "long.log",
    )
    assert code == [2] and "chat_0" in (folder / "long.0").read_text()
