"""The lines that are kept of a round tell what was computed, and can be read again."""

import json

from memory_env.conversation import Question
from memory_env.query.protocol import Answer, Evidence, EvidenceItem, EvidenceRow, Projection, Verdict
from rewards.qa_results import QAExchange, QAGain, QATranscript
from rollout.seeds import request_seed
from tests.writer_rl.grpo.test_groups import G, assembled, gain, setting  # noqa: F401 (a fixture)
from writer_rl.grpo.records import question_records, trajectory_records
from writer_rl.run.rollout_files import COMPLETION_SCHEMA, QUESTION_SCHEMA, read_round


def test_one_record_per_completion_with_its_rewards(setting):  # noqa: F811
    group = assembled(setting, {"chat_0": gain("chat_0", [1.0, 0.0, -1.0])})[0]
    records = trajectory_records(group, run_seed=5, visit=2)
    assert len(records) == G * 2
    for record in records:
        g, t = record["trajectory"], record["position"]
        assert record["return"] == group.returns[g, t] and record["advantage"] == group.advantages[g, t]
        assert record["reward"]["mem"] == group.trajectories[g].steps[t].reward.mem
        assert record["qa_gain"] == (1.0, 0.0, -1.0)[g] and record["policy_version"] == 7
        assert record["seed"] == request_seed(5, "chat_0", g, t, 7, 2)
        assert record["silent"] == (group.deviations[g, t] < 0.02) and record["sigma"] == group.deviations[g, t]
        assert record["prompt_tokens"] == len(group.trajectories[g].steps[t].step.prompt_ids)
        assert record["schema"] == COMPLETION_SCHEMA and record["length"] == 2


def test_what_is_written_is_read_again(setting, tmp_path):  # noqa: F811
    group = assembled(setting, {"chat_0": gain("chat_0", [1.0, 0.0, -1.0])})[0]
    (tmp_path / "trajectories").mkdir()
    lines = [json.dumps(record) for record in trajectory_records(group, 0, 0)]
    (tmp_path / "trajectories" / "round-000001.jsonl").write_text("\n".join(lines) + "\n")
    found = read_round(tmp_path, 1)
    assert [(r.trajectory, r.position) for r in found.networks()["chat_0"]] == [(g, t) for g in range(G) for t in range(2)]
    assert all(r.total == group.returns[r.trajectory, r.position] for r in found.completions)


def test_a_question_keeps_evidence_answers_and_verdicts(setting):  # noqa: F811
    old, new = (EvidenceItem(text, "Ann", "Ann", "per_speaker_core", current=text == "tea") for text in ("milk", "tea"))
    s1 = Evidence(("Ann",), Projection("like", ("Ann",)), (EvidenceItem("hello", "Ann", "Ann", "per_speaker_episodic"),))
    both = Evidence(s1.roster, s1.projection, s1.messages, (EvidenceRow("Ann", ((old, new),)),))
    transcript = QATranscript(
        Question("q1", "Q8", "What does Ann like?", "tea"),
        (
            QAExchange("s1", (0, 1, 2), s1, Answer("nothing recorded"), Verdict(False, 0.0)),
            QAExchange("both", (0, 1, 2), both, Answer("tea"), Verdict(True, 1.0, "as asked")),
        ),
    )
    zeros = (0.0,) * G
    qa = QAGain("chat_0", zeros, zeros, zeros, 1, 0, 4, 12, transcripts=(transcript,))
    (line,) = json.loads(json.dumps(question_records(assembled(setting, {"chat_0": qa})[0])))
    assert line["schema"] == QUESTION_SCHEMA and line["gold"] == "tea" and [m["content"] for m in line["messages"]] == ["hello"]
    assert [(e["track"], e["correct"], e["reason"]) for e in line["exchanges"]] == [("s1", False, ""), ("both", True, "as asked")]
    chain = line["exchanges"][1]["rows"][0]["chains"][0]
    assert [(item["content"], item.get("current", True)) for item in chain] == [("milk", False), ("tea", True)]


def test_a_group_that_was_not_asked_has_no_questions(setting):  # noqa: F811
    assert question_records(assembled(setting)[0]) == []
