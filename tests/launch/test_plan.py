import subprocess
import sys


def plan(repository, *arguments):
    command = [sys.executable, "launch/plan.py", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60)


def test_the_table_names_every_card_and_the_exact_size(repository):
    shown = plan(repository)
    assert shown.returncode == 0
    assert "3,085,938,688 parameters" in shown.stdout
    assert all(f"{card} GiB" in shown.stdout for card in (24, 40, 80))
    assert "ZeRO-3" in shown.stdout and "on CPU" in shown.stdout


def test_one_run_is_itemised(repository):
    shown = plan(repository, "--gpus", "2", "--zero", "3", "--offload", "all")
    assert shown.returncode == 0
    assert "update peak" in shown.stdout and "fits: 24 GiB" in shown.stdout


def test_wrong_arguments_end_with_one_line_and_2(repository):
    for arguments in (
        ["--model", "absent"],
        ["--gpus", "3", "--tensor-parallel", "2"],
        ["--zer", "1"],
        ["--gpus", "x"],
    ):
        shown = plan(repository, *arguments)
        assert shown.returncode == 2
        assert shown.stderr.count("\n") == 1 and "Traceback" not in shown.stderr
