"""Terminal questions asked of an endpoint in training: answered once, whatever happens to the run in between."""

import json

import pytest

from tests.memory_env.query.chat_server import ok, serving
from tests.writer_rl.grpo.test_run import assert_same_run, records
from tests.writer_rl.processes import train
from tests.writer_rl.tiny_run import save_config


@pytest.mark.endpoint
def test_a_killed_run_asks_nothing_twice_and_ends_the_same(tmp_path):
    asked = []

    def reply(handler, request):
        asked.append(json.dumps(request["messages"]))
        judging = "Gold answer" in request["messages"][-1]["content"]
        (ok({"correct": True, "score": 1.0, "reason": "yes"}) if judging else ok({"answer": "Ann: tea"}))(handler, request)

    with serving(reply) as url:
        qa = {"backend": "openai", "model": "m", "base_url": url}
        config = save_config(tmp_path, {"reward.qa": qa, "trainer.keep_checkpoints": 9})
        assert train(config, "--output_dir", str(tmp_path / "whole")) == [0]
        whole, asked[:] = sorted(asked), []
        assert len(whole) == len(set(whole)) > 0
        assert records(tmp_path / "whole")[0]["qa/both"] == 1.0
        killed = ["--output_dir", str(tmp_path / "killed")]
        assert train(config, *killed, event="SIGKILL epoch 1") == [-9]  # the round's questions are judged, nothing is saved
        assert asked
        assert train(config, *killed) == [0]
    assert sorted(asked) == whole
    assert_same_run(tmp_path / "killed", tmp_path / "whole", steps=2)


def test_a_run_says_at_its_start_where_its_questions_are_asked_otherwise_than_the_evaluation_s(tmp_path):
    config = save_config(tmp_path, {"reward.qa": {"s1_k": 2}, "trainer.steps": 1})
    line = "the reward's questions are asked otherwise than the evaluation's: s1_k 2 (evaluation: 10)"
    for name, arguments, said in (
        ("plan", ["--dry-run"], 1),
        ("run", ["--output_dir", str(tmp_path / "a")], 1),
        ("alike", ["--dry-run", "--evaluation.s1_k", "2"], 0),
    ):
        assert train(config, *arguments, output=tmp_path / name) == [0]
        assert (tmp_path / f"{name}.0").read_text().count(line) == said
