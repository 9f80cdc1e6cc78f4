"""What each command of the block has to leave behind: a command that ends with 0 and did nothing is no success."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


def check(command: str, checkout: Path, printed: str) -> str:
    """One line of what was found after `command`; AssertionError where it is not there."""
    for pattern, found in CHECKS:
        if re.search(pattern, command):
            return found(command, checkout, printed)
    raise AssertionError(f"the rehearsal knows nothing to check after: {command}")


def _plan(command: str, checkout: Path, printed: str) -> str:
    assert "GiB" in printed
    return "the plan is printed"


def _read(command: str, checkout: Path, printed: str) -> str:
    folder = checkout / _option(command, "--output")
    parts = {name: len(list((folder / name).glob("*.json"))) for name in ("train", "heldout")}
    assert parts == {"train": 10, "heldout": 10}
    return "10 training and 10 held-out networks"


def _teach(command: str, checkout: Path, printed: str) -> str:
    files = list((checkout / _option(command, "--output") / "trajectories").glob("*.json"))
    actions = sum(len(each["actions"]) for file in files for each in json.loads(file.read_text())["transitions"])
    assert len(files) == 10 and actions > 20
    return f"{len(files)} trajectories with {actions} actions"


def _sft(command: str, checkout: Path, printed: str) -> str:
    run = checkout / "runs/qwen2.5-3b-sft"
    records = _metrics(run)
    assert list((run / "final").glob("*.safetensors"))
    return f"{len(records)} lines of metrics, loss {records[0]['sft/loss']:.2f} -> {records[-1]['sft/loss']:.2f}"


def _grpo(command: str, checkout: Path, printed: str) -> str:
    run = checkout / "runs/qwen2.5-3b-grpo"
    records = _metrics(run)
    assert all(record["rollout/sync_equal_tensors"] > 0 for record in records), "weights were compared bit for bit"
    assert all(record["qa/networks_without_gain"] == 0 for record in records), "the endpoint judged"
    settings = (run / "config.yaml").read_text()
    assert "engine: vllm" in settings and "dtype: bfloat16" in settings
    last = records[-1]
    return f"{len(records)} rounds, {last['rollout/completions']} completions, {last['rollout/sync_equal_tensors']} tensors equal"


def _evaluate(command: str, checkout: Path, printed: str) -> str:
    document = json.loads((checkout / "runs/qwen2.5-3b-evaluation/evaluation.json").read_text())
    rows = {row["writer"]: row["accuracy_mean"] for row in document["rows"]}
    assert list(rows) == ["teacher", "SFT", "RL"] and document["total"] == 305
    assert "verdicts by DeepSeek-V4-Flash" in printed, "the configured judge, not the offline rules"
    assert "notes" not in document, "reward and evaluation ask alike"
    return ", ".join(f"{name} {accuracy:.1f} %" for name, accuracy in rows.items())


def _export(command: str, checkout: Path, printed: str) -> str:
    folder = checkout / _option(command, "--output")
    assert {"README.md", "config.json", "prompt.jinja"} <= {file.name for file in folder.iterdir()}
    return f"{folder.name}: weights, tokenizer, prompt, card"


def _serve(command: str, checkout: Path, printed: str) -> str:
    return "serving"


def _remember(command: str, checkout: Path, printed: str) -> str:
    assert (checkout / _option(command, "--memory")).is_file()
    return printed.strip().splitlines()[-1]


def _ask(command: str, checkout: Path, printed: str) -> str:
    assert printed.strip()
    return printed.strip().splitlines()[0]


CHECKS: tuple[tuple[str, Callable[[str, Path, str], str]], ...] = (
    (r"launch/plan\.py", _plan),
    (r"prepare\.py read", _read),
    (r"prepare\.py teach", _teach),
    (r"launch/sft\.py", _sft),
    (r"launch/grpo\.py", _grpo),
    (r"launch/evaluate\.py", _evaluate),
    (r"launch/export\.py", _export),
    (r"^vllm serve", _serve),
    (r"launch/remember\.py", _remember),
    (r"launch/ask\.py", _ask),
)


def _option(command: str, name: str) -> str:
    words = command.split()
    return words[words.index(name) + 1]


def _metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
