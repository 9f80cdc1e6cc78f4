"""README's GPU block works: all of it is run, with stand-ins for what a laptop lacks."""

import re

import pytest

from memory_env.ingest import socialmem
from memory_env.ingest.rows import hub_rows
from tests.conftest import ROOT
from tests.rehearsal.checks import CHECKS
from tests.rehearsal.dataset import write_dataset
from tests.rehearsal.rehearse import commands_of_block, main, replaced


@pytest.mark.vllm
@pytest.mark.timeout(1800)
def test_the_whole_block_runs_from_nothing(tmp_path, capsys):
    """Prepare, teach, SFT and GRPO on two ranks with vLLM rollouts, evaluation, export, serve, remember, ask."""
    main(["--short", "--folder", str(tmp_path / "rehearsal")])
    assert "rehearsed: 11 commands" in capsys.readouterr().out


def test_commands_keep_their_order_and_only_gain_settings():
    block = [command.text for command in commands_of_block(ROOT / "README.md")]
    order = ["plan", "read", "teach", "teach", "sft", "grpo", "evaluate", "export", "vllm serve", "remember", "ask"]
    assert len(block) == len(order) and all(word in text for word, text in zip(order, block, strict=True))
    for text in block:
        kept = text.replace("MODEL", "stand-in").replace("gpu2.yaml", "cpu2.yaml")
        assert replaced(text, short=True).startswith(kept)


def test_every_command_of_the_block_is_checked_afterwards():
    for command in commands_of_block(ROOT / "README.md"):
        assert any(re.search(pattern, command.text) for pattern, _ in CHECKS), command.text


def test_the_stand_in_dataset_is_read_like_the_published_one(tmp_path):
    """As a folder, and through `datasets` as the Hub's; the paper's split holds in both."""
    write_dataset(tmp_path / "bench")
    train, heldout = socialmem.split(socialmem.read(tmp_path / "bench"))
    assert [len(train), len(heldout)] == [10, 10] and sum(len(n.questions) for n in heldout) == 305
    for table, rows in (("networks", 20), ("qa", 382)):
        found = [row.value for row in hub_rows(str(tmp_path / "bench"), table)]
        assert len(found) == rows and all("network_id" in row for row in found)
    asked = {row.text("qa_id"): row.text("question") for row in hub_rows(str(tmp_path / "bench"), "qa")}
    assert all(asked[question.id] == question.question for network in (*train, *heldout) for question in network.questions)
