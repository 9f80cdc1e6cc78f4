"""Rejection sampling from a stored run: the best completion of each position, its own prompt, nothing where nothing is better."""

import json

import pytest

from memory_env.datafile import DataError
from writer_rl.run.directory import RunError
from writer_rl.run.rollout_files import COMPLETION_SCHEMA
from writer_rl.sft.best_samples import best_samples


def line(trajectory, total, advantage, position=0, **changes):
    return {
        "schema": COMPLETION_SCHEMA, "network_id": "net", "trajectory": trajectory, "position": position, "policy_version": 0,
        "text": "{}", "finish_reason": "stop", "actions": [], "report": {}, "reward": {}, "return": total, "advantage": advantage,
        "prompt_ids": [1, position], "completion_ids": [10 + trajectory, 2],
    } | changes  # fmt: skip


def run(folder, *rounds):
    (folder / "trajectories").mkdir(parents=True)
    for number, lines in enumerate(rounds, 1):
        (folder / "trajectories" / f"round-{number:06d}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder


def test_the_best_of_each_position_of_each_round_is_learnt(tmp_path):
    shared = line(1, 0.9, 1.2, prompt_of=0)
    del shared["prompt_ids"]
    first = [line(0, 0.4, -0.3), shared, line(2, 0.9, 1.2), line(3, 0.2, -1.6)]
    second = [line(0, 0.5, 0.0, 1), line(1, 0.5, 0.0, 1)]
    third = [line(0, 0.8, 1.0, finish_reason="length"), line(1, 0.1, -1.0)]
    found = best_samples(run(tmp_path / "run", first + second, third, [line(0, 0.1, -1.0, 1), line(1, 0.3, 1.0, 1)]))
    assert [(s.prompt_ids, s.completion_ids) for s in found] == [((1, 0), (11, 2)), ((1, 1), (11, 2))]


def test_a_run_that_teaches_nothing_and_a_folder_that_is_none(tmp_path):
    with pytest.raises(DataError, match="no completion of its rounds is better"):
        best_samples(run(tmp_path / "run", [line(0, 0.5, 0.0), line(1, 0.5, 0.0)]))
    with pytest.raises(RunError):
        best_samples(tmp_path / "none")
