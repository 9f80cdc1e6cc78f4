"""The chain's bookkeeping, with small commands as stages; the stages themselves are tested where they are."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from launch.cli import UsageError
from launch.reproduce import StageFailed, seed_lines, stage
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
        "import sys; from pathlib import Path; from launch.cli import run; from launch.reproduce import stage\n"
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


def test_wrong_arguments_end_with_2(tmp_path):
    assert "a seed is given twice" in refused("reproduce", "--seeds", "1", "1", "--output_dir", tmp_path)
    for steps in ("0", "-1"):
        assert f"--steps {steps}: at least one" in refused("reproduce", "--steps", steps, "--output_dir", tmp_path)
    assert "--seeds 0 -1" in refused("reproduce", "--seeds", "0", "-1", "--output_dir", tmp_path)
    assert "--sft nowhere: is not there" in refused("reproduce", "--sft", "nowhere", "--output_dir", tmp_path)
