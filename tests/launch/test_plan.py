import re
import subprocess
import sys

from tests.conftest import PATIENCE


def plan(repository, *arguments):
    command = [sys.executable, "launch/plan.py", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=PATIENCE)


def test_the_table_names_every_card_and_the_exact_size(repository):
    shown = plan(repository)
    assert shown.returncode == 0
    assert "3,085,938,688 parameters" in shown.stdout
    assert all(f"{card} GiB" in shown.stdout for card in (24, 40, 80))
    assert all(way in shown.stdout for way in ("ZeRO-3", "on CPU", "8-bit AdamW", "LoRA of rank 16"))


def test_one_run_is_itemised(repository):
    shown = plan(repository, "--gpus", "2", "--zero", "3", "--offload", "all")
    assert shown.returncode == 0
    assert "update peak" in shown.stdout and "fits: 24 GiB" in shown.stdout


def test_an_adapter_needs_no_reference_and_hardly_any_state(repository):
    shown = plan(repository, "--gpus", "1", "--lora-rank", "16", "--optimizer", "adamw8bit")
    assert shown.returncode == 0
    sizes = {part: float(size) for part, size in re.findall(r"^  (\w+) +([0-9.]+) GiB", shown.stdout, re.MULTILINE)}
    assert sizes["reference"] == 0 and sizes["optimizer"] < 0.3 < sizes["weights"]


def test_other_cards_and_a_configured_run_with_its_disk(repository):
    shown = plan(repository, "--card", "48", "--card", "H200")
    assert shown.returncode == 0 and "48 GiB" in shown.stdout and "141 GiB" in shown.stdout and "24 GiB" not in shown.stdout
    shown = plan(repository, "--config", "configs/qwen2.5-3b.yaml", "--gpus", "16", "--zero", "3", "--card", "a100")
    assert shown.returncode == 0 and "on 16 GPUs, ZeRO-3" in shown.stdout and "fits: 80 GiB" in shown.stdout
    assert "a checkpoint to go on from 46.0 GiB, a light one 5.7 GiB" in shown.stdout


def test_wrong_arguments_end_with_one_line_and_2(repository):
    for arguments in (
        ["--model", "absent"],
        ["--gpus", "3", "--tensor-parallel", "2"],
        ["--zer", "1"],
        ["--gpus", "x"],
        ["--gpus", "0"],
        ["--sequences", "0"],
        ["--card", "toaster"],
    ):
        shown = plan(repository, *arguments)
        assert shown.returncode == 2
        assert shown.stderr.count("\n") == 1 and "Traceback" not in shown.stderr
