"""The reward's questions and the evaluation's are asked alike, and where settings make a difference it is said."""

import pytest

from memory_env.query.retrieve.dense import minilm_installed
from rewards.qa_results import QAGroup
from tests.memory_env.query.chat_server import ok, serving
from tests.memory_env.query.memories import CLUB, asked
from writer_rl.config import AskingSection, EvaluationSection, QASection
from writer_rl.evaluation.asking import asked_otherwise, open_asking
from writer_rl.evaluation.frozen import frozen_hashes
from writer_rl.grpo.questions import Questions

ENDPOINT = {"backend": "openai", "query": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
CHANGES = {
    "s1_recall": 20,
    "s1_k": 3,
    "s2_k": 5,
    "source_k": 0,
    "ask": True,
    "retrieval": "dense",
    "query": "rules",
    "query_model": "projector",
    "backend": "offline",
    "model": "other",
    "judge_model": "strict",
    "base_url": "http://127.0.0.1:2/v1",
}
FREE = {"concurrency", "deadline_s", "max_failure_rate"}


def test_every_setting_is_either_compared_or_decides_nothing():
    assert set(AskingSection.model_fields) == set(CHANGES) | FREE


@pytest.mark.parametrize("key", CHANGES)
def test_a_difference_between_reward_and_evaluation_is_named(key):
    reward, evaluation = QASection(**ENDPOINT), EvaluationSection(**{**ENDPOINT, key: CHANGES[key]})
    said = asked_otherwise(reward, evaluation)
    assert said is not None and asked_otherwise(QASection(**{**ENDPOINT, key: CHANGES[key]}), evaluation) is None


def test_what_is_said_has_both_values_and_nothing_that_nobody_reads():
    assert asked_otherwise(QASection(s1_k=2), EvaluationSection()) == "s1_k 2 (evaluation: 10)"
    judged = EvaluationSection(backend="openai", model="big", judge_model="strict", base_url="http://h/v1")
    said = asked_otherwise(QASection(), judged)
    assert "answers offline rules (evaluation: big)" in said and "judge offline rules (evaluation: strict)" in said
    assert asked_otherwise(QASection(concurrency=1, base_url="http://h/v1"), EvaluationSection()) is None


@pytest.fixture
def no_check(monkeypatch):
    """Endpoints count as reachable."""
    monkeypatch.setattr("memory_env.query.answer.endpoint_client.EndpointClient.check", lambda self: self)


@pytest.mark.parametrize("key", [key for key in CHANGES if key != "base_url"])
def test_equal_settings_give_equal_hashes_and_every_one_of_them_counts(key, tmp_path, no_check):
    """base_url is where, not who: it may change within a run."""
    if key == "retrieval" and not minilm_installed():
        pytest.skip("all-MiniLM-L6-v2 is not installed")

    def of_run(settings):
        return Questions(QASection(**settings), tmp_path / "a.sqlite").frozen([])

    def of_evaluation(settings):
        asking = open_asking(EvaluationSection(**settings), "evaluation", tmp_path / "b.sqlite")
        return frozen_hashes([], asking.pipeline(), asking.backend.answerer, asking.backend.judge)

    settings = {**ENDPOINT, "ask": True} if key in ("query", "query_model") else ENDPOINT
    changed = {**settings, key: CHANGES[key]}
    assert of_run(settings) == of_evaluation(settings)
    assert of_run(changed) == of_evaluation(changed) != of_run(settings)


@pytest.mark.endpoint
def test_the_reward_can_project_and_select_by_a_model_each_question_once_for_a_group(tmp_path):
    stages = []

    def reply(handler, request):
        system = request["messages"][0]["content"]
        if "look-up plan" in system:
            stages.append("project")
            answer = {"issue": "chess", "rows": ["Carol"], "tense": "head", "source": "", "owner": ""}
        elif "choose verbatim messages" in system:
            stages.append("select")
            answer = {"ranking": [1], "expand": []}
        elif "Gold answer" in request["messages"][-1]["content"]:
            stages.append("judge")
            answer = {"correct": True, "score": 1.0, "reason": "yes"}
        else:
            stages.append("answer")
            answer = {"answer": "Carol"}
        ok(answer)(handler, request)

    with serving(reply) as url:
        settings = QASection(query="openai", backend="openai", model="m", base_url=url)
        group = QAGroup("n", [asked("Who is good at chess?", answer="Carol")], [CLUB, CLUB, CLUB])
        gain = Questions(settings, tmp_path / "responses.sqlite")([group])[0]
    assert gain.failed == 0 and gain.both == (1.0, 1.0, 1.0)
    assert stages.count("project") == stages.count("select") == 1 and {"answer", "judge"} <= set(stages)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "openai"}, "set reward.qa.model"),
        ({"query": "openai"}, "set reward.qa.query_model"),
        ({"query_model": "m"}, "rules never ask m"),
        ({"model": "m"}, "offline never asks m"),
        ({"judge_model": "m", "query": "openai", "model": "q"}, "offline never asks m"),
    ],
)
def test_a_missing_or_useless_model_is_one_line(settings, words, tmp_path):
    with pytest.raises(ValueError, match=words) as caught:
        open_asking(QASection(**settings), "reward.qa", tmp_path / "r.sqlite")
    assert "\n" not in str(caught.value)
