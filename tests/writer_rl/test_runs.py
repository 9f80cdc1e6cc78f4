"""The run directory: one writer, rolled back to a checkpoint, never mixed with other settings."""

import json
import subprocess
import sys

import pytest

from writer_rl.config import ROOT, load_config
from writer_rl.runs import RunDirectory, RunError


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


def test_numbers_json_does_not_know_are_refused(tmp_path):
    with pytest.raises(ValueError):
        RunDirectory.open(config(tmp_path)).append_metrics({"round": 1, "x": float("nan")})


def test_a_second_run_in_the_same_directory_is_kept_out(tmp_path):
    run = RunDirectory.open(config(tmp_path))
    run.lock()
    code = (
        "from pathlib import Path; from writer_rl.runs import RunDirectory, RunError\n"
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
