"""The terminal gain, with fakes where calls must be counted or fail, and with the real offline pipeline at the end."""

import dataclasses
import pickle
import random
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.conversation import Message, Question, Segment
from memory_env.query.answer.offline import OfflineAnswerer, OfflineJudge
from memory_env.query.budgets import QueryBudgets
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.protocol import Answer, Evidence, EvidenceItem, EvidenceRow, JudgeError, Projection, Verdict
from memory_env.state import MemoryState
from memory_env.step import step
from rewards import QAFailure, QAGain, QAGroup, qa_gain, select_questions
from rewards.qa_results import allowed_failures
from tests.conftest import PATIENCE


def question(name, answer="tea"):
    return Question(name, "Q1", f"{name}?", answer)


def item(content):
    return EvidenceItem(content, owner="Alice", source="Alice", layer="per_speaker_core")


class Retrieval:
    """A memory is {question text: what its derived records say}; the messages never say anything."""

    def index_group(self, memories):
        return list(memories)

    def evidence(self, question, index):
        if index.get(question) == "unreachable":
            raise JudgeError("no route", stage="project")
        rows = (EvidenceRow("Alice", ((item(index[question]),),)),) if question in index else ()
        return Evidence(("Alice",), Projection(question, ("Alice",)), (item("a message"),), rows)


class Backend:
    """Answers what the first row says, "don't know" without rows. Keeps every call; fails where `fails` says so."""

    fingerprint = {}

    def __init__(self, fails=lambda stage, name, text: False, pause=lambda: None):
        self.answered, self.judged = [], []
        self._fails, self._pause = fails, pause

    def answer(self, question, evidence):
        text = evidence.rows[0].chains[0][0].content if evidence.rows else "don't know"
        self.answered.append((question.id, text))
        self._pause()
        if self._fails("answer", question.id, text):
            raise JudgeError("the endpoint hung up", stage="answer", question_id=question.id)
        return Answer(text)

    def judge(self, question, answer):
        self.judged.append((question.id, answer.text))
        self._pause()
        if self._fails("judge", question.id, answer.text):
            raise JudgeError("no verdict", question_id=question.id)
        return Verdict(answer.text == question.answer, float(answer.text == question.answer))

    @property
    def calls(self):
        return len(self.answered) + len(self.judged)


def gain(questions, memories, backend=None, **settings):
    backend = backend or Backend()
    [result] = qa_gain([QAGroup("net", questions, memories)], Retrieval(), backend, backend, **settings)
    return result


FOUR = [question(name) for name in ("q1", "q2", "q3", "q4")]


def all_different(size, questions=FOUR):
    return [{q.question: f"{q.id} as {g} has it" for q in questions} for g in range(size)]


def test_the_fixed_questions_by_hand():
    names = ["q3", "q10", "q1", "q5", "q2", "q4"]  # as strings: q1 q10 q2 q3 q4 q5
    assert [q.id for q in select_questions([question(name) for name in names])] == ["q1", "q10", "q3", "q4"]
    assert [q.id for q in select_questions([question(name) for name in names], 1)] == ["q1"]
    assert [q.id for q in select_questions([question(name) for name in names], 6)] == sorted(names)
    assert select_questions([]) == () == select_questions(FOUR, 0)


