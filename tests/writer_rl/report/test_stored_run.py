"""A run's directory read again: memories replayed from texts, forks followed, and what does not fit together refused."""

import json
from dataclasses import replace

import pytest

from memory_env import DataError
from tests.writer_rl.report.made_runs import make_run
from writer_rl.report.stored_run import StoredRun, chosen_rounds, replay_group
from writer_rl.run.directory import RunError


@pytest.fixture
def path(tmp_path):
    return make_run(tmp_path / "run", rounds=2, networks=["train_update_a"], group_size=3)


def test_memories_follow_from_the_texts(path):
    (group,) = StoredRun(path).round(1).groups
    for row, steps in zip(group.records, group.steps, strict=True):
        assert [made.report.to_dict() for made in steps] == [line.report for line in row]
        for before, after in zip(steps, steps[1:], strict=False):
            assert before.post_state is after.pre_state


def test_a_fork_goes_on_from_the_trajectory_it_names(path):
    """As local credit re-rolls: at every position all completions start from the memory of trajectory 0."""
    run = StoredRun(path)
    (group,) = run.round(1).groups
    lines = [replace(line, forked_from=0 if line.position else None) for row in group.records for line in row]
    forked = replay_group(group.taught, lines, run.config.data)
    for t in range(1, group.taught.length):
        before = forked.steps[0][t - 1].post_state
        assert all(row[t].pre_state is before for row in forked.steps)
    assert [s.post_state.to_dict() for s in forked.steps[0]] == [s.post_state.to_dict() for s in group.steps[0]]


def test_what_replays_otherwise_than_recorded_is_counted(path):
    file = path / "trajectories" / "round-000001.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["report"]["applied"] += 1
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [g.differing for g in StoredRun(path).round(1).groups] == [1]


def test_incomplete_or_unknown_rounds_are_refused_in_one_line(path):
    run = StoredRun(path)
    file = path / "trajectories" / "round-000001.jsonl"
    whole = file.read_text()
    cases = {
        whole[: len(whole) - 30]: "last line is cut",
        "".join(whole.splitlines(True)[:-1]): "positions",
        whole.replace("train_update_a", "elsewhere"): "data.train",
    }
    for text, message in cases.items():
        file.write_text(text)
        with pytest.raises((RunError, DataError), match=message) as error:
            run.round(1)
        assert "\n" not in str(error.value)
    with pytest.raises(RunError, match="no round 9; there are 1-2"):
        run.round(9)
    (path / "config.yaml").unlink()
    with pytest.raises(RunError, match="config.yaml"):
        StoredRun(path)


def test_ranges_of_rounds(path):
    run = StoredRun(path)
    run.numbers = [1, 2, 3, 7]
    assert chosen_rounds(run, None) == [1, 2, 3, 7] == chosen_rounds(run, "1-")
    assert chosen_rounds(run, "2-5") == [2, 3] and chosen_rounds(run, "-2") == [1, 2] and chosen_rounds(run, "7") == [7]
    for text in ("8-9", "a", "-", "3-1", ""):
        with pytest.raises(RunError):
            chosen_rounds(run, text)
