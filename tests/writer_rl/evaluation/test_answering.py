"""Examining: every question once, on the disk at once, failures never scored."""

import json

import pytest

from memory_env import Network, Question, corpus
from memory_env.datafile import DataError
from memory_env.query.answer.offline import OfflineAnswerer, OfflineJudge
from memory_env.query.pipeline import QueryPipeline
from memory_env.query.protocol import Answer, JudgeError
from memory_env.replay import Completion
from writer_rl.evaluation.answering import Examiner, Place, ResultFile, TooManyFailures
from writer_rl.evaluation.memories import MemoryFile, WrittenMemory

NETWORK = corpus.heldout_networks()[-1]
ACTIONS = corpus.teacher(NETWORK).actions
MEMORY = WrittenMemory.of(NETWORK, [Completion(json.dumps({"actions": actions})) for actions in ACTIONS])
PLACE = Place("main", "teacher", 0)


class Counting:
    """The offline answerer, failing for some questions a number of times."""

    fingerprint = {"answerer": "counting"}

    def __init__(self, failing=(), times=10**9):
        self.asked, self._failing, self._times = [], set(failing), times

    def answer(self, question, evidence):
        self.asked.append(question.id)
        if question.id in self._failing and self.asked.count(question.id) <= self._times:
            raise JudgeError("no", stage="answer", question_id=question.id)
        return OfflineAnswerer().answer(question, evidence)


def examine(answerer, path, concurrency=1, rate=1.0, place=PLACE, examiner=None):
    examiner = examiner or Examiner(answerer, OfflineJudge(), concurrency, rate)
    return examiner.examine(place, QueryPipeline(), [NETWORK], [MEMORY], ResultFile(path))


def test_all_questions_are_answered_in_order_whatever_the_concurrency(tmp_path):
    ids = [question.id for question in NETWORK.questions]
    one, failures = examine(Counting(), tmp_path / "one.jsonl")
    many, _ = examine(Counting(), tmp_path / "many.jsonl", concurrency=4)
    assert [result.question_id for result in one] == ids and one == many and not failures
    assert all(result.correct for result in one)


def test_a_second_run_asks_nothing_again(tmp_path):
    first, _ = examine(Counting(), tmp_path / "q.jsonl")
    again = Counting()
    second, _ = examine(again, tmp_path / "q.jsonl")
    assert again.asked == [] and first == second


def test_an_interrupted_run_continues_where_it_stopped(tmp_path):
    class Stop(BaseException):
        pass

    class Interrupted(Counting):
        def answer(self, question, evidence):
            if len(self.asked) == 5:
                raise Stop
            return super().answer(question, evidence)

    with pytest.raises(Stop):
        examine(Interrupted(), tmp_path / "q.jsonl")
    with (tmp_path / "q.jsonl").open("a") as file:
        file.write('{"variant": "main", "torn')  # killed while writing
    rest = Counting()
    results, _ = examine(rest, tmp_path / "q.jsonl")
    assert len(rest.asked) == len(NETWORK.questions) - 5 and len(results) == len(NETWORK.questions)


def test_what_failed_has_no_score_and_is_asked_again(tmp_path):
    ids = [question.id for question in NETWORK.questions]
    answerer = Counting(failing=ids[:2], times=1)
    results, failures = examine(answerer, tmp_path / "q.jsonl")
    assert [error.question_id for error in failures] == ids[:2] and len(results) == len(ids) - 2
    results, failures = examine(answerer, tmp_path / "q.jsonl")
    assert not failures and len(results) == len(ids)


def test_too_many_failures_stop_early_and_keep_what_is_done(tmp_path):
    ids = [question.id for question in NETWORK.questions]
    with pytest.raises(TooManyFailures, match="the same command continues"):
        examine(Counting(failing=ids[2:]), tmp_path / "q.jsonl", rate=0.1)
    assert len((tmp_path / "q.jsonl").read_text().splitlines()) == 2


def test_equal_evidence_is_answered_once_across_writers(tmp_path):
    answerer = Counting()
    examiner = Examiner(answerer, OfflineJudge(), 1, 1.0)
    for writer in ("A", "B"):
        examine(answerer, tmp_path / "q.jsonl", place=Place("main", writer, 0), examiner=examiner)
    assert len(answerer.asked) == len(NETWORK.questions)


def test_a_memory_file_gives_back_the_same_memory_and_refuses_another_writers(tmp_path):
    completions = [Completion(json.dumps({"actions": actions})) for actions in ACTIONS[:-1]] + [Completion("no", True)]
    MemoryFile(tmp_path / "m.jsonl").add("RL", 0, "weights-1", NETWORK, completions)
    reread = MemoryFile(tmp_path / "m.jsonl")
    assert reread.get("RL", 0, "weights-1", NETWORK) == completions
    assert reread.get("RL", 1, "weights-1", NETWORK) is None
    with pytest.raises(DataError, match="another RL"):
        reread.get("RL", 0, "weights-2", NETWORK)
    with pytest.raises(DataError, match="positions"):
        WrittenMemory.of(NETWORK, completions[:-1])
    last = WrittenMemory.of(NETWORK, completions).steps[-1]
    assert not last.report.json_valid and last.report.hit_length_limit


def test_questions_of_two_networks_may_share_an_id_and_their_evidence(tmp_path):
    """Files number their questions from q000 each; with empty memories even the evidence is equal."""

    def network(name):
        return Network(name, "", ("Ann",), (), (Question("q000", "Q1", "What is the number?", name),))

    class Echo:
        fingerprint = {"answerer": "echo"}

        def answer(self, question, evidence):
            return Answer("one")

    networks = [network("one"), network("two")]
    memories = [WrittenMemory.of(each, []) for each in networks]
    file = ResultFile(tmp_path / "q.jsonl")
    results, _ = Examiner(Echo(), OfflineJudge(), 1, 1.0).examine(PLACE, QueryPipeline(), networks, memories, file)
    assert [result.correct for result in results] == [True, False]
