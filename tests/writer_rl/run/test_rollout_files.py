"""What is stored of a round can be read again, in every form there has been, and what can't be read says so in one line."""

import json

import pytest

from writer_rl.run.directory import RunError
from writer_rl.run.rollout_files import COMPLETION_SCHEMA, QUESTION_SCHEMA, read_round, read_rounds, round_numbers

OLD = {
    "network_id": "net", "policy_version": 0, "trajectory": 0, "position": 0, "prompt_ids": [1], "completion_ids": [2, 3],
    "logprobs": [-0.1, -0.2], "text": "{}", "finish_reason": "stop", "actions": [], "report": {"json_valid": False},
    "omitted_heads": 0, "reward": {"mem": 0.5}, "qa_gain": None, "return": 0.25, "advantage": 0.0,
}  # fmt: skip


def write(run, number, lines, tail=""):
    folder = run / "trajectories"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"round-{number:06d}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return run


def test_the_form_before_there_were_numbers_is_still_read(tmp_path):
    found = read_round(write(tmp_path, 1, [OLD]), 1)
    (record,) = found.completions
    assert (record.total, record.tokens, record.forked_from, found.cut) == (0.25, 2, None, False)


def test_keys_of_a_later_program_are_kept_and_do_no_harm(tmp_path):
    line = {**OLD, "schema": COMPLETION_SCHEMA, "forked_from": 0, "lag": 1, "new": [1]}
    (record,) = read_round(write(tmp_path, 1, [line]), 1).completions
    assert record.forked_from == 0 and record.fields["lag"] == 1 and record.fields["new"] == [1]


def test_a_torn_last_line_costs_only_itself(tmp_path):
    found = read_round(write(tmp_path, 1, [OLD, {**OLD, "trajectory": 1}], tail=json.dumps(OLD)[:50]), 1)
    assert [r.trajectory for r in found.completions] == [0, 1] and found.cut


@pytest.mark.parametrize(
    "lines, tail, message",
    [
        ([OLD], '{"torn\n' + json.dumps(OLD) + "\n", "line 2: is not JSON"),
        ([{**OLD, "schema": "writer-rl/completion/99"}], "", "completion/99"),
        ([{**OLD, "return": "high"}], "", "`return` is str"),
        ([{k: v for k, v in OLD.items() if k != "text"}], "", "`text` is missing"),
        ([{"step": 1}], "", "network_id"),
        ([], "[1]\n", "no JSON object"),
        ([], "", "holds no completion"),
    ],
)
def test_what_is_no_round_is_refused_in_one_line_that_names_the_file(tmp_path, lines, tail, message):
    with pytest.raises(RunError) as error:
        read_round(write(tmp_path, 1, lines, tail), 1)
    assert message in str(error.value) and "round-000001.jsonl" in str(error.value) and "\n" not in str(error.value)


def test_a_missing_round_names_those_that_are_there(tmp_path):
    for number in (1, 2, 3, 7):
        write(tmp_path, number, [OLD])
    assert round_numbers(tmp_path) == [1, 2, 3, 7] == [r.number for r in read_rounds(tmp_path)]
    with pytest.raises(RunError, match="has no round 5; there are 1-3, 7"):
        read_round(tmp_path, 5)


def test_a_folder_without_rounds_says_what_to_name(tmp_path):
    with pytest.raises(RunError, match="GRPO run"):
        round_numbers(tmp_path)
    with pytest.raises(RunError, match="no such run"):
        round_numbers(tmp_path / "none")


def test_questions_of_another_form_are_left_out(tmp_path):
    write(tmp_path, 1, [OLD])
    (tmp_path / "questions").mkdir()
    lines = [{"schema": QUESTION_SCHEMA, "question_id": "q1"}, {"schema": "writer-rl/question/9", "question_id": "q2"}]
    (tmp_path / "questions" / "round-000001.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [q["question_id"] for q in read_round(tmp_path, 1).questions] == ["q1"]
