"""The run directory: one writer, rolled back to a checkpoint, never mixed with other settings."""

import json
import subprocess
import sys

import pytest

from writer_rl.config import ROOT, load_config
from writer_rl.run.directory import RunDirectory, RunError


def config(folder, *overrides):
    return load_config("grpo", None, ["--output_dir", str(folder), *overrides])


def lines(run):
    return [json.loads(line) for line in run.metrics_file.read_text().splitlines()]


def test_rolling_back_forgets_later_rounds_and_a_torn_line(tmp_path):
    run = RunDirectory.open(config(tmp_path / "run"))
    for number in (1, 2, 3):
        run.append_metrics({"round": number, "x": 0.1 * number})
        run.write_trajectories(number, [{"text": "é\u2028"}, {"text": "b"}])
    with run.metrics_file.open("a") as stream:
        stream.write('{"round": 4, "x"')
    assert [record["round"] for record in run.read_metrics()] == [1, 2, 3]
    run.roll_back(2)
    assert lines(run) == [{"round": 1, "x": 0.1}, {"round": 2, "x": 0.2}]
    assert sorted(p.name for p in run.trajectories.iterdir()) == ["round-000001.jsonl", "round-000002.jsonl"]
    run.roll_back(0)
    assert lines(run) == [] and not list(run.trajectories.iterdir())


def test_a_damaged_line_costs_no_other(tmp_path):
    run = RunDirectory.open(config(tmp_path / "run"))
    run.metrics_file.write_bytes(b'\xff\x00\n{"round": 1}\n[1]\n{"rou{"round": 2}\n{"x": 1}\n{"round": 3}\n')
    assert [record["round"] for record in run.read_metrics()] == [1, 3]
    run.roll_back(3)
    assert lines(run) == [{"round": 1}, {"round": 3}]


@pytest.mark.parametrize("text", ["plain", "é 日本 \u2028", "half an emoji \ud83d", "\udfff", "nul \x00"])
def test_whatever_a_writer_writes_can_be_stored(tmp_path, text):
    """json.loads turns the six characters backslash-ud83d into half of a surrogate pair, which UTF-8 can't hold."""
    run = RunDirectory.open(config(tmp_path / "run"))
    run.write_trajectories(1, [{"text": text, "actions": [{text: [text]}]}])
    stored = (run.trajectories / "round-000001.jsonl").read_text(encoding="utf-8").split("\n")
    assert json.loads(stored[0]) == {"text": text, "actions": [{text: [text]}]} and stored[1:] == [""]


def test_numbers_json_does_not_know_are_refused(tmp_path):
    with pytest.raises(ValueError):
        RunDirectory.open(config(tmp_path)).append_metrics({"round": 1, "x": float("nan")})


def test_a_second_run_in_the_same_directory_is_kept_out(tmp_path):
    run = RunDirectory.open(config(tmp_path))
    run.lock()
    code = (
        "from pathlib import Path; from writer_rl.run.directory import RunDirectory, RunError\n"
        f"try: RunDirectory(Path({str(tmp_path)!r})).lock()\n"
        "except RunError as error: print(error)"
    )
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "another run" in other.stdout and str(tmp_path) in other.stdout
    run.unlock()
    RunDirectory(tmp_path).lock()


def test_a_used_directory_is_not_taken_for_a_new_run(tmp_path):
    run = RunDirectory.open(config(tmp_path))
    run.require_unused()
    run.append_metrics({"round": 1})
    with pytest.raises(RunError, match=r"--trainer\.resume"):
        run.require_unused()


@pytest.mark.parametrize(
    ("override", "same"),
    [
        (["--trainer.lr", "5e-4"], False),
        (["--seed", "2"], False),
        (["--reward.weights", "{qa: 0.0}"], False),
        (["--data.train", "other"], False),
        (["--trainer.steps", "99"], True),
        (["--tracking.wandb", "off"], True),
        (["--trainer.resume", "auto"], True),
        (["--evaluation.every", "2"], True),
    ],
)
def test_going_on_with_other_settings_is_refused_where_they_decide_the_results(tmp_path, override, same):
    run = RunDirectory.open(config(tmp_path))
    run.write_config(config(tmp_path))
    changed = config(tmp_path, *override)
    if same:
        run.require_same_settings(changed)
    else:
        with pytest.raises(RunError, match=override[0].removeprefix("--").split(".")[0]):
            run.require_same_settings(changed)


def test_the_written_configuration_reads_back(tmp_path):
    chosen = config(tmp_path, "--trainer.lr", "3e-5")
    RunDirectory.open(chosen).write_config(chosen)
    assert load_config("grpo", tmp_path / "config.yaml") == chosen


def test_a_path_that_can_not_be_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="output_dir"):
        RunDirectory.open(config(tmp_path / "file" / "run"))


def with_checkpoint(folder, state):
    checkpoint = folder / "checkpoints" / "000001"
    checkpoint.mkdir(parents=True)
    (checkpoint / "state.json").write_text(json.dumps({"format": 1, **state}))
    (folder / "checkpoints" / "latest").write_text("000001\n")
    return checkpoint


@pytest.mark.parametrize(("kind", "state"), [("grpo", {"progress": {}}), ("sft", {"policy_version": 0})])
@pytest.mark.parametrize("named", [True, False])
def test_sft_and_grpo_do_not_go_on_from_each_other(tmp_path, kind, state, named):
    checkpoint = with_checkpoint(tmp_path / "old", state)
    resume = ["--trainer.resume", str(checkpoint), "--output_dir", str(tmp_path / "new")] if named else []
    chosen = load_config(kind, None, ["--output_dir", str(tmp_path / "old"), *resume])
    with pytest.raises(RunError, match="--model.path") as caught:
        RunDirectory.open(chosen).claim(chosen)
    assert str(checkpoint) in str(caught.value) and "\n" not in str(caught.value)


def test_another_runs_checkpoint_does_not_go_on_in_a_used_directory(tmp_path):
    """Its later rounds would be forgotten in favour of the other run's."""
    checkpoint = with_checkpoint(tmp_path / "one", {"policy_version": 0})
    with_checkpoint(tmp_path / "two", {"policy_version": 0})
    mixed = config(tmp_path / "two", "--trainer.resume", str(checkpoint))
    with pytest.raises(RunError, match="holds a run"):
        RunDirectory.open(mixed).claim(mixed)
    for place in ("one", "new"):
        chosen = config(tmp_path / place, "--trainer.resume", str(checkpoint))
        run = RunDirectory.open(chosen)
        assert run.claim(chosen) == checkpoint
        run.unlock()


@pytest.mark.parametrize("content", [b"a: [", b"\xff\xfe"])
def test_a_damaged_configuration_of_a_run_is_one_line(tmp_path, content):
    with_checkpoint(tmp_path, {"policy_version": 0})
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(RunError, match="config.yaml") as caught:
        RunDirectory.open(config(tmp_path)).claim(config(tmp_path))
    assert "\n" not in str(caught.value)


def test_questions_are_rolled_back_with_their_round(tmp_path):
    run = RunDirectory.open(config(tmp_path / "run"))
    for number in (1, 2):
        run.write_questions(number, [{"question_id": "q"}])
    run.write_questions(3, [])
    run.roll_back(1)
    assert [p.name for p in run.questions.iterdir()] == ["round-000001.jsonl"]
