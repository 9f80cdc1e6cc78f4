"""What the derived memory adds to answering: the terminal question gain of a group (Eq. 8, 22).

All trajectories of a group share their messages, so System 1 alone is answered and judged once per question, not once
per trajectory; equal evidence is answered once, and equal answers to a question are judged once. For G = 8 and 4
questions that is at most (8 + 1) * 4 answers and as many judgments: 72 calls of the 128 (56.25 %) that answering and
judging two evidences per trajectory would cost.

A call that fails is an error, never a wrong answer: its question is left out for the whole group, so that the
trajectories stay comparable.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import Any, Protocol, TypeVar

from memory_env.conversation import Question
from memory_env.query.protocol import Answer, Answerer, Evidence, Judge, JudgeError, Verdict
from rewards.qa_results import QAError, QAExchange, QAFailure, QAGain, QAGroup, QATranscript, allowed_failures

_log = logging.getLogger(__name__)


class Retrieval(Protocol):
    """The part of `memory_env.query.pipeline.QueryPipeline` that is needed here. Thread-safe."""

    def index_group(self, memories: Sequence[Any]) -> Sequence[Any]:
        """One index per final state of a group."""
        ...

    def evidence(self, question: str, index: Any) -> Evidence:
        """Evidence of both tracks; its `verbatim_only()` is the same System 1 evidence alone. May raise JudgeError."""
        ...


def select_questions(questions: Sequence[Question], limit: int = 4) -> tuple[Question, ...]:
    """The fixed subset of Eq. 22: ids sorted as strings, then index floor(i n / k) for i < k = min(limit, n).

    Example: of ids q1, q10, q2, q3, q4, q5 (as strings in that order) and limit 4: q1, q10, q3, q4.
    """
    ordered = sorted(questions, key=lambda question: str(question.id))
    count = min(limit, len(ordered))
    return tuple(ordered[place * len(ordered) // count] for place in range(count))


def qa_gain(
    groups: Sequence[QAGroup],
    retrieval: Retrieval,
    answerer: Answerer,
    judge: Judge,
    *,
    max_questions: int = 4,
    concurrency: int = 8,
    max_failure_rate: float = 0.5,
) -> list[QAGain]:
    """The gain of each group, in their order; at most `concurrency` retrievals, answers or judgments at a time.

    The gains do not depend on which call ends first; where something failed, `calls` and the error that is kept may: a
    question that is left out is not asked further. Raises QAFailure as soon as more than `allowed_failures` of the
    selected questions of all groups have failed. Whatever else a part raises comes through, and no more calls start.
    """
    asked = [_Asked(place, group, select_questions(group.questions, max_questions)) for place, group in enumerate(groups)]
    pool = ThreadPool(concurrency)  # daemon threads: a call that hangs does not keep a stopped run from ending
    try:
        calls = _Calls(pool, asked, max_failure_rate)
        found = _evidences(asked, retrieval, calls)
        judged = _judged(asked, found, answerer, judge, calls)
    finally:
        pool.terminate()
    return [_gain(one, found, judged, calls) for one in asked]


@dataclass(frozen=True, slots=True)
class _Asked:
    place: int
    group: QAGroup
    questions: tuple[Question, ...]

    @property
    def keys(self) -> list[Key]:
        return [(self.place, number) for number in range(len(self.questions))]


Key = tuple[int, int]  # place of the group, place of the question among the selected
Work = tuple[Key, Callable[..., Any], tuple[Any, ...]]
Place = tuple[Key, int, str]  # a question, the number of a trajectory, and the track: BOTH or S1
BOTH, S1 = "both", "s1"
WorkKey = TypeVar("WorkKey", bound=Hashable)


class _Calls:
    """Runs calls in the pool, counts them, and keeps the first error of every question."""

    def __init__(self, pool: ThreadPool, asked: Sequence[_Asked], max_failure_rate: float):
        self._pool, self._max_failure_rate = pool, max_failure_rate
        self._asked = asked
        self._questions = sum(len(one.questions) for one in asked)
        self._allowed = allowed_failures(self._questions, max_failure_rate)
        self._lock = threading.Lock()
        self.made: Counter[int] = Counter()
        self.errors: dict[Key, QAError] = {}

    def run(self, work: Mapping[WorkKey, Work], stage: str, *, counted: bool) -> dict[WorkKey, Any]:
        """The result of every piece of work whose question has not failed, by the key of the work."""

        def attempt(item: tuple[WorkKey, Work]) -> tuple[WorkKey, Any]:
            return item[0], self._attempt(stage, counted, *item[1])

        results: dict[WorkKey, Any] = {}
        for key, result in self._pool.imap_unordered(attempt, work.items()):
            results[key] = result
            if len(self.errors) > self._allowed:
                raise QAFailure(list(self.errors.values()), self._questions, self._max_failure_rate)
        return {key: results[key] for key in work if work[key][0] not in self.errors}

    def _attempt(self, stage: str, counted: bool, key: Key, function: Callable[..., Any], arguments: tuple) -> Any:
        if key in self.errors:
            return None
        if counted:
            with self._lock:
                self.made[key[0]] += 1
        try:
            return function(*arguments)
        except JudgeError as error:
            one = self._asked[key[0]]
            failed = QAError(one.group.network_id, one.questions[key[1]].id, error.stage or stage, error.reason)
            with self._lock:
                self.errors.setdefault(key, failed)
            return None


def _evidences(asked: Sequence[_Asked], retrieval: Retrieval, calls: _Calls) -> dict[Place, Evidence]:
    """The evidence that is answered from."""
    work: dict[tuple[Key, int], Work] = {}
    for one in asked:
        if not one.questions:
            continue
        for trajectory, index in enumerate(retrieval.index_group(one.group.memories)):
            for key, question in zip(one.keys, one.questions, strict=True):
                work[key, trajectory] = (key, retrieval.evidence, (question.question, index))
    found: dict[Place, Evidence] = {}
    for (key, trajectory), evidence in calls.run(work, "retrieval", counted=False).items():
        found[key, trajectory, BOTH] = evidence
        found[key, trajectory, S1] = evidence.verbatim_only()
    return found


def _judged(
    asked: Sequence[_Asked], found: Mapping[Place, Evidence], answerer: Answerer, judge: Judge, calls: _Calls
) -> dict[Place, tuple[Answer, Verdict]]:
    """The same keys as `found`, without the questions that failed -> the answer and its verdict."""
    questions = {key: question for one in asked for key, question in zip(one.keys, one.questions, strict=True)}
    digests = {place: evidence.key for place, evidence in found.items()}
    to_answer: dict[tuple[Key, str], Work] = {}
    for place, evidence in found.items():
        key = place[0]
        to_answer.setdefault((key, digests[place]), (key, answerer.answer, (questions[key], evidence)))
    answers = calls.run(to_answer, "answer", counted=True)
    to_judge: dict[tuple[Key, Answer], Work] = {}
    for (key, _), answer in answers.items():
        to_judge.setdefault((key, answer), (key, judge.judge, (questions[key], answer)))
    judged = calls.run(to_judge, "judge", counted=True)
    results = {}
    for place, digest in digests.items():
        if place[0] not in calls.errors:
            answer = answers[place[0], digest]
            results[place] = (answer, judged[place[0], answer])
    return results


def _gain(
    one: _Asked, found: Mapping[Place, Evidence], judged: Mapping[Place, tuple[Answer, Verdict]], calls: _Calls
) -> QAGain:
    size, selected = len(one.group.memories), len(one.questions)
    errors = tuple(calls.errors[key] for key in one.keys if key in calls.errors)
    keys = [key for key in one.keys if key not in calls.errors]
    if not keys:
        _log.warning("%s: no question could be judged (%d asked): its terminal gain is 0", one.group.network_id, selected)
    both, s1 = ([sum(bool(judged[key, g, track][1].correct) for key in keys) for g in range(size)] for track in (BOTH, S1))
    count = max(1, len(keys))
    return QAGain(
        network_id=one.group.network_id,
        gains=tuple((with_both - alone) / count for with_both, alone in zip(both, s1, strict=True)),
        both=tuple(correct / count for correct in both),
        s1=tuple(correct / count for correct in s1),
        questions=selected,
        failed=len(errors),
        calls=calls.made[one.place],
        naive_calls=4 * size * selected,
        errors=errors,
        transcripts=tuple(_transcript(one, key, found, judged, calls) for key in one.keys),
    )


def _transcript(
    one: _Asked,
    key: Key,
    found: Mapping[Place, Evidence],
    judged: Mapping[Place, tuple[Answer, Verdict]],
    calls: _Calls,
) -> QATranscript:
    question = one.questions[key[1]]
    if key in calls.errors:
        return QATranscript(question, (), str(calls.errors[key]))
    shared: dict[tuple[str, Evidence], list[int]] = {}
    for track in (S1, BOTH):
        for g in range(len(one.group.memories)):
            shared.setdefault((track, found[key, g, track]), []).append(g)
    exchanges = (QAExchange(track, tuple(g), e, *judged[key, g[0], track]) for (track, e), g in shared.items())
    return QATranscript(question, tuple(exchanges))
