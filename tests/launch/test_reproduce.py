"""The chain's bookkeeping, with small commands as stages; the stages themselves are tested where they are."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from launch.cli import UsageError
from launch.reproduce import arguments, evaluation_folder, main, model, seed_lines
from launch.stages import StageFailed, stage
from tests.conftest import PATIENCE
from tests.launch.scripts import ROOT, refused


def script(tmp_path, text):
    path = tmp_path / "stage.py"
    path.write_text(text)
    return [str(path)]


def test_a_stage_that_is_done_is_not_run_again(tmp_path, capsys):
    command = script(tmp_path, "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + 'x')")
    (tmp_path / "ran").write_text("")
    command.append(str(tmp_path / "ran"))
    first = stage("SFT, seed 0", tmp_path, command)
    assert stage("SFT, seed 0", tmp_path, command) == first > 0
    assert (tmp_path / "ran").read_text() == "x"
    assert "done before" in capsys.readouterr().out


def test_an_evaluation_that_gets_more_rows_goes_on_and_what_ran_before_is_not_run_again(tmp_path):
    command = script(tmp_path, "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + 'x')")
    (tmp_path / "ran").write_text("")
    command.append(str(tmp_path / "ran"))
    for extra in ([], ["more"], ["more"]):
        stage("evaluation-heldout", tmp_path, [*command, *extra], grows=True)
    assert (tmp_path / "ran").read_text() == "xx"
    (marker,) = (tmp_path / "stages").iterdir()
    assert json.loads(marker.read_text())["cpu_seconds"] > 0


def test_a_stage_that_failed_is_run_again_and_its_time_adds_up(tmp_path):
    command = script(tmp_path, "import pathlib, sys, time; time.sleep(0.2); sys.exit(not pathlib.Path(sys.argv[1]).exists())")
    command.append(str(tmp_path / "mended"))
    with pytest.raises(StageFailed, match="GRPO, seed 0 ended with exit code 1; .*run the same command again"):
        stage("GRPO, seed 0", tmp_path, command)
    (tmp_path / "mended").touch()
    assert stage("GRPO, seed 0", tmp_path, command) > 0.4


def test_a_folder_belongs_to_one_chain(tmp_path):
    stage("evaluation", tmp_path, script(tmp_path, ""))
    with pytest.raises(UsageError, match="name another --output_dir"):
        stage("evaluation", tmp_path, [*script(tmp_path, ""), "--other"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_waits_until_the_stage_has_saved(tmp_path, number, code):
    saving = script(
        tmp_path,
        "import signal, sys, time, pathlib\n"
        "def stop(number, frame):\n"
        "    time.sleep(0.5); pathlib.Path(sys.argv[1]).write_text('saved'); sys.exit(128 + number)\n"
        "signal.signal(signal.SIGINT, stop); signal.signal(signal.SIGTERM, stop)\n"
        "pathlib.Path(sys.argv[2]).touch(); time.sleep(3600)",
    )
    saving += [str(tmp_path / "saved"), str(tmp_path / "ready")]
    code_text = (
        "import sys; from pathlib import Path; from launch.cli import run; from launch.stages import stage\n"
        "run(lambda argv: print(stage('SFT, seed 0', Path(argv[0]), argv[1:])))"
    )
    command = [sys.executable, "-c", code_text, str(tmp_path), *saving]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # Ctrl-C reaches the whole group
    else:
        os.kill(process.pid, number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert (tmp_path / "saved").read_text() == "saved"
    (marker,) = (tmp_path / "stages").iterdir()
    assert json.loads(marker.read_text())["done"] is False


def test_a_seed_that_does_not_improve_is_shown_as_such():
    rows = [{"writer": "SFT", "correct": [100]}, {"writer": "RL", "correct": [120, 100, 90]}]
    memory = {
        "SFT": {"seeds": [{"total": 0.4, "question_score": 0.5}]},
        "RL": {"seeds": [{"total": t, "question_score": q} for t, q in ((0.5, 0.6), (0.5, 0.6), (0.3, 0.5))]},
    }
    assert seed_lines({"total": 200, "rows": rows}, memory, [0, 1, 2]) == [
        "seed 0: accuracy 50.00 -> 60.00, reward 0.400 -> 0.500, question score 0.500 -> 0.600 (+10.00 points): better",
        "seed 1: accuracy 50.00 -> 50.00, reward 0.400 -> 0.500, question score 0.500 -> 0.600 (+0.00 points): "
        "NOT better in accuracy",
        "seed 2: accuracy 50.00 -> 45.00, reward 0.400 -> 0.300, question score 0.500 -> 0.500 (-5.00 points): "
        "NOT better in accuracy, reward, question score",
    ]
    assert seed_lines({"total": 200, "rows": rows}, {}, [0]) == ["seed 0: accuracy 50.00 -> 60.00 (+10.00 points): better"]


def test_a_row_is_one_more_run_of_other_settings_from_the_same_start(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr("launch.reproduce.stage", lambda name, output, command, quiet=False, grows=False: ran.append((name, command)) or 1.0)
    monkeypatch.setattr("launch.reproduce.model", lambda folder: f"the model of {folder.name}")
    monkeypatch.setattr("launch.reproduce.finish", lambda *rest: None)
    main(
        ["--seeds", "3", "--output_dir", str(tmp_path), "--row", "no chain=--trainer.kl_coef 0 --trainer.lr 1e-4"]
        + ["--grpo-settings=--trainer.epochs 1", "--sft-settings=--trainer.epochs 2"]
    )
    assert [name for name, _ in ran] == [
        "SFT, seed 3", "GRPO, seed 3", "no chain, seed 3", "evaluation-heldout", "evaluation-unseen"
    ]  # fmt: skip
    sft, grpo, control, heldout, unseen = (" ".join(command) for _, command in ran)
    assert sft.endswith(f"--output_dir {tmp_path}/seed3/sft --trainer.epochs 2")
    assert control == grpo.replace("seed3/grpo", "seed3/no-chain") + " --trainer.kl_coef 0 --trainer.lr 1e-4"
    assert grpo.startswith("launch/grpo.py --seed 3 ") and "--config configs/demo.yaml" in grpo
    assert grpo.endswith("--model.path the model of sft --rollout.engine hf --trainer.epochs 1")
    for tested, command in (("corpus:heldout", heldout), ("corpus:unseen", unseen)):
        assert f"--data.heldout {tested} " in command
        for row in ("SFT=the model of sft", "RL=the model of grpo", "no chain=the model of no-chain", "teacher", "none"):
            assert f"--writer {row}" in command


def test_a_run_that_was_validated_ends_with_its_best_checkpoint(tmp_path):
    for number in ("000005", "000010"):
        folder = tmp_path / "run" / "checkpoints" / number
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "config.json").write_text("{}")
        (folder / "state.json").write_text("{}")
        (folder / "complete").touch()
    (tmp_path / "run" / "checkpoints" / "latest").write_text("000010")
    assert model(tmp_path / "run").endswith("000010/model")
    (tmp_path / "run" / "checkpoints" / "best").write_text("000005")
    assert model(tmp_path / "run").endswith("000005/model")


def test_sets_have_folders_of_their_own(tmp_path):
    assert evaluation_folder(tmp_path, "corpus:unseen").name == "evaluation-unseen"
    assert evaluation_folder(tmp_path, "data/mine.json").name == "evaluation-mine.json"


@pytest.mark.parametrize("row", ["no settings", "=--a 1", "SFT=--a 1", "RL=--a 1", "a,b=--a 1", "a=1"])
def test_a_row_that_says_too_little_is_refused(tmp_path, row):
    with pytest.raises(UsageError, match="--row"):
        arguments(["--output_dir", str(tmp_path), "--row", row])


def test_wrong_arguments_end_with_2(tmp_path):
    assert "a seed is given twice" in refused("reproduce", "--seeds", "1", "1", "--output_dir", tmp_path)
    for steps in ("0", "-1"):
        assert f"--steps {steps}: at least one" in refused("reproduce", "--steps", steps, "--output_dir", tmp_path)
    assert "--seeds 0 -1" in refused("reproduce", "--seeds", "0", "-1", "--output_dir", tmp_path)
    assert "--sft nowhere: is not there" in refused("reproduce", "--sft", "nowhere", "--output_dir", tmp_path)