@given(st.sets(st.text(max_size=3), max_size=15), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_fixed_questions_do_not_depend_on_the_files_order(names, limit, dice):
    questions = [question(name) for name in names]
    chosen = select_questions(questions, limit)
    ordered = sorted(questions, key=lambda q: q.id)
    assert chosen == select_questions(dice.sample(questions, len(questions)), limit)
    assert len(set(chosen)) == len(chosen) == min(limit, len(names))
    assert list(chosen) == [ordered[i * len(names) // len(chosen)] for i in range(len(chosen))]


def test_the_transcript_tells_who_read_what_and_how_it_was_judged():
    (transcript,) = gain([question("q1")], [{"q1?": "tea"}, {}, {"q1?": "tea"}, {"q1?": "milk"}]).transcripts
    told = [(e.track, e.trajectories, e.answer.text, e.verdict.correct) for e in transcript.exchanges]
    assert told == [
        ("s1", (0, 1, 2, 3), "don't know", False),
        ("both", (0, 2), "tea", True),
        ("both", (1,), "don't know", False),
        ("both", (3,), "milk", False),
    ]
    assert transcript.question.id == "q1" and transcript.error == "" and not transcript.exchanges[0].evidence.rows


def test_a_question_that_was_left_out_says_why_in_the_transcript():
    result = gain([question("q1"), question("q2")], [{"q1?": "unreachable"}], max_failure_rate=1.0)
    left_out, asked = result.transcripts
    assert "project failed: no route" in left_out.error and left_out.exchanges == () and len(asked.exchanges) == 2


def test_a_worked_example():
    result = gain([question("q1")], [{"q1?": "tea"}, {}])
    assert result == QAGain("net", (1.0, 0.0), (1.0, 0.0), (0.0, 0.0), questions=1, failed=0, calls=4, naive_calls=8)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.calls = 0


def test_a_memory_that_misleads_has_a_negative_gain():
    """System 1 alone answers "don't know", which is right where nothing is known."""
    nothing = question("q1", answer="don't know")
    assert gain([nothing], [{"q1?": "coffee"}, {}]).gains == (-1.0, 0.0)


def naive(questions, memories):
    """Eq. 8 and 22 word for word: every evidence of every trajectory answered and judged for itself."""
    backend, gains = Backend(), []
    for memory in memories:
        accuracy = {}
        for track in ("both", "s1"):
            correct = 0
            for q in questions:
                evidence = Retrieval().evidence(q.question, memory)
                answer = backend.answer(q, evidence if track == "both" else evidence.verbatim_only())
                correct += backend.judge(q, answer).correct
            accuracy[track] = correct / len(questions)
        gains.append(accuracy["both"] - accuracy["s1"])
    return gains, backend.calls


known = st.dictionaries(st.sampled_from(["q1?", "q2?", "q3?"]), st.sampled_from(["tea", "coffee"]))


@given(
    st.lists(known, min_size=1, max_size=5),
    st.lists(st.sampled_from(["tea", "coffee", "don't know"]), min_size=1, max_size=3),
)
def test_sharing_calls_never_changes_a_gain(memories, golds):
    questions = [question(f"q{place}", gold) for place, gold in enumerate(golds, start=1)]
    expected, naive_calls = naive(questions, memories)
    backend = Backend()
    result = gain(questions, memories, backend)
    assert result.gains == pytest.approx(expected, abs=1e-12)
    assert result.calls == backend.calls <= naive_calls == result.naive_calls
    assert len(set(backend.answered)) == len(backend.answered)
    assert len(set(backend.judged)) == len(backend.judged)


def test_a_group_of_8_costs_at_most_57_percent_even_if_no_two_memories_agree():
    backend = Backend()
    result = gain(FOUR, all_different(8), backend)
    assert result.naive_calls == 2 * 8 * 4 * 2
    assert result.calls == backend.calls == 72
    assert result.calls <= 0.57 * result.naive_calls
    assert sum(text == "don't know" for _, text in backend.answered) == 4  # System 1 alone: once per question


def test_equal_memories_cost_what_one_costs():
    backend = Backend()
    result = gain(FOUR, all_different(1) * 8, backend)
    assert result.calls == backend.calls == 2 * 4 * 2


def test_equal_answers_to_different_evidence_are_judged_once():
    class Terse(Backend):
        def answer(self, question, evidence):
            super().answer(question, evidence)
            return Answer("tea")

    backend = Terse()
    assert gain(FOUR, all_different(8), backend).gains == (0.0,) * 8
    assert (len(backend.answered), len(backend.judged)) == (36, 4)


@pytest.mark.parametrize("stage", ["answer", "judge"])
def test_a_question_that_fails_for_one_trajectory_is_left_out_for_all(stage):
    memories = [{"q1?": "tea", "q2?": "tea"}, {"q1?": "tea", "q2?": "broken"}, {"q1?": "wrong", "q2?": "tea"}]
    backend = Backend(fails=lambda at, name, text: at == stage and text == "broken")
    result = gain([question("q1"), question("q2")], memories, backend)
    assert result.gains == gain([question("q1")], memories).gains == (1.0, 1.0, 0.0)
    assert (result.questions, result.failed, result.judged) == (2, 1, 1)
    [error] = result.errors
    assert (error.network_id, error.question_id, error.stage) == ("net", "q2", stage)
    assert str(error) in (f"net q2: {stage} failed: the endpoint hung up", f"net q2: {stage} failed: no verdict")


def test_a_question_that_cannot_be_retrieved_is_left_out_for_all():
    memories = [{"q1?": "tea", "q2?": "tea"}, {"q1?": "tea", "q2?": "unreachable"}]
    result = gain([question("q1"), question("q2")], memories)
    assert (result.gains, result.failed, result.errors[0].stage) == ((1.0, 1.0), 1, "project")


def test_a_failing_system_1_leaves_the_question_out_too():
    backend = Backend(fails=lambda stage, name, text: name == "q1" and text == "don't know")
    result = gain([question("q1"), question("q2")], [{"q1?": "tea", "q2?": "tea"}] * 2, backend)
    assert (result.gains, result.failed) == ((1.0, 1.0), 1)


def test_every_question_failing_is_no_gain_and_is_logged(caplog):
    result = gain(FOUR, all_different(2), Backend(fails=lambda *_: True), max_failure_rate=1.0)
    assert (result.gains, result.failed, result.judged) == ((0.0, 0.0), 4, 0)
    assert "net: no question could be judged (4 asked)" in caplog.text


def test_a_network_without_questions_is_no_gain_and_is_logged(caplog):
    assert gain([], [{}, {}]) == QAGain("net", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), 0, 0, 0, 0)
    assert "net: no question could be judged (0 asked)" in caplog.text


def test_too_many_failures_stop_with_a_message_and_no_further_calls():
    backend = Backend(fails=lambda stage, name, text: name in ("q1", "q2", "q3"))
    with pytest.raises(QAFailure) as caught:
        gain(FOUR, all_different(8), backend, concurrency=1, max_failure_rate=0.5)
    text = str(caught.value)
    assert text.startswith("3 of 4 questions could not be judged, 2 may fail (max_failure_rate 0.5)")
    assert "net q3: answer failed: the endpoint hung up" in text and "resume" in text and "\n" not in text
    assert {error.question_id for error in caught.value.errors} == {"q1", "q2", "q3"}
    assert len(backend.answered) < 36 and not backend.judged


def test_results_and_failures_travel_between_processes():
    backend = Backend(fails=lambda stage, name, text: name == "q1")
    result = gain(FOUR, all_different(2), backend)
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(QAFailure) as caught:
        gain(FOUR, all_different(2), backend, max_failure_rate=0.0)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.errors) == (str(caught.value), caught.value.errors)


def test_the_allowed_share_itself_does_not_stop():
    backend = Backend(fails=lambda stage, name, text: name in ("q1", "q2"))
    assert gain(FOUR, all_different(2), backend, max_failure_rate=0.5).failed == 2
    with pytest.raises(QAFailure):
        gain(FOUR, all_different(2), backend, max_failure_rate=0.25)


@pytest.mark.parametrize(
    ("questions", "rate", "allowed"),
    [(4, 0.2, 1), (1, 0.2, 1), (5, 0.2, 1), (6, 0.2, 2), (60, 0.2, 12), (100, 0.07, 7), (4, 0.0, 0), (4, 1.0, 4), (0, 0.2, 0)],
)
def test_the_allowed_share_is_rounded_up_to_whole_questions(questions, rate, allowed):
    """One failed question of a round with four is no broken endpoint; two are."""
    assert allowed_failures(questions, rate) == allowed


@pytest.mark.parametrize("failing", [["q1"], ["q1", "q2"]])
def test_the_default_share_lets_one_question_of_four_fail_and_not_two(failing):
    backend = Backend(fails=lambda stage, name, text: name in failing)
    if len(failing) == 1:
        assert gain(FOUR, all_different(2), backend, max_failure_rate=0.2).judged == 3
    else:
        with pytest.raises(QAFailure):
            gain(FOUR, all_different(2), backend, max_failure_rate=0.2)


def test_the_share_is_over_all_groups():
    backend = Backend(fails=lambda stage, name, text: name == "q9")
    groups = [QAGroup("a", FOUR, all_different(2)), QAGroup("b", [question("q9")], [{}, {}])]
    first, second = qa_gain(groups, Retrieval(), backend, backend, max_failure_rate=0.2)
    assert (first.failed, second.failed, second.gains) == (0, 1, (0.0, 0.0))


def test_groups_are_kept_apart_even_with_equal_question_ids():
    groups = [
        QAGroup("a", [question("q1", "tea")], [{"q1?": "tea"}, {}]),
        QAGroup("b", [question("q1", "coffee")], [{"q1?": "tea"}, {"q1?": "coffee"}, {"q1?": "coffee"}]),
    ]
    backend = Backend()
    first, second = qa_gain(groups, Retrieval(), backend, backend)
    assert (first.network_id, first.gains, first.calls) == ("a", (1.0, 0.0), 4)
    assert (second.network_id, second.gains, second.calls) == ("b", (0.0, 1.0, 1.0), 6)


def test_questions_with_the_same_id_are_both_asked():
    twins = [question("q1", "tea"), dataclasses.replace(question("q1", "coffee"), question="other?")]
    result = gain(twins, [{"q1?": "tea", "other?": "coffee"}])
    assert (result.gains, result.questions) == ((1.0,), 2)


def test_calls_run_side_by_side_up_to_the_bound():
    meeting, guard, running, most = threading.Barrier(3), threading.Lock(), 0, 0

    def pause():
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        meeting.wait(timeout=PATIENCE)  # three must be in flight at once; a fourth would break the count below
        with guard:
            running -= 1

    # 4 questions, 2 memories and System 1 alone: 12 answers, then 12 judgments
    result = gain(FOUR, all_different(2), Backend(pause=pause), concurrency=3)
    assert result.calls == 24
    assert most == 3


def test_the_order_in_which_calls_end_does_not_matter():
    dice = random.Random(0)
    memories = [{q.question: dice.choice(["tea", "coffee"]) for q in FOUR} for _ in range(8)]
    expected = gain(FOUR, memories, concurrency=1)
    for _ in range(5):
        backend = Backend(pause=lambda: time.sleep(dice.random() / 200))
        assert gain(FOUR, memories, backend, concurrency=8) == expected


def test_an_error_that_is_no_judge_error_is_not_swallowed():
    class Broken(Backend):
        def judge(self, question, answer):
            raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        gain(FOUR, all_different(2), Broken())


def test_a_call_that_hangs_keeps_neither_an_error_nor_the_process_from_ending(repository):
    script = """
import threading
from rewards import QAGroup, qa_gain
from tests.rewards.test_qa_gain import FOUR, Backend, Retrieval, all_different

started = threading.Event()

class Hanging(Backend):
    def answer(self, question, evidence):
        if question.id == "q1":
            started.set()
            threading.Event().wait()
        started.wait()
        raise KeyError("a bug")

qa_gain([QAGroup("net", FOUR, all_different(2))], Retrieval(), Hanging(), Hanging())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=repository, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "KeyError: 'a bug'"


def test_the_real_pipeline_tells_a_memory_from_none():
    messages = tuple(
        Message(name, text, ts="2026-01-01", turn_id=f"t{place}", session_id="s1", index=place)
        for place, (name, text) in enumerate([("Alice", "I gave up coffee, tea from now on"), ("Bob", "Good morning")])
    )
    segment = Segment(0, "s1", "2026-01-01", messages)
    fact = {"action": "ADD", "owner": "Bob", "source": "Alice", "layer": "per_speaker_core", "utype": "fact"}
    knows, report = step(MemoryState.empty(), segment, [fact | {"content": "Bob's favourite drink is green tea"}])
    assert report.applied == 1
    knows_not, _ = step(MemoryState.empty(), segment, [{"action": "NOOP"}])
    asked = Question("q1", "Q1", "What is Bob's favourite drink?", "green tea")
    pipeline = QueryPipeline(QueryBudgets(s1_recall=1, s1_k=1, expand_rounds=0))
    group = QAGroup("net", [asked], [knows, knows_not, knows])
    [result] = qa_gain([group], pipeline, OfflineAnswerer(), OfflineJudge())
    assert result.gains == (1.0, 0.0, 1.0)
    assert result.calls < result.naive_calls == 12
